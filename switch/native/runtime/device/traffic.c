#include "device/traffic.h"

#include <stdlib.h>

void traffic_schedule(struct device *d, struct port *port, u64 from_ns)
{
    u64 eligible_ns = NEVER;
    for (u32 i = 0; i < PRIORITIES; i++)
        if (port->queue[i].waiting.first && port->queue[i].next_ns < eligible_ns)
            eligible_ns = port->queue[i].next_ns;
    if (port->control_ns < eligible_ns)
        eligible_ns = port->control_ns;
    u64 service_ns = eligible_ns == NEVER ? NEVER : greater(greater(port->free_ns, from_ns), eligible_ns);
    if (service_ns == port->service_ns)
        return;
    port->service_ns = service_ns;
    /* Out of memory: the port stalls until its next packet, nothing is lost. */
    if (service_ns != NEVER && !heap_push(&d->services, service_ns, port->number, port))
        port->service_ns = NEVER;
    if (d->joint && port->service_ns < *d->joint->due_ns)
        *d->joint->due_ns = port->service_ns;
}

void traffic_note(struct device *d, const struct packet *p, enum fate fate, u32 port, const struct queue *queue, u64 t_ns)
{
    struct packet_record record = {
        .t_ns = t_ns,
        .arrives_ns = fate == FATE_SENT || fate == FATE_LOST ? p->t_ns : 0,
        .queued_ns = queue ? t_ns : p->enqueue_ns,
        .node = d->number,
        .depth = queue ? queue->packets : p->enqueue_depth,
        .port = (u16)port,
        .port_in = p->port_in,
        .length = (u16)p->length,
        .length_in = (u16)p->ingress_length,
        .kind = RECORD_SWITCH,
        .fate = (u8)fate,
        .priority = (u8)p->priority,
    };
    recorder_note(d->recorder, record, p->data, p->stored);
}

void traffic_note_refused(struct device *d, u32 number, enum fate fate, const u8 *frame, u32 stored, u32 length)
{
    struct packet_record record = {
        .t_ns = d->now_ns,
        .queued_ns = d->now_ns,
        .node = d->number,
        .port = RECORD_NO_PORT,
        .port_in = (u16)number,
        .length = (u16)length,
        .length_in = (u16)length,
        .kind = RECORD_SWITCH,
        .fate = (u8)fate,
    };
    recorder_note(d->recorder, record, frame, stored);
}

void traffic_enqueue(struct device *d, struct packet *p, u32 number, u64 now_ns)
{
    struct port *port = device_port(d, number);
    u64 *drop = NULL;
    if (!port) {
        struct port *from = device_port(d, p->port_in);
        drop = from ? &from->counters.drop_no_port : NULL;
        if (d->recorder)
            traffic_note(d, p, FATE_NO_PORT, number, &(struct queue){0}, now_ns);
        pool_give(d->pool, p);
        if (drop)
            (*drop)++;
        return;
    }
    struct queue *queue = &port->queue[p->priority % PRIORITIES];
    u32 bytes = p->length < p->limit ? p->length : p->limit;
    if (!port->up)
        drop = &port->counters.drop_port_down;
    else if (p->priority >= PRIORITIES || (queue->depth_packets && queue->packets >= queue->depth_packets) ||
             (queue->depth_bytes && queue->bytes + bytes > queue->depth_bytes) || d->waiting >= WAITING_MAX)
        drop = &port->counters.drop_queue_full;
    else if (d->lossless && !pfc_admits(d, p, bytes))
        drop = &device_port(d, p->port_in)->counters.drop_headroom;
    if (drop) {
        (*drop)++;
        if (d->recorder)
            traffic_note(d, p, port->up ? FATE_QUEUE_FULL : FATE_PORT_DOWN, number, queue, now_ns);
        pool_give(d->pool, p);
        return;
    }
    p->port_out = port->number;
    p->enqueue_ns = now_ns;
    p->enqueue_us = now_ns / 1000;
    p->enqueue_depth = queue->packets;
    p->queued_bytes = bytes;
    p->charged = false;
    fifo_put(&queue->waiting, p);
    queue->packets++;
    queue->bytes += bytes;
    struct port_counters *counters = &port->counters;
    counters->queue_bytes += bytes;
    if (++counters->queue_packets > counters->queue_packets_max)
        counters->queue_packets_max = counters->queue_packets;
    d->waiting++;
    if (d->lossless)
        pfc_charge(d, p, now_ns);
    traffic_schedule(d, port, now_ns);
}

