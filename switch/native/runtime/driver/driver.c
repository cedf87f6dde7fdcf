#include "driver/driver.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "driver/inside.h"

enum {
    EVENTS = 64,
    BATCHES_A_TURN = 4,  /* of one interface before the others have theirs */
    DUE_SLACK_NS = 5000, /* what is due so soon is sent with what is due now: less than a sleep takes */
    PACKETS_IDLE_MAX = 2048, /* of a size class, kept: packets in flight come and go in waves */
};

u64 driver_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

/* --- leaving ---------------------------------------------------------------------------------------------------- */

/* A frame for the control plane. */
static void hand_over(struct driver *d, struct device *device, struct packet *p)
{
    p->order = d->slot[device->driver_slot].id;
    if (!outbox_put(&d->outbox, p, OUTBOX_MAX)) {
        device_port(device, p->port_out)->counters.drop_socket++;
        pool_give(d->pool, p);
    }
}

/* Digests for the control plane. They are never more than half of what waits, and are lost without being counted. */
static void hand_over_digests(struct driver *d, struct device *device)
{
    for (struct packet *p; (p = device_take_digest(device));) {
        p->order = d->slot[device->driver_slot].id;
        p->port_out += PORTS;
        if (!outbox_put(&d->outbox, p, OUTBOX_MAX / 2))
            pool_give(d->pool, p);
    }
}

/* By the interface of a port. The packets are spent. */
static void leave(struct driver *d, struct port *port, struct packet *const *packet, u32 count)
{
    const struct wire *wire = &d->interface[port->index]->wire;
    for (u32 sent = 0; sent < count;) {
        int done = wire_send(wire, packet + sent, count - sent);
        if (done > 0) {
            sent += (u32)done;
            continue;
        }
        /* The interface is down or gone, or the frame is too long for it. A port whose cable has been pulled takes no
         * frames any more (ENOBUFS), and those that were still propagating die with it. */
        if (!port->up || errno == ENETDOWN || errno == ENXIO || errno == ENODEV)
            port->counters.drop_port_down++;
        else
            port->counters.drop_socket++;
        sent++;
    }
    for (u32 i = 0; i < count; i++)
        pool_give(d->pool, packet[i]);
}

static void send_due(struct driver *d, struct device *device, u64 now_ns)
{
    struct packet *p, *leaving[BATCH];
    struct port *port = NULL; /* by which those leave */
    u32 count = 0;
    hand_over_digests(d, device);
    while ((p = device_take(device, now_ns))) {
        struct port *next = device_port(device, p->port_out);
        if (count == BATCH || (count && next != port)) {
            leave(d, port, leaving, count);
            count = 0;
        }
        port = next;
        if (port->index < 0)
            hand_over(d, device, p);
        else
            leaving[count++] = p;
    }
    if (count)
        leave(d, port, leaving, count);
}

/* The device is served when it has something to do, and not before `from_ns`. */
static void reschedule(struct driver *d, struct device *device, u64 from_ns)
{
    struct slot *slot = &d->slot[device->driver_slot];
    u64 next_ns = device_next_event_ns(device);
    if (next_ns < from_ns)
        next_ns = from_ns;
    if (next_ns == slot->next_ns)
        return;
    slot->next_ns = next_ns;
    if (next_ns != NEVER && !heap_push(&d->due, next_ns, device->driver_slot, NULL))
        slot->next_ns = NEVER;
}

/* Serve the devices that have something to do. Returns whether any had. */
static bool work_off(struct driver *d, u64 now_ns)
{
    u64 limit_ns = now_ns + d->early_ns, grace_ns = d->turn_ns / 2;
    bool worked = false;
    while (d->due.count && d->due.item[0].t_ns <= limit_ns) {
        struct heap_item item = heap_pop(&d->due);
        struct slot *slot = &d->slot[item.order];
        if (!slot->device || slot->next_ns != item.t_ns)
            continue;
        slot->next_ns = NEVER;
        worked = true;
        if (item.t_ns + grace_ns < now_ns)
            lateness_note(&d->late, item.t_ns, now_ns - grace_ns);
        device_advance(slot->device, limit_ns - grace_ns);
        send_due(d, slot->device, limit_ns);
        reschedule(d, slot->device, limit_ns + 1);
    }
    return worked;
}

