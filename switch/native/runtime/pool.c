#include "pool.h"

#include <stdlib.h>

/* A class keeps this many idle packets; the rest go back to the system. */
enum { IDLE_MAX = 256 };
enum { ALIGNMENT = 16 };

static const u32 class_bytes[SIZE_CLASSES] = {2048, 4096, 8192, 16384};

static u32 padded(u32 bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

struct packet *pool_take(struct pool *pool, u32 length, struct extra extra)
{
    u32 before = padded(sizeof(struct packet)) + padded(extra.headers) + padded(extra.headroom);
    size_t bytes = (size_t)before + length;
    u8 size_class = 0;
    while (size_class < SIZE_CLASSES && class_bytes[size_class] < bytes)
        size_class++;
    struct packet *p;
    if (size_class < SIZE_CLASSES && pool->free[size_class]) {
        p = pool->free[size_class];
        pool->free[size_class] = p->next;
        pool->idle[size_class]--;
    } else {
        p = malloc(size_class < SIZE_CLASSES ? class_bytes[size_class] : bytes);
        if (!p)
            return NULL;
    }
    p->size_class = size_class;
    p->headers = (u8 *)p + padded(sizeof(struct packet));
    p->data = (u8 *)p + before;
    p->length = length;
    p->family = NULL;
    return p;
}

struct packet *pool_copy(struct pool *pool, const struct packet *p, u32 length, struct extra extra)
{
    struct packet *copy = pool_take(pool, length, extra);
    if (!copy)
        return NULL;
    struct packet kept = *copy;
    *copy = *p;
    copy->size_class = kept.size_class;
    copy->headers = kept.headers;
    copy->data = kept.data;
    copy->length = length;
    if (copy->family)
        copy->family->packets++;
    memcpy(copy->headers, p->headers, extra.headers);
    memcpy(copy->data, p->data, length);
    return copy;
}

bool pool_count_copy(struct packet *p)
{
    if (!p->family) {
        p->family = malloc(sizeof *p->family);
        if (!p->family)
            return false;
        *p->family = (struct family){.packets = 1, .copies_left = COPIES_MAX};
    }
    if (!p->family->copies_left)
        return false;
    p->family->copies_left--;
    return true;
}

void pool_give(struct pool *pool, struct packet *p)
{
    if (p->family && --p->family->packets == 0)
        free(p->family);
    u8 size_class = p->size_class;
    if (size_class == SIZE_CLASSES || pool->idle[size_class] == IDLE_MAX) {
        free(p);
        return;
    }
    p->next = pool->free[size_class];
    pool->free[size_class] = p;
    pool->idle[size_class]++;
}

struct pool *pool_create(void)
{
    return calloc(1, sizeof(struct pool));
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
