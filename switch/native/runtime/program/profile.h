/* Action profiles: members and groups. Each id has a slot, to which entries and groups refer. */
#pragma once

#include "program/table.h"

struct id_slot {
    u32 id;
    u32 next; /* in its hash bucket, or in the free list */
    u32 uses; /* by its definition, by entries and by groups; after the last, another id gets the slot */
};

struct id_slots {
    u8 *storage; /* of members or groups */
    u32 stride;
    u32 capacity; /* a power of two: so many hash buckets as well */
    u32 used;     /* slots handed out so far */
    u32 free;
    u32 *first; /* of each bucket */
};

struct member {
    struct id_slot slot;
    u32 action; /* NO_ACTION: not defined */
    u64 args[];
};

struct group_part {
    u32 member; /* slot */
    u32 end;    /* sum of the weights up to and with this one */
};

struct selector_group {
    struct id_slot slot;
    u32 parts; /* 0: empty or not defined */
    struct group_part *part;
};

struct profile {
    u32 args_words;
    struct id_slots members, groups;
};

static inline void *slot_at(const struct id_slots *s, u32 number)
{
    return s->storage + (size_t)number * s->stride;
}

static inline struct member *profile_member(const struct profile *p, u32 slot)
{
    return slot_at(&p->members, slot);
}

/* The member that a hash selects, or NULL when the group is empty. */
static inline const struct member *group_select(const struct profile *p, u32 slot, u64 hash)
{
    const struct selector_group *g = slot_at(&p->groups, slot);
    if (!g->parts)
        return NULL;
    u64 index = hash % g->part[g->parts - 1].end;
    u32 low = 0, high = g->parts - 1;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (index < g->part[middle].end)
            high = middle;
        else
            low = middle + 1;
    }
    return profile_member(p, g->part[low].member);
}

void profile_open(struct profile *p, u32 args_words);
void profile_close(struct profile *p);
/* The slot of a member or group, defined or not, for an entry: used until it is released. TABLE_NO_MEMORY. */
long profile_use(struct profile *p, enum target_kind kind, u32 id);
void profile_release(struct profile *p, enum target_kind kind, u32 slot);
/* NO_ACTION deletes the member. */
int profile_set_member(struct profile *p, u32 id, u32 action, const u64 *args);
/* No members delete the group. TABLE_WEIGHTS: a weight is 0, or they do not add up to 32 bits; the group is then as it
 * was. */
int profile_set_group(struct profile *p, u32 id, const u32 *ids, const u32 *weights, u32 count);