/* --- arriving --------------------------------------------------------------------------------------------------- */

static void receive(struct driver *d, struct interface *from, u64 arrived_ns)
{
    for (int turn = 0; turn < BATCHES_A_TURN; turn++) {
        int count = wire_receive(&from->wire, &d->batch);
        u64 now_ns = d->turn_ns ? arrived_ns : driver_now_ns();
        for (int i = 0; i < count; i++) {
            u32 length;
            const u8 *frame = wire_frame(&d->batch, i, &length);
            if (frame)
                device_receive(from->device, from->port->number, frame, length, now_ns);
            else
                from->port->counters.drop_socket++;
        }
        if (count) {
            send_due(d, from->device, now_ns + d->early_ns);
            reschedule(d, from->device, 0);
        }
        if (count < BATCH)
            return;
    }
}

static u64 next_deadline_ns(struct driver *d)
{
    while (d->due.count) {
        struct heap_item *item = &d->due.item[0];
        struct slot *slot = &d->slot[item->order];
        if (slot->device && slot->next_ns == item->t_ns)
            return item->t_ns;
        heap_pop(&d->due);
    }
    return NEVER;
}

/* Until `deadline_ns` (0: not at all) or until frames come: how many interfaces have any, as `events`. */
static int wait_until(struct driver *d, u64 deadline_ns, struct epoll_event *events)
{
    struct timespec timeout = {0}, *limit = NULL;
    if (deadline_ns != NEVER) {
        u64 now_ns = deadline_ns ? driver_now_ns() : 0;
        u64 left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
        timeout = (struct timespec){(time_t)(left_ns / 1000000000u), (long)(left_ns % 1000000000u)};
        limit = &timeout;
    }
    return (int)syscall(SYS_epoll_pwait2, d->epoll_fd, events, EVENTS, limit, NULL, 0);
}

/* Sleep until there is something to do; where turns are moderated, on to the next multiple of `turn_ns`, and at once
 * after a turn that had something to do. */
