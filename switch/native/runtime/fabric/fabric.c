#include "fabric/fabric.h"

#include <stdlib.h>

#include "fabric/frame.h"
#include "fabric/inside.h"
#include "fabric/order.h"

enum { HOSTS_MAX = 1 << 20 };

/* --- cables ---------------------------------------------------------------------------------------------------- */

bool fabric_give_to_switch(struct fabric *f, const struct fabric_end *to, struct packet *p)
{
    struct place *place = &f->place[to->node];
    p->port_in = (u16)to->port;
    if (!heap_push(&place->arrivals, p->t_ns, arrival_order(p->t_ns, to->port, place->arrived++), p))
        return false;
    if (place->part)
        f->departing_ns = lesser(f->departing_ns, p->t_ns);
    else
        f->due_ns[to->node] = lesser(f->due_ns[to->node], p->t_ns);
    return true;
}

static bool give_to_host(struct fabric *f, const struct fabric_end *to, struct packet *p)
{
    p->port_in = (u16)to->port;
    if (!heap_push(&f->to_hosts, p->t_ns, host_order(to->node, to->port, f->sent_to_hosts++), p))
        return false;
    f->bound_ns = lesser(f->bound_ns, plus(p->t_ns, f->up_ns));
    return true;
}

static bool leave(struct joint *joint, const struct port *port, struct packet *p)
{
    struct place *place = (struct place *)(void *)joint;
    struct fabric *f = place->fabric;
    const struct fabric_end *to = &place->peer[port->number];
    f->hops++;
    switch (to->kind) {
    case END_SWITCH: /* only a frame of no bytes on a cable of no delay could be earlier */
        p->t_ns = greater(p->t_ns, f->end_ns);
        return fabric_give_to_switch(f, to, p);
    case END_HOST:
        p->t_ns = greater(p->t_ns, fabric_horizon_ns(f));
        return give_to_host(f, to, p);
    default:
        pool_give(f->pool, p);
        return true;
    }
}

static void measure_place(struct fabric *f, const struct place *place)
{
    for (u32 number = 0; place->joint.device && number < PORTS; number++) {
        const struct port *port = device_port(place->joint.device, number);
        if (!port)
            continue;
        if (place->peer[number].kind == END_SWITCH)
            f->between_ns = lesser(f->between_ns, port->delay_ns);
        else if (place->peer[number].kind == END_HOST)
            f->down_ns = lesser(f->down_ns, port->delay_ns);
    }
}

void fabric_measure(struct fabric *f)
{
    f->between_ns = f->up_ns = f->down_ns = NEVER;
    for (u32 i = 0; i < f->switches; i++)
        measure_place(f, &f->place[i]);
    for (size_t i = 0; i < (size_t)f->hosts * f->host_ports; i++)
        if (f->nic_port[i].peer.kind != END_NONE)
            f->up_ns = lesser(f->up_ns, f->nic_port[i].config.delay_ns);
    f->between_ns = greater(f->between_ns, 1);
    f->up_ns = greater(f->up_ns, 1);
    f->down_ns = greater(f->down_ns, 1);
    f->changed = false;
}

/* --- making ------------------------------------------------------------------------------------------------------ */

struct fabric *fabric_create(u32 switches, u32 hosts, u32 host_ports)
{
    struct fabric *f = calloc(1, sizeof *f);
    if (!f || hosts > HOSTS_MAX || host_ports > PORTS) {
        free(f);
        return NULL;
    }
    f->switches = switches;
    f->hosts = hosts;
    f->host_ports = host_ports;
    f->place = calloc((size_t)switches + 1, sizeof *f->place);
    f->due_ns = calloc((size_t)switches + 1, sizeof *f->due_ns);
    f->nic_port = calloc((size_t)hosts * host_ports + 1, sizeof *f->nic_port);
    f->inbox = calloc((size_t)hosts + 1, sizeof *f->inbox);
    f->gathered = calloc((size_t)hosts + 1, sizeof *f->gathered);
    f->pool = pool_create();
    f->departing_ns = NEVER;
    f->changed = true;
    if (!f->place || !f->due_ns || !f->nic_port || !f->inbox || !f->gathered || !f->pool) {
        fabric_destroy(f);
        return NULL;
    }
    f->pool->idle_max = UINT32_MAX; /* what was needed once is needed again */
    for (u32 i = 0; i < switches; i++)
        f->due_ns[i] = NEVER;
    return f;
}

