/* One packet on its way through a device, with what the P4 program and the traffic manager say about it. */
#pragma once

#include "program/bits.h"

enum { FRAME_MAX = 16384 };       /* the longest frame that a device takes */
enum { PASSES_MAX = 64 };         /* ingress and egress passes after the first: bounds loops in a program */
enum { COPIES_MAX = 4096 };       /* clones, replicas and rounds that one received packet may lead to altogether */
enum { NO_LIMIT = UINT32_MAX };
enum { COUNTED_TAIL = 4 }; /* bytes of a counted frame behind its payload: the ICRC */

/* What the descendants of one received packet share. */
struct family {
    u32 packets;
    u32 copies_left;
};

enum instance_type { NORMAL = 0, INGRESS_CLONE = 1, EGRESS_CLONE = 2, RECIRCULATED = 4, REPLICATED = 5, RESUBMITTED = 6 };

struct packet {
    struct packet *next; /* in a queue, an input list or a pool */
    u64 t_ns;            /* when the last bit arrives at the other end */
    u64 order;           /* of dequeue: decides between equal times */
    struct family *family; /* NULL: nothing was made of this packet yet */
    u8 *data;            /* first byte of the frame */
    u32 length;          /* bytes of the frame on the wire */
    u32 stored;          /* bytes at data: fewer than `length` where payload is counted and not carried */
    u8 tail[COUNTED_TAIL]; /* of a counted frame as its host sent it: the last bytes, behind the payload */
    bool counted;        /* the frame is such a one, whole: `tail` belongs to it */
    u32 parsed;          /* bytes of data that the parser consumed */
    u32 ingress_length;  /* bytes received: what counters and meters count */
    u32 packet_length;   /* the same, corrected for headers added and removed */
    u32 limit;           /* truncate: bytes of the frame at most */
    u32 queued_bytes;    /* what the packet counts in its queue */
    u16 port_in;
    u16 port_out;
    u8 size_class;
    u8 passes;
    u16 priority;
    u8 instance_type;
    bool exit; /* the program left the pipeline */
    bool charged; /* to the port by which it came (pfc.h) */
    u32 parser_error;
    u32 checksum_error;

    /* asked for by the program in this pass; 0: not asked for */
    bool clone;
    bool resubmit;
    bool recirculate;
    u16 clone_session;
    u16 clone_list;
    u16 resubmit_list;
    u16 recirculate_list;
    u32 egress_spec;
    u32 multicast_group;

    /* told to the program in egress */
    u16 rid; /* of a replica or clone */
    u64 enqueue_ns; /* the same more finely, for the packet log */
    u64 enqueue_us;
    u32 enqueue_depth;
    u32 dequeue_depth;

    u8 *headers; /* the program's struct headers */
};

/* Packets one behind the other, the oldest first; `last` says nothing while there is none. */
struct fifo {
    struct packet *first, *last;
};

static inline void fifo_put(struct fifo *f, struct packet *p)
{
    p->next = NULL;
    if (f->first)
        f->last->next = p;
    else
        f->first = p;
    f->last = p;
}

/* NULL when there is none. */
static inline struct packet *fifo_take(struct fifo *f)
{
    struct packet *p = f->first;
    if (p)
        f->first = p->next;
    return p;
}
