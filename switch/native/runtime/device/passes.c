#include "device/passes.h"

#include "device/pfc.h"
#include "device/traffic.h"

static void begin_pass(struct packet *p)
{
    p->parsed = 0;
    p->clone = false;
    p->resubmit = false;
    p->recirculate = false;
    p->multicast_group = 0;
    p->egress_spec = 0;
}

/* May this packet have descendants? Bounds, with the copies of its family, what a program that loops can cost. */
static bool may_descend(struct device *d, const struct packet *p)
{
    if (p->passes < PASSES_MAX)
        return true;
    traffic_spent(d, p);
    return false;
}

/* May this packet go round? */
static bool may_pass_again(struct device *d, struct packet *p)
{
    if (!may_descend(d, p))
        return false;
    if (pool_count_copy(p))
        return true;
    traffic_spent(d, p);
    return false;
}

/* A copy of the frame with zeroed headers, one pass further. */
static struct packet *fresh_copy(struct device *d, const struct packet *p)
{
    struct packet *copy = pool_copy_frame(d->pool, p, extra_of(d));
    if (!copy)
        return NULL;
    memset(copy->headers, 0, d->program->headers_size);
    begin_pass(copy);
    copy->passes++;
    copy->limit = NO_LIMIT;
    return copy;
}

static void pass_again(struct device *d, struct packet *p)
{
    fifo_put(&d->again, p);
    d->waiting++;
}

/* Of the packet as it came, parsed again; or `leaving`, with the headers that it has now. */
static void clone_packet(struct device *d, struct packet *p, bool leaving, u64 now_ns)
{
    const struct replica_list *session = traffic_replicas(&d->sessions, p->clone_session);
    if (!session || !session->count || !may_descend(d, p) || !pool_begin_family(p))
        return;
    struct packet *copy = leaving ? pool_copy(d->pool, p, extra_of(d)) : fresh_copy(d, p);
    if (!copy)
        return;
    if (leaving) {
        u32 parsed = copy->parsed;
        begin_pass(copy);
        copy->parsed = parsed;
        copy->passes++;
        copy->instance_type = EGRESS_CLONE;
    } else {
        copy->instance_type = INGRESS_CLONE;
        d->program->arrive(copy, now_ns);
        d->program->parse(d, copy, now_ns);
    }
    copy->priority = (u16)session->priority;
    d->program->preserve(copy, p, p->clone_list);
    traffic_replicate(d, copy, session, now_ns);
    pool_give(d->pool, copy);
}

/* Owns the packet. */
static void ingress_pass(struct device *d, struct packet *p, u64 now_ns)
{
    const struct program *program = d->program;
    program->parse(d, p, now_ns);
    program->ingress(d, p, now_ns);
    if (p->clone)
        clone_packet(d, p, false, now_ns);
    if (p->resubmit) {
        if (may_pass_again(d, p)) {
            struct packet *copy = fresh_copy(d, p);
            if (copy) {
                copy->instance_type = RESUBMITTED;
                program->preserve(copy, p, p->resubmit_list);
                pass_again(d, copy);
            }
        }
    } else if (p->multicast_group) {
        const struct replica_list *group = traffic_replicas(&d->multicast, p->multicast_group);
        p->instance_type = REPLICATED;
        if (group)
            traffic_replicate(d, p, group, now_ns);
    } else if (p->egress_spec != DROP_PORT) {
        p->instance_type = NORMAL;
        traffic_enqueue(d, p, p->egress_spec, now_ns);
        return;
    } else if (d->recorder) {
        p->priority = 0; /* the program chose none that counts */
        traffic_note(d, p, FATE_DROPPED, NO_PORT, &(struct queue){0}, now_ns);
    }
    pool_give(d->pool, p);
}

/* Cut the frame to what the program or the session leaves of it. */
static void cut(struct packet *p)
{
    if (p->length <= p->limit)
        return;
    p->length = p->limit;
    p->stored = p->stored < p->length ? p->stored : p->length;
    p->counted = false;
}

static void egress_pass(struct device *d, struct port *port, u64 t_ns)
{
    if (port->control_ns <= t_ns) {
        pfc_send(d, port, t_ns);
        return;
    }
    const struct program *program = d->program;
    struct packet *p = traffic_dequeue(d, port, t_ns);
    p->clone = false;
    p->recirculate = false;
    program->egress(d, p, t_ns);
    if (p->clone)
        clone_packet(d, p, true, t_ns);
    if (p->egress_spec != DROP_PORT) {
        program->deparse(d, p, t_ns);
        if (!p->recirculate)
            cut(p);
        if (p->length > FRAME_MAX) {
            traffic_spent(d, p);
        } else if (!p->recirculate) {
            traffic_transmit(d, port, p, t_ns);
            return;
        } else if (may_pass_again(d, p)) {
            struct packet *copy = fresh_copy(d, p);
            if (copy) {
                copy->ingress_length = copy->packet_length = copy->length;
                copy->instance_type = RECIRCULATED;
                program->preserve(copy, p, p->recirculate_list);
                pass_again(d, copy);
            }
        }
    } else if (d->recorder) {
        traffic_note(d, p, FATE_DROPPED, port->number, NULL, t_ns);
    }
    pool_give(d->pool, p);
    traffic_idle(d, port, t_ns);
}

void passes_work(struct device *d, u64 now_ns)
{
    u64 t_ns = now_ns;
    for (;;) {
        struct packet *p = fifo_take(&d->again);
        if (p) {
            d->waiting--;
            ingress_pass(d, p, t_ns);
            continue;
        }
        struct port *port = traffic_due(d, now_ns, &t_ns);
        if (!port)
            return;
        egress_pass(d, port, t_ns);
    }
}

void passes_enter(struct device *d, struct port *port, struct packet *p)
{
    u64 now_ns = d->now_ns;
    u32 length = p->length;
    port->counters.rx_packets++;
    port->counters.rx_bytes += length;
    memset(p->headers, 0, d->program->headers_size);
    begin_pass(p);
    p->ingress_length = p->packet_length = length;
    p->limit = NO_LIMIT;
    p->port_in = port->number;
    p->priority = 0;
    p->passes = 0;
    p->instance_type = NORMAL;
    d->program->arrive(p, now_ns);
    ingress_pass(d, p, now_ns);
    passes_work(d, now_ns);
}
