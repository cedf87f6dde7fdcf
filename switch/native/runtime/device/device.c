#include "device/device.h"

#include <stdlib.h>
#include <string.h>

#include "device/cells.h"
#include "device/passes.h"
#include "device/traffic.h"

/* --- program and state ------------------------------------------------------------------------------------ */

static void drop_waiting(struct device *d)
{
    for (u32 number = 0; number < PORTS; number++)
        if (d->port[number])
            traffic_flush(d, d->port[number], &d->port[number]->counters.drop_wiped, FATE_WIPED);
    for (u32 number = 0; d->lossless && number < PORTS; number++)
        if (d->port[number])
            pfc_forget(d->port[number], d->now_ns);
    for (struct packet *p; (p = fifo_take(&d->again)); d->waiting--)
        pool_give(d->pool, p);
    d->services.count = 0;
}

static void learn(struct device *d, u32 list, const u8 *data, u32 bytes)
{
    struct packet *p = d->digests_waiting < DIGESTS_MAX ? pool_take(d->pool, bytes, (struct extra){0}) : NULL;
    if (!p)
        return;
    memcpy(p->data, data, bytes);
    p->port_out = (u16)list;
    fifo_put(&d->digests, p);
    d->digests_waiting++;
}

struct packet *device_take_digest(struct device *d)
{
    struct packet *p = fifo_take(&d->digests);
    if (p)
        d->digests_waiting--;
    return p;
}

void device_enable_digest(struct device *d, u32 list, bool enabled)
{
    u64 bit = (u64)1 << (list - 1);
    d->digests_enabled = enabled ? d->digests_enabled | bit : d->digests_enabled & ~bit;
}

static void replication_close(struct replication *r)
{
    for (u32 i = 0; i < r->count; i++)
        free(r->list[i].replica);
    free(r->list);
    *r = (struct replication){0};
}

static void unload(struct device *d)
{
    const struct program *program = d->program;
    drop_waiting(d);
    for (struct packet *p; (p = device_take_digest(d));)
        pool_give(d->pool, p);
    d->digests_enabled = 0;
    replication_close(&d->multicast);
    replication_close(&d->sessions);
    for (u32 i = 0; i < d->value_set_count; i++)
        free(d->value_sets[i].members);
    free(d->value_sets);
    d->value_sets = NULL;
    d->value_set_count = 0;
    if (!program)
        return;
    for (u32 i = 0; d->tables && i < program->tables; i++)
        table_close(&d->tables[i]);
    for (u32 i = 0; d->profiles && i < program->profiles; i++)
        profile_close(&d->profiles[i]);
    cells_close(d);
    free(d->tables);
    free(d->profiles);
    d->tables = NULL;
    d->profiles = NULL;
    d->program = NULL;
}

int device_load(struct device *d, const struct program *program)
{
    unload(d);
    if (!program) {
        d->random = d->seed;
        return 0;
    }
    d->program = program;
    d->tables = calloc(program->tables + 1, sizeof *d->tables);
    d->profiles = calloc(program->profiles + 1, sizeof *d->profiles);
    bool ok = d->tables && d->profiles && cells_open(d);
    for (u32 i = 0; ok && i < program->tables; i++)
        table_open(&d->tables[i], &program->table[i]);
    for (u32 i = 0; ok && i < program->profiles; i++)
        profile_open(&d->profiles[i], program->profile_args_words[i]);
    if (!ok)
        unload(d);
    return ok ? 0 : -1;
}

int device_set_value_set(struct device *d, u32 number, const u64 *members, u32 count, u32 words)
{
    size_t size = (size_t)count * words * sizeof *members;
    u64 *kept = malloc(size + 1);
    struct value_set *sets = d->value_sets;
    if (kept && number >= d->value_set_count)
        sets = realloc(sets, (number + 1) * sizeof *sets);
    if (!kept || !sets) {
        free(kept);
        return -1;
    }
    for (d->value_sets = sets; d->value_set_count <= number; d->value_set_count++)
        sets[d->value_set_count] = (struct value_set){0};
    free(sets[number].members);
    memcpy(kept, members, size);
    sets[number] = (struct value_set){count, words, kept};
    return 0;
}

struct device *device_create(u64 seed, struct pool *pool)
{
    struct device *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->seed = seed;
    d->random = seed;
    d->running = true;
    d->pool = pool;
    d->learn = learn;
    return d;
}

void device_destroy(struct device *d)
{
    unload(d);
    if (d->joint)
        d->joint->device = NULL;
    while (d->leaving.count)
        pool_give(d->pool, heap_pop(&d->leaving).what);
    heap_close(&d->leaving);
    heap_close(&d->services);
    for (u32 number = 0; number < PORTS; number++)
        free(d->port[number]);
    free(d);
}

void device_record(struct device *d, struct recorder *r, u32 number)
{
    d->recorder = r;
    d->number = number;
}

void device_set_running(struct device *d, bool running)
{
    if (!running)
        drop_waiting(d);
    d->running = running;
}

/* --- ports ------------------------------------------------------------------------------------------------- */