static void give_all(struct fabric *f, struct heap *heap)
{
    for (u32 i = 0; i < heap->count; i++)
        pool_give(f->pool, heap->item[i].what);
    heap_close(heap);
}

void fabric_destroy(struct fabric *f)
{
    for (u32 i = 0; f->place && i < f->switches; i++)
        give_all(f, &f->place[i].arrivals);
    give_all(f, &f->to_hosts);
    for (u32 i = 0; f->inbox && i < f->hosts; i++)
        while (f->inbox[i].first)
            fabric_drop_first(f, i);
    if (f->pool)
        pool_destroy(f->pool);
    free(f->inbox);
    free(f->gathered);
    free(f->place);
    free(f->due_ns);
    free(f->nic_port);
    free(f);
}

struct pool *fabric_pool(struct fabric *f)
{
    return f->pool;
}

int fabric_attach(struct fabric *f, u32 number, struct device *d)
{
    if (number >= f->switches || d->pool != f->pool || d->joint || f->place[number].joint.device)
        return FABRIC_NO_PORT;
    struct place *place = &f->place[number];
    place->joint = (struct joint){leave, &f->due_ns[number], &f->changed, d};
    place->fabric = f;
    d->joint = &place->joint;
    f->changed = true;
    return 0;
}

static struct fabric_end *peer_slot(struct fabric *f, const struct fabric_end *end)
{
    if (end->kind == END_SWITCH && end->node < f->switches && end->port < DROP_PORT)
        return &f->place[end->node].peer[end->port];
    struct nic_port *port = end->kind == END_HOST ? nic_port_at(f, end->node, end->port) : NULL;
    return port ? &port->peer : NULL;
}

int fabric_connect(struct fabric *f, const struct fabric_end *a, const struct fabric_end *b)
{
    struct fabric_end *peer_of_a = peer_slot(f, a), *peer_of_b = peer_slot(f, b);
    if (!peer_of_a || !peer_of_b || (a->kind == END_HOST && b->kind == END_HOST))
        return FABRIC_NO_PORT;
    if (peer_of_a->kind != END_NONE || peer_of_b->kind != END_NONE || peer_of_a == peer_of_b)
        return FABRIC_MALFORMED;
    *peer_of_a = *b;
    *peer_of_b = *a;
    f->changed = true;
    return 0;
}

int fabric_configure_nic_port(struct fabric *f, u32 host, u32 number, const struct fabric_nic_port *config)
{
    struct nic_port *port = nic_port_at(f, host, number);
    if (!port)
        return FABRIC_NO_PORT;
    if (port->config.loss != config->loss || port->config.loss_seed != config->loss_seed)
        port->random = config->loss_seed;
    port->config = *config;
    f->changed = true;
    return 0;
}

void fabric_count_payload(struct fabric *f)
{
    f->counts = true;
}

void fabric_record(struct fabric *f, struct recorder *r)
{
    f->recorder = r;
    for (u32 i = 0; i < f->switches; i++)
        if (f->place[i].joint.device)
            device_record(f->place[i].joint.device, r, i);
}

void fabric_settle(struct fabric *f, u32 number)
{
    if (number < f->switches && f->place[number].joint.device && f->now_ns)
        device_advance(f->place[number].joint.device, f->now_ns - 1);
}

/* --- frames from hosts ------------------------------------------------------------------------------------------- */

