/* A binary heap of (time, order) with a pointer each; the earliest first. */
#pragma once

#include <stdlib.h>

#include "program/bits.h"

struct heap_item {
    u64 t_ns;
    u64 order;
    void *what;
};

struct heap {
    struct heap_item *item;
    u32 count;
    u32 capacity;
};

static inline bool heap_before(const struct heap_item *a, const struct heap_item *b)
{
    return a->t_ns < b->t_ns || (a->t_ns == b->t_ns && a->order < b->order);
}

static inline bool heap_push(struct heap *h, u64 t_ns, u64 order, void *what)
{
    if (h->count == h->capacity) {
        u32 capacity = h->capacity ? 2 * h->capacity : 16;
        struct heap_item *items = realloc(h->item, capacity * sizeof *items);
        if (!items)
            return false;
        h->item = items;
        h->capacity = capacity;
    }
    struct heap_item fresh = {t_ns, order, what};
    u32 at = h->count++;
    while (at && heap_before(&fresh, &h->item[(at - 1) / 2])) {
        h->item[at] = h->item[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->item[at] = fresh;
    return true;
}

/* Remove the first item; the heap must not be empty. */
static inline struct heap_item heap_pop(struct heap *h)
{
    struct heap_item first = h->item[0], last = h->item[--h->count];
    u32 at = 0;
    for (;;) {
        u32 child = 2 * at + 1;
        if (child >= h->count)
            break;
        if (child + 1 < h->count && heap_before(&h->item[child + 1], &h->item[child]))
            child++;
        if (!heap_before(&h->item[child], &last))
            break;
        h->item[at] = h->item[child];
        at = child;
    }
    if (h->count)
        h->item[at] = last;
    return first;
}

static inline void heap_close(struct heap *h)
{
    free(h->item);
    *h = (struct heap){0};
}
