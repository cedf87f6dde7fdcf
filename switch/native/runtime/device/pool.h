/* Packets by size class. A pool belongs to one thread (or lock): a stepped engine has its own, the devices of a
 * driver thread share one. */
#pragma once

#include "program/packet.h"

/* Steps as small as this, because what all packets on the way take is memory that a long run touches for the first time:
 * a frame of 4 KiB with its headers is a little longer than 4 KiB. */
enum { CLASS_STEP_BYTES = 1024, SIZE_CLASSES = 16 };

/* Bytes that a packet needs besides its frame. */
struct extra {
    u32 headers;  /* the program's struct headers */
    u32 headroom; /* in front of the frame, for longer headers */
};

struct pool {
    struct packet *free[SIZE_CLASSES];
    u32 idle[SIZE_CLASSES];
    u32 idle_max;       /* of each class; the rest go back to the system */
    struct extra least; /* what every packet gets at least: where devices share packets, the most that any needs */
};

/* A packet with room for `length` bytes. NULL when memory is out. Only the fields about the buffer are set. */
struct packet *pool_take(struct pool *pool, u32 length, struct extra extra);
/* The same frame, with the same fields, and headers that are not set: one more packet of the family. */
struct packet *pool_copy_frame(struct pool *pool, const struct packet *p, struct extra extra);
/* The same with the same headers, of which `p` must have as many bytes. */
struct packet *pool_copy(struct pool *pool, const struct packet *p, struct extra extra);
/* From here on copies of this packet share a count of copies with it. False when memory is out. */
bool pool_begin_family(struct packet *p);
/* May one more copy be made of this packet? Counts it. */
bool pool_count_copy(struct packet *p);
void pool_give(struct pool *pool, struct packet *p);
/* Does a device that needs `extra` find room for it in front of the frame? */
bool pool_fits(const struct packet *p, struct extra extra);
/* Begin a new family: earlier copies of the packet count no more. */
void pool_leave_family(struct packet *p);
/* Have what a device touches first of a packet brought to the cache: the packet, its headers, the frame's beginning. */
void pool_fetch(const struct pool *pool, const struct packet *p);
struct pool *pool_create(void);
void pool_destroy(struct pool *pool);
