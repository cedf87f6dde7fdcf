/* Packets by size class. A pool belongs to one thread (or lock): a stepped engine has its own, the devices of a
 * driver thread share one. */
#ifndef MRCLAB_POOL_H
#define MRCLAB_POOL_H

#include "packet.h"

enum { SIZE_CLASSES = 4 };

struct pool {
    struct packet *free[SIZE_CLASSES];
    u32 idle[SIZE_CLASSES];
};

/* Bytes that a packet needs besides its frame. */
struct extra {
    u32 headers;  /* the program's struct headers */
    u32 headroom; /* in front of the frame, for longer headers */
};

/* A packet with room for `length` bytes. NULL when memory is out. Only the fields about the buffer are set. */
struct packet *pool_take(struct pool *pool, u32 length, struct extra extra);
/* The first `length` bytes of the same frame, with the same headers and fields: one more packet of the family. */
struct packet *pool_copy(struct pool *pool, const struct packet *p, u32 length, struct extra extra);
/* May one more copy be made of this packet? Counts it. */
bool pool_count_copy(struct packet *p);
void pool_give(struct pool *pool, struct packet *p);
struct pool *pool_create(void);
void pool_destroy(struct pool *pool);

#endif