static int sleep_until_due(struct driver *d, u64 deadline_ns, bool busy, struct epoll_event *events)
{
    if (deadline_ns != NEVER && d->turn_ns)
        deadline_ns = deadline_ns > d->early_ns ? deadline_ns - d->early_ns : 0;
    int ready = busy ? 0 : wait_until(d, deadline_ns, events);
    if (!d->turn_ns)
        return ready;
    u64 turn_ns = (driver_now_ns() / d->turn_ns + 1) * d->turn_ns;
    struct timespec until = {(time_t)(turn_ns / 1000000000u), (long)(turn_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    return wait_until(d, 0, events);
}

/* Receive what `ready` interfaces have; where turns are moderated, what all have. Returns whether anything came. */
static bool receive_ready(struct driver *d, int ready, struct epoll_event *events, u64 arrived_ns)
{
    bool came = false;
    while (ready > 0) {
        for (int i = 0; i < ready; i++) {
            u64 number = events[i].data.u64;
            if (number < d->interfaces && d->interface[number]) {
                receive(d, d->interface[number], arrived_ns);
                came = true;
            } else if (number == NEVER) {
                u64 woken;
                (void)!read(d->wake_fd, &woken, sizeof woken);
            }
        }
        ready = d->turn_ns && ready == EVENTS ? wait_until(d, 0, events) : 0;
    }
    return came;
}

/* One turn. Moderated, it counts what came since the last one as arrived in the middle between, sends what is due until
 * the middle of the next, and takes what it has sent to its own devices as arriving now: no turn is early or late on
 * average, however many switches a packet crosses. */
static bool turn(struct driver *d, int ready, struct epoll_event *events)
{
    u64 now_ns = driver_now_ns(), span_ns = now_ns - d->turned_ns;
    d->turned_ns = now_ns;
    bool busy = receive_ready(d, ready, events, now_ns - (span_ns < d->turn_ns ? span_ns : d->turn_ns) / 2);
    busy |= work_off(d, d->turn_ns ? now_ns : driver_now_ns());
    if (d->turn_ns && busy)
        receive_ready(d, wait_until(d, 0, events), events, now_ns);
    return busy;
}

static void *run(void *argument)
{
    struct driver *d = argument;
    struct epoll_event events[EVENTS];
    bool busy = false;
    gate_enter(&d->gate);
    while (!d->stopping) {
        u64 deadline_ns = next_deadline_ns(d);
        d->sleeps_until_ns = deadline_ns;
        gate_leave(&d->gate);
        int ready = sleep_until_due(d, deadline_ns, busy && d->turn_ns, events);
        gate_enter(&d->gate);
        d->sleeps_until_ns = 0;
        busy = turn(d, ready, events);
    }
    gate_leave(&d->gate);
    return NULL;
}

/* --- control ---------------------------------------------------------------------------------------------------- */

static bool start_thread(struct driver *d)
{
    /* Signals are for the Python threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    d->started = !pthread_create(&d->thread, NULL, run, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return d->started && !pthread_getcpuclockid(d->thread, &d->cpu_clock);
}

static void wake(struct driver *d)
{
    u64 one = 1;
    (void)!write(d->wake_fd, &one, sizeof one);
}

struct driver *driver_create(u64 turn_ns)
{
    struct driver *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->turn_ns = turn_ns;
    d->early_ns = turn_ns ? turn_ns / 2 : DUE_SLACK_NS;
    gate_open(&d->gate);
    outbox_open(&d->outbox);
    d->pool = pool_create();
    d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    d->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (d->pool)
        d->pool->idle_max = PACKETS_IDLE_MAX;
    wire_batch_prepare(&d->batch);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = NEVER};
    if (!d->pool || d->epoll_fd < 0 || d->wake_fd < 0 || epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, d->wake_fd, &event) ||
        !start_thread(d)) {
        driver_destroy(d);
        return NULL;
    }
    return d;
}

void driver_destroy(struct driver *d)
{
    d->stopping = true;
    driver_end_takes(d);
    if (d->started) {
        wake(d);
        pthread_join(d->thread, NULL);
    }
    driver_close_sockets(d);
    for (struct packet *p; (p = outbox_take(&d->outbox));)
        pool_give(d->pool, p);
    if (d->epoll_fd >= 0)
        close(d->epoll_fd);
    if (d->wake_fd >= 0)
        close(d->wake_fd);
    free(d->slot);
    free(d->interface);
    heap_close(&d->due);
    if (d->pool)
        pool_destroy(d->pool);
    outbox_close(&d->outbox);
    gate_close(&d->gate);
    free(d);
}

struct pool *driver_pool(struct driver *d)
{
    return d->pool;
}

void driver_enter(struct driver *d)
{
    gate_enter(&d->gate);
}

void driver_leave(struct driver *d, struct device *device)
{
    if (device && device->driver_slot < d->slots && d->slot[device->driver_slot].device == device) {
        hand_over_digests(d, device);
        reschedule(d, device, 0);
        if (d->slot[device->driver_slot].next_ns < d->sleeps_until_ns)
            wake(d);
    }
    gate_leave(&d->gate);
}

u64 driver_cpu_ns(struct driver *d)
{
    struct timespec t = {0};
    clock_gettime(d->cpu_clock, &t);
    return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

u32 driver_lateness(struct driver *d, u64 *total, u64 *span)
{
    gate_enter(&d->gate);
    u32 count = lateness_take(&d->late, total, span);
    gate_leave(&d->gate);
    return count;
}

int driver_add(struct driver *d, struct device *device, u64 id)
{
    u32 free_slot = 0;
    while (free_slot < d->slots && d->slot[free_slot].device)
        free_slot++;
    if (free_slot == d->slots) {
        struct slot *slots = realloc(d->slot, (d->slots + 1) * sizeof *slots);
        if (!slots)
            return -ENOMEM;
        d->slot = slots;
        d->slots++;
    }
    d->slot[free_slot] = (struct slot){.device = device, .id = id, .next_ns = NEVER};
    device->driver_slot = free_slot;
    return 0;
}

long driver_take(struct driver *d, u64 *id, u32 *port, u8 *frame, u32 room)
{
    struct packet *p = outbox_take(&d->outbox);
    if (!p)
        return -1;
    long length = p->length < room ? p->length : room;
    memcpy(frame, p->data, (size_t)length);
    *id = p->order;
    *port = p->port_out;
    gate_enter(&d->gate);
    pool_give(d->pool, p);
    gate_leave(&d->gate);
    return length;
}

void driver_end_takes(struct driver *d)
{
    outbox_end(&d->outbox);
}