int fabric_send_one(struct fabric *f, const struct fabric_record *record, const u8 *bytes)
{
    struct nic_port *port = nic_port_at(f, record->host, record->port);
    if (!port)
        return FABRIC_NO_PORT;
    struct frame frame = frame_measured(f->counts, bytes, record->length);
    if (frame.length > FRAME_MAX)
        return FABRIC_MALFORMED;
    const struct fabric_nic_port *config = &port->config;
    if (!config->up || port->peer.kind != END_SWITCH) {
        if (f->recorder)
            frame_note_leaving(f->recorder, record, FATE_PORT_DOWN, record->t_ns, 0, &frame);
        return 0;
    }
    u64 busy_ns = interval_ns((frame.length + config->overhead_bytes) * 8, config->rate_bps);
    u64 free_ns = plus(greater(record->t_ns, port->free_ns), busy_ns);
    u64 arrival_ns = plus(free_ns, config->delay_ns);
    if (arrival_ns < f->now_ns)
        return FABRIC_PAST;
    port->free_ns = free_ns;
    bool lost = config->loss && random_next(&port->random) >> 11 < config->loss;
    if (f->recorder)
        frame_note_leaving(f->recorder, record, lost ? FATE_LOST : FATE_SENT, free_ns - busy_ns, arrival_ns, &frame);
    if (lost)
        return 0;
    struct packet *p = frame_packet(f->pool, &frame);
    if (!p)
        return FABRIC_NO_MEMORY;
    p->t_ns = arrival_ns;
    if (fabric_give_to_switch(f, &port->peer, p))
        return 0;
    pool_give(f->pool, p);
    return FABRIC_NO_MEMORY;
}

u32 fabric_send(struct fabric *f, const u8 *bytes, u64 length, int *error)
{
    struct fabric_record record;
    u64 at = 0;
    *error = 0;
    for (u32 count = 0;; count++) {
        if (at == length)
            return count;
        if (length - at < sizeof record) {
            *error = FABRIC_MALFORMED;
            return count;
        }
        memcpy(&record, bytes + at, sizeof record);
        at += sizeof record;
        *error = length - at < record.length ? FABRIC_MALFORMED : fabric_send_one(f, &record, bytes + at);
        if (*error)
            return count;
        at += record.length;
    }
}

/* --- running ------------------------------------------------------------------------------------------------------- */

/* Everything that happens at a switch before end_ns. */
static void run_place(struct fabric *f, u32 number, u64 end_ns)
{
    struct place *place = &f->place[number];
    struct heap *arrivals = &place->arrivals;
    struct device *d = place->joint.device;
    while (arrivals->count && arrivals->item[0].t_ns < end_ns) {
        struct packet *p = heap_pop(arrivals).what;
        if (arrivals->count) /* most likely the next: it has come from a host or another switch, and left the cache */
            pool_fetch(f->pool, arrivals->item[0].what);
        if (d)
            device_accept(d, p->port_in, p, p->t_ns);
        else
            pool_give(f->pool, p);
    }
    u64 due_ns = NEVER;
    if (d) {
        device_advance(d, end_ns - 1);
        f->wants_payload |= d->wants_payload;
        due_ns = device_next_event_ns(d);
    }
    f->due_ns[number] = arrivals->count ? lesser(due_ns, arrivals->item[0].t_ns) : due_ns;
}

u64 fabric_run(struct fabric *f, u64 host_ns, u64 limit_ns)
{
    if (f->changed)
        fabric_measure(f);
    host_ns = lesser(host_ns, fabric_next_arrival_ns(f));
    f->bound_ns = lesser(limit_ns, plus(host_ns, f->up_ns));
    u64 ahead_ns = lesser(f->between_ns, plus(f->up_ns, f->down_ns));
    for (;;) {
        u64 first_ns = fabric_next_ns(f);
        if (first_ns >= f->bound_ns)
            break;
        f->end_ns = lesser(plus(first_ns, ahead_ns), f->bound_ns);
        for (u32 i = 0; i < f->switches; i++)
            if (f->due_ns[i] < f->end_ns && !f->place[i].part)
                run_place(f, i, f->end_ns);
    }
    f->now_ns = greater(f->now_ns, f->bound_ns);
    return f->wants_payload ? 0 : f->now_ns;
}

u64 fabric_horizon_ns(const struct fabric *f)
{
    return plus(f->now_ns, f->down_ns);
}

u64 fabric_next_ns(const struct fabric *f)
{
    u64 first_ns = NEVER;
    for (u32 i = 0; i < f->switches; i++)
        if (!f->place[i].part)
            first_ns = lesser(first_ns, f->due_ns[i]);
    return first_ns;
}

u64 fabric_next_arrival_ns(const struct fabric *f)
{
    return f->to_hosts.count ? f->to_hosts.item[0].t_ns : NEVER;
}

u64 fabric_hops(const struct fabric *f)
{
    return f->hops;
}