int device_configure_port(struct device *d, u32 number, const struct port_config *config, u64 now_ns)
{
    if (number >= DROP_PORT)
        return -1;
    device_advance(d, now_ns);
    struct port *port = d->port[number];
    if (!port) {
        port = calloc(1, sizeof *port);
        if (!port)
            return -1;
        port->number = (u16)number;
        port->service_ns = NEVER;
        port->index = -1;
        pfc_init(port);
        d->port[number] = port;
    }
    port->up = config->up;
    port->rate_bps = config->rate_bps;
    port->rate_pps = config->rate_pps;
    port->delay_ns = config->delay_ns;
    port->overhead_bytes = config->overhead_bytes;
    if (port->loss != config->loss || port->loss_seed != config->loss_seed) {
        port->loss = config->loss;
        port->loss_seed = config->loss_seed;
        port->random = config->loss_seed;
    }
    for (u32 i = 0; i < PRIORITIES; i++) {
        u64 depth_packets = config->queue[i].depth_packets;
        port->queue[i].depth_packets = depth_packets < UINT32_MAX ? (u32)depth_packets : UINT32_MAX;
        port->queue[i].depth_bytes = config->queue[i].depth_bytes;
        port->queue[i].rate_pps = config->queue[i].rate_pps;
    }
    if (!port->up)
        traffic_flush(d, port, &port->counters.drop_port_down, FATE_PORT_DOWN);
    pfc_configure(d, port, config, d->now_ns);
    traffic_schedule(d, port, now_ns);
    if (d->joint)
        *d->joint->changed = true;
    return 0;
}

int device_port_counters(struct device *d, u32 number, u64 now_ns, struct port_counters *out)
{
    device_advance(d, now_ns);
    struct port *port = device_port(d, number);
    if (!port)
        return -1;
    pfc_settle(port, d->now_ns);
    *out = port->counters;
    return 0;
}

long device_sample(struct device *d, const u32 *numbers, u32 count, u64 now_ns, u64 always, u64 *out)
{
    u64 *next = out;
    struct port_counters counters;
    for (u32 i = 0; i < count; i++) {
        if (device_port_counters(d, numbers[i], now_ns, &counters))
            return -1;
        u64 *kept = next++;
        *kept = always;
        *next++ = numbers[i];
        for (u32 n = 0; n < sizeof counters / sizeof(u64); n++) {
            u64 value = ((const u64 *)&counters)[n];
            if (value || always >> n & 1) {
                *kept |= 1ull << n;
                *next++ = value;
            }
        }
    }
    return next - out;
}

/* --- time ------------------------------------------------------------------------------------------------------ */

void device_advance(struct device *d, u64 now_ns)
{
    if (now_ns > d->now_ns)
        d->now_ns = now_ns;
    if (d->services.count)
        passes_work(d, d->now_ns);
}

/* Work until now_ns, then the port that takes a frame, or NULL when the frame ends here, which is counted. */
static struct port *open_port(struct device *d, u32 number, const u8 *frame, u32 stored, u32 length, u64 now_ns)
{
    struct port *port = device_port(d, number);
    device_advance(d, now_ns);
    if (!port)
        return NULL;
    if (!port->up) {
        port->counters.drop_port_down++;
        if (d->recorder)
            traffic_note_refused(d, number, FATE_PORT_DOWN, frame, stored, length);
        return NULL;
    }
    if (!d->program || !d->running) {
        port->counters.drop_no_program++;
        if (d->recorder)
            traffic_note_refused(d, number, FATE_NO_PROGRAM, frame, stored, length);
        return NULL;
    }
    if (d->lossless && pfc_receive(d, port, frame, length)) {
        passes_work(d, d->now_ns);
        return NULL;
    }
    return port;
}

void device_receive(struct device *d, u32 number, const u8 *frame, u32 length, u64 now_ns)
{
    struct port *port = open_port(d, number, frame, length, length, now_ns);
    if (!port)
        return;
    struct packet *p = pool_take(d->pool, length, extra_of(d));
    if (!p) {
        port->counters.drop_socket++;
        return;
    }
    memcpy(p->data, frame, length);
    passes_enter(d, port, p);
}

void device_accept(struct device *d, u32 number, struct packet *p, u64 now_ns)
{
    struct port *port = open_port(d, number, p->data, p->stored, p->length, now_ns);
    if (!port) {
        pool_give(d->pool, p);
        return;
    }
    struct extra extra = extra_of(d);
    if (!pool_fits(p, extra)) {
        struct extra *least = &d->pool->least;
        least->headers = extra.headers > least->headers ? extra.headers : least->headers;
        least->headroom = extra.headroom > least->headroom ? extra.headroom : least->headroom;
        struct packet *roomy = pool_copy_frame(d->pool, p, extra);
        if (!roomy)
            port->counters.drop_socket++;
        pool_give(d->pool, p);
        if (!roomy)
            return;
        p = roomy;
    }
    pool_leave_family(p);
    passes_enter(d, port, p);
}

struct packet *device_take(struct device *d, u64 now_ns)
{
    if (!d->leaving.count || d->leaving.item[0].t_ns > now_ns)
        return NULL;
    return heap_pop(&d->leaving).what;
}

u64 device_next_event_ns(struct device *d)
{
    while (d->services.count) {
        struct heap_item *item = &d->services.item[0];
        if (((struct port *)item->what)->service_ns == item->t_ns)
            break;
        heap_pop(&d->services);
    }
    u64 service_ns = d->services.count ? d->services.item[0].t_ns : NEVER;
    u64 leaving_ns = d->leaving.count ? d->leaving.item[0].t_ns : NEVER;
    return lesser(service_ns, leaving_ns);
}
