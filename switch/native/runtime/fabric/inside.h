/* Shared by the files of the fabric and seen by no others. */
#pragma once

#include "device/heap.h"
#include "fabric/fabric.h"

struct nic_port {
    struct fabric_nic_port config;
    struct fabric_end peer;
    u64 random;
    u64 free_ns; /* the last bit of the last frame leaves */
};

struct place {
    struct joint joint; /* first: a device knows its place by it */
    struct fabric *fabric;
    struct heap arrivals;
    u64 arrived; /* frames that were ever given to it */
    u32 part;    /* which has this switch: 0 is this fabric, and what arrives at others' waits to be taken there */
    struct fabric_end peer[PORTS];
};

struct fabric {
    u32 switches, hosts, host_ports;
    struct place *place;
    u64 *due_ns; /* of each switch: not later than its next event */
    struct nic_port *nic_port;
    struct heap to_hosts;
    u64 sent_to_hosts;
    struct fifo *inbox;   /* of each host: frames that were gathered and not collected yet */
    u32 *gathered;        /* the hosts whose inboxes are not empty, in order of their first frames */
    u32 gathered_count;
    struct pool *pool;
    u64 now_ns;   /* everything before has happened */
    u64 bound_ns; /* of this run: a host may interfere from here */
    u64 end_ns;   /* switches are run until here, each alone */
    u64 between_ns, up_ns, down_ns; /* the shortest way from switch to switch, from host to leaf, from leaf to host */
    bool changed; /* a port was configured since those were computed */
    u64 departing_ns; /* the first frame for another part arrives */
    u64 hops;
    bool counts;        /* hosts' frames may leave out their payload */
    bool wants_payload; /* a program looked at payload that was left out */
    struct recorder *recorder; /* or NULL, as nearly always */
};

static inline u64 plus(u64 a, u64 b)
{
    return a > NEVER - b ? NEVER : a + b;
}

/* A frame that arrives at a switch at p->t_ns; false when memory is out. */
bool fabric_give_to_switch(struct fabric *f, const struct fabric_end *to, struct packet *p);
/* Take down the shortest ways, after a change of any port. */
void fabric_measure(struct fabric *f);

/* NULL where there is none. */
static inline struct nic_port *nic_port_at(const struct fabric *f, u32 host, u32 port)
{
    return host < f->hosts && port < f->host_ports ? &f->nic_port[(size_t)host * f->host_ports + port] : NULL;
}
