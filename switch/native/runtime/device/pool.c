#include "device/pool.h"

#include <stdlib.h>

enum { IDLE_MAX = 256 }; /* unless the pool's owner says otherwise */
enum { ALIGNMENT = 16 };
enum { CLASSES_BYTES = SIZE_CLASSES * CLASS_STEP_BYTES };
enum { FETCHED_BYTES = 128 }; /* of a frame: as far as parsers look */

static u32 padded(u32 bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

struct packet *pool_take(struct pool *pool, u32 length, struct extra extra)
{
    u32 headers = (u32)greater(extra.headers, pool->least.headers);
    u32 headroom = (u32)greater(extra.headroom, pool->least.headroom);
    u32 before = padded(sizeof(struct packet)) + padded(headers) + padded(headroom);
    size_t bytes = (size_t)before + length;
    u8 size_class = (u8)(bytes > CLASSES_BYTES ? SIZE_CLASSES : (bytes - 1) / CLASS_STEP_BYTES);
    struct packet *p;
    if (size_class < SIZE_CLASSES && pool->free[size_class]) {
        p = pool->free[size_class];
        pool->free[size_class] = p->next;
        pool->idle[size_class]--;
        fetch(p->next, sizeof *p);
    } else {
        p = malloc(size_class < SIZE_CLASSES ? (size_class + 1u) * CLASS_STEP_BYTES : bytes);
        if (!p)
            return NULL;
    }
    p->size_class = size_class;
    p->headers = (u8 *)p + padded(sizeof(struct packet));
    p->data = (u8 *)p + before;
    p->length = p->stored = length;
    p->counted = false;
    p->family = NULL;
    return p;
}

struct packet *pool_copy_frame(struct pool *pool, const struct packet *p, struct extra extra)
{
    struct packet *copy = pool_take(pool, p->stored, extra);
    if (!copy)
        return NULL;
    struct packet kept = *copy;
    *copy = *p;
    copy->size_class = kept.size_class;
    copy->headers = kept.headers;
    copy->data = kept.data;
    if (copy->family)
        copy->family->packets++;
    memcpy(copy->data, p->data, p->stored);
    return copy;
}

struct packet *pool_copy(struct pool *pool, const struct packet *p, struct extra extra)
{
    struct packet *copy = pool_copy_frame(pool, p, extra);
    if (copy)
        memcpy(copy->headers, p->headers, extra.headers);
    return copy;
}

bool pool_begin_family(struct packet *p)
{
    if (!p->family) {
        p->family = malloc(sizeof *p->family);
        if (!p->family)
            return false;
        *p->family = (struct family){.packets = 1, .copies_left = COPIES_MAX};
    }
    return true;
}

bool pool_count_copy(struct packet *p)
{
    if (!pool_begin_family(p) || !p->family->copies_left)
        return false;
    p->family->copies_left--;
    return true;
}

bool pool_fits(const struct packet *p, struct extra extra)
{
    return (size_t)(p->data - p->headers) >= padded(extra.headers) + (size_t)padded(extra.headroom);
}

void pool_leave_family(struct packet *p)
{
    if (p->family && --p->family->packets == 0)
        free(p->family);
    p->family = NULL;
}

void pool_give(struct pool *pool, struct packet *p)
{
    pool_leave_family(p);
    u8 size_class = p->size_class;
    if (size_class == SIZE_CLASSES || pool->idle[size_class] >= pool->idle_max) {
        free(p);
        return;
    }
    p->next = pool->free[size_class];
    pool->free[size_class] = p;
    pool->idle[size_class]++;
}

void pool_fetch(const struct pool *pool, const struct packet *p)
{
    const struct extra *least = &pool->least;
    fetch(p, padded(sizeof *p) + padded(least->headers) + padded(least->headroom) + FETCHED_BYTES);
}

struct pool *pool_create(void)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool)
        pool->idle_max = IDLE_MAX;
    return pool;
}

void pool_destroy(struct pool *pool)
{
    for (u32 i = 0; i < SIZE_CLASSES; i++) {
        while (pool->free[i]) {
            struct packet *p = pool->free[i];
            pool->free[i] = p->next;
            free(p);
        }
    }
    free(pool);
}