void traffic_spent(struct device *d, const struct packet *p)
{
    struct port *port = device_port(d, p->port_in);
    if (port)
        port->counters.drop_passes++;
}

void traffic_replicate(struct device *d, struct packet *p, const struct replica_list *list, u64 now_ns)
{
    struct extra extra = {d->program->headers_size, d->program->headroom};
    for (u32 i = 0; i < list->count; i++) {
        if (!pool_count_copy(p)) {
            traffic_spent(d, p);
            return;
        }
        struct packet *copy = pool_copy(d->pool, p, extra);
        if (!copy)
            return;
        copy->rid = list->replica[i].rid;
        copy->limit = list->truncate_bytes ? list->truncate_bytes : NO_LIMIT;
        traffic_enqueue(d, copy, list->replica[i].port, now_ns);
    }
}

struct port *traffic_due(struct device *d, u64 now_ns, u64 *t_ns)
{
    while (d->services.count && d->services.item[0].t_ns <= now_ns) {
        struct heap_item item = heap_pop(&d->services);
        struct port *port = item.what;
        if (port->service_ns != item.t_ns)
            continue;
        port->service_ns = NEVER;
        *t_ns = item.t_ns;
        return port;
    }
    return NULL;
}

struct packet *traffic_dequeue(struct device *d, struct port *port, u64 t_ns)
{
    struct queue *queue = &port->queue[PRIORITIES - 1];
    while (!queue->waiting.first || queue->next_ns > t_ns)
        queue--;
    struct packet *p = fifo_take(&queue->waiting);
    queue->packets--;
    queue->bytes -= p->queued_bytes;
    queue->next_ns = t_ns + interval_ns(1, queue->rate_pps);
    port->counters.queue_packets--;
    port->counters.queue_bytes -= p->queued_bytes;
    d->waiting--;
    if (p->charged)
        pfc_release(d, p, t_ns);
    p->dequeue_depth = queue->packets;
    return p;
}

static bool put_on_wire(struct device *d, const struct port *port, struct packet *p)
{
    if (d->joint)
        return d->joint->leave(d->joint, port, p);
    p->order = d->order++;
    return heap_push(&d->leaving, p->t_ns, p->order, p);
}

void traffic_transmit_control(struct device *d, struct port *port, struct packet *p, u64 t_ns)
{
    u64 busy_ns = greater(interval_ns((p->length + port->overhead_bytes) * 8, port->rate_bps), interval_ns(1, port->rate_pps));
    port->free_ns = t_ns + busy_ns;
    bool lost = port->loss && random_next(&port->random) >> 11 < port->loss;
    p->t_ns = port->free_ns + port->delay_ns;
    if (d->recorder)
        traffic_note(d, p, lost ? FATE_LOST : FATE_SENT, port->number, NULL, t_ns);
    /* Out of memory loses the packet as well. */
    if (lost || !put_on_wire(d, port, p)) {
        port->counters.drop_loss++;
        pool_give(d->pool, p);
    }
    traffic_schedule(d, port, t_ns);
}

void traffic_transmit(struct device *d, struct port *port, struct packet *p, u64 t_ns)
{
    port->counters.tx_packets++;
    port->counters.tx_bytes += p->length;
    traffic_transmit_control(d, port, p, t_ns);
}

void traffic_idle(struct device *d, struct port *port, u64 t_ns)
{
    port->free_ns = t_ns;
    traffic_schedule(d, port, t_ns);
}

void traffic_flush(struct device *d, struct port *port, u64 *counter, enum fate fate)
{
    for (u32 i = 0; i < PRIORITIES; i++) {
        struct queue *queue = &port->queue[i];
        for (struct packet *p; (p = fifo_take(&queue->waiting));) {
            if (d->recorder)
                traffic_note(d, p, fate, port->number, NULL, d->now_ns);
            if (p->charged)
                pfc_release(d, p, d->now_ns);
            pool_give(d->pool, p);
            (*counter)++;
            d->waiting--;
        }
        queue->packets = 0;
        queue->bytes = 0;
    }
    port->counters.queue_packets = 0;
    port->counters.queue_bytes = 0;
    port->service_ns = NEVER;
}
