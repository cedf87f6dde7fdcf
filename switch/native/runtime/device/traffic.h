/* The traffic manager: queues, service, transmission, replication. Used by device.c and passes.c. */
#pragma once

#include "device/device.h"

/* Put a packet, which the queue owns from here, into its port's queue, or drop it and say why in the counters. */
void traffic_enqueue(struct device *d, struct packet *p, u32 number, u64 now_ns);
/* Tell the recorder, which there must be, how `p` ended at a port; `queue` is NULL for a packet that waited in one. */
void traffic_note(struct device *d, const struct packet *p, enum fate fate, u32 port, const struct queue *queue, u64 t_ns);
/* The same of a frame that a port did not take, with `stored` of its bytes at hand. */
void traffic_note_refused(struct device *d, u32 number, enum fate fate, const u8 *frame, u32 stored,
                          u32 length);
/* Count that `p` may have no descendant (any more), or has grown too long. */
void traffic_spent(struct device *d, const struct packet *p);
/* Copies of `p` to every replica; `p` stays the caller's. */
void traffic_replicate(struct device *d, struct packet *p, const struct replica_list *list, u64 now_ns);
/* The port that is served next, at a time *t_ns not after now_ns, or NULL. */
struct port *traffic_due(struct device *d, u64 now_ns, u64 *t_ns);
/* Take the packet whose turn it is. */
struct packet *traffic_dequeue(struct device *d, struct port *port, u64 t_ns);
/* After its egress: put the packet on the wire, or note that it used no time. */
void traffic_transmit(struct device *d, struct port *port, struct packet *p, u64 t_ns);
/* The same for a frame of the port's own MAC, which the counters of packets do not know. */
void traffic_transmit_control(struct device *d, struct port *port, struct packet *p, u64 t_ns);
void traffic_idle(struct device *d, struct port *port, u64 t_ns);
/* Set when the port is served next; `from_ns` is not before what waits there was enqueued, or the port configured. */
void traffic_schedule(struct device *d, struct port *port, u64 from_ns);
/* Drop everything that waits at a port into `*counter`. */
void traffic_flush(struct device *d, struct port *port, u64 *counter, enum fate fate);
struct replica_list *traffic_replicas(struct replication *r, u32 id);
