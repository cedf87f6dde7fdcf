/* One switch: a program's state, its ports with their queues (the traffic manager), and the packets in it.
 *
 * Time is an argument. Events happen at their own times however late the caller is: a port that became free at t
 * sends its next packet at t, so a late caller adds delay, never takes rate away. */
#pragma once

#include "device/heap.h"
#include "device/pfc.h"
#include "device/pool.h"
#include "device/recorder.h"
#include "program/profile.h"

enum { PORTS = 512, DROP_PORT = 511, PRIORITIES = 8, NO_PORT = UINT16_MAX };
enum { DIGESTS_MAX = 1 << 12 }; /* of one device that wait to be taken */
enum { WAITING_MAX = 1 << 16 }; /* packets in one device, however deep its queues are */
#define NEVER UINT64_MAX

struct queue {
    struct fifo waiting;
    u32 packets;
    u64 bytes;
    u64 next_ns; /* when its own rate lets the next packet go */
    u32 depth_packets;
    u64 depth_bytes;
    u64 rate_pps;
};

/* In the order of switch.engine.PortConfig. */
struct port_config {
    u64 up;
    u64 rate_bps;
    u64 rate_pps;
    u64 delay_ns;
    u64 loss; /* share of packets, in units of 2^-53 */
    u64 loss_seed;
    u64 overhead_bytes; /* around each frame on the wire */
    u64 pfc_classes, pfc_xoff_bytes, pfc_xon_bytes, pfc_headroom_bytes, pfc_quanta, pfc_watchdog_ns, pfc_mac;
    struct {
        u64 depth_packets;
        u64 depth_bytes;
        u64 rate_pps;
    } queue[PRIORITIES];
};

/* In the order of switch.engine.PortCounters. */
struct port_counters {
    u64 rx_packets, rx_bytes, tx_packets, tx_bytes;
    u64 drop_queue_full, drop_port_down, drop_loss, drop_wiped, drop_no_program, drop_no_port, drop_passes;
    u64 drop_socket;
    u64 queue_packets, queue_bytes, queue_packets_max;
    u64 drop_headroom;
    u64 pause_sent, resume_sent, pause_received, resume_received, pause_ignored, paused_ns, pause_watchdog;
    u64 held_bytes_max;
};

struct port {
    u16 number;
    bool up;
    u64 rate_bps, rate_pps, delay_ns, loss, loss_seed, overhead_bytes;
    u64 random;
    u64 free_ns;    /* the last bit of the last packet leaves */
    u64 service_ns; /* the next dequeue, NEVER when nothing waits or it is being served */
    u64 control_ns; /* when its MAC sends the next frame of flow control, NEVER when there is nothing to say */
    struct queue queue[PRIORITIES];
    struct port_counters counters;
    int index; /* of the driver's interface, or -1 */
    struct pfc pfc;
};

struct replica {
    u16 port;
    u16 rid;
};

struct replica_list {
    u32 id;
    u32 truncate_bytes; /* 0: whole */
    u32 priority;       /* of clones; 0: what the program preserves */
    u32 count;
    struct replica *replica;
};

struct replication {
    u32 count;
    struct replica_list *list;
};

/* Keys of `words` words each, the parts of one behind the other, the low word of a part first. */
struct value_set {
    u32 count, words;
    u64 *members;
};

/* What a device is built into. A device on its own has none: its caller fetches frames with device_take. */
struct joint {
    /* A packet has left by a port and arrives at its t_ns. False, and the packet stays the caller's: out of memory. */
    bool (*leave)(struct joint *, const struct port *, struct packet *);
    u64 *due_ns;   /* lowered when the device has something to do earlier */
    bool *changed; /* set when a port is configured */
    struct device *device; /* NULL again when it is destroyed */
};

struct device {
    /* used by the program */
    struct table *tables;
    struct profile *profiles;
    struct counter **counters;
    struct meter **meters;
    u64 **registers;
    u64 random;

    const struct program *program;
    u64 seed;
    bool running;
    bool lossless; /* a port has, or had, PFC */
    bool wants_payload; /* the program looked at payload that a frame counts and does not carry */
    u64 now_ns; /* the latest time seen */
    u64 order;
    struct replication multicast, sessions;
    struct port *port[PORTS]; /* NULL where there is none */
    struct heap services; /* (time, port); stale when the port's service_ns is another */
    struct heap leaving;  /* (time, order) of packets on the wire */
    struct fifo again; /* resubmitted and recirculated */
    struct pool *pool;
    struct joint *joint; /* or NULL */
    struct recorder *recorder; /* or NULL, as nearly always */
    u32 number; /* by which the recorder knows the switch */
    u32 waiting; /* packets in the queues and in the list above */
    u32 driver_slot;
    u32 value_set_count;
    struct value_set *value_sets; /* as many as have been set */

    u32 digest;          /* asked for by the packet in ingress: its learn list, from 1; 0: none */
    u64 digests_enabled; /* a bit for each learn list */
    struct fifo digests; /* as packets, the learn list in port_out */
    u32 digests_waiting;
    /* Keeps a digest: a pointer, since programs are linked with nothing. */
    void (*learn)(struct device *, u32 list, const u8 *data, u32 bytes);
};

static inline struct port *device_port(const struct device *d, u32 number)
{
    return number < PORTS ? d->port[number] : NULL;
}

struct device *device_create(u64 seed, struct pool *pool);
void device_destroy(struct device *d);

/* Have a recorder, which must outlive the device or be replaced, take down packets of switch `number`; NULL: none. */
void device_record(struct device *d, struct recorder *r, u32 number);

/* Load a program, or none (NULL), which also restarts the random stream: tables, externs and queues start empty.
 * Returns 0, or -1 when memory is out. */
int device_load(struct device *d, const struct program *program);
void device_set_running(struct device *d, bool running);

int device_configure_port(struct device *d, u32 number, const struct port_config *config, u64 now_ns);
/* Fills `out`; -1 when the device has no such port. */
int device_port_counters(struct device *d, u32 number, u64 now_ns, struct port_counters *out);
/* Fills `out` with, for each of `count` ports: a word whose bit n says that counter n follows, the port's number, and the
 * counters that are not 0 or that `always` has a bit for. Returns the words, or -1 when the device lacks a port. */
long device_sample(struct device *d, const u32 *numbers, u32 count, u64 now_ns, u64 always, u64 *out);

int device_set_replicas(struct device *d, bool session, u32 id, const u32 *ports, const u32 *rids, u32 count,
                        u32 truncate_bytes, u32 priority);
void device_delete_replicas(struct device *d, bool session, u32 id);
/* All members of value set `number`. Returns 0, or -1 when memory is out. */
int device_set_value_set(struct device *d, u32 number, const u64 *members, u32 count, u32 words);

void device_enable_digest(struct device *d, u32 list, bool enabled);
/* The oldest digest that waits, or NULL. The caller frees it. */
struct packet *device_take_digest(struct device *d);

/* A frame arrives. The device works off everything that is due by now_ns. */
void device_receive(struct device *d, u32 number, const u8 *frame, u32 length, u64 now_ns);
/* The same for a packet of another device that shares the pool, which is moved and not copied. Owns the packet. */
void device_accept(struct device *d, u32 number, struct packet *p, u64 now_ns);
/* Work off everything that is due by now_ns. */
void device_advance(struct device *d, u64 now_ns);
/* The next packet whose last bit has arrived by now_ns, in order of time, or NULL. The caller frees it. */
struct packet *device_take(struct device *d, u64 now_ns);
u64 device_next_event_ns(struct device *d);
