#include "program/profile.h"

#include <stdlib.h>

static u32 *bucket_of(const struct id_slots *s, u32 id)
{
    return &s->first[key_hash(&(u64){id}, 1) & (s->capacity - 1)];
}

/* What refers to the slot of this id, or would: NO_ENTRY is there when no slot is the id's. */
static u32 *link_to(const struct id_slots *s, u32 id)
{
    u32 *link = bucket_of(s, id);
    while (*link != NO_ENTRY) {
        struct id_slot *slot = slot_at(s, *link);
        if (slot->id == id)
            break;
        link = &slot->next;
    }
    return link;
}

static u32 find(const struct id_slots *s, u32 id)
{
    return s->capacity ? *link_to(s, id) : NO_ENTRY;
}

static void enter(struct id_slots *s, u32 number)
{
    struct id_slot *slot = slot_at(s, number);
    u32 *head = bucket_of(s, slot->id);
    slot->next = *head;
    *head = number;
}

/* All slots are taken. */
static bool grow(struct id_slots *s)
{
    u32 capacity = s->capacity ? 2 * s->capacity : 8;
    u8 *storage = realloc(s->storage, (size_t)capacity * s->stride);
    if (!storage)
        return false;
    s->storage = storage;
    u32 *first = realloc(s->first, capacity * sizeof *first);
    if (!first)
        return false;
    s->first = first;
    s->capacity = capacity;
    for (u32 i = 0; i < capacity; i++)
        first[i] = NO_ENTRY;
    for (u32 number = 0; number < s->used; number++)
        enter(s, number);
    return true;
}

static long use(struct id_slots *s, u32 id)
{
    u32 number = find(s, id);
    if (number == NO_ENTRY) {
        if (s->free == NO_ENTRY && s->used == s->capacity && !grow(s))
            return TABLE_NO_MEMORY;
        number = s->free != NO_ENTRY ? s->free : s->used++;
        struct id_slot *slot = slot_at(s, number);
        if (number == s->free)
            s->free = slot->next;
        memset(slot, 0, s->stride);
        slot->id = id;
        enter(s, number);
    }
    ((struct id_slot *)slot_at(s, number))->uses++;
    return number;
}

static void release(struct id_slots *s, u32 number)
{
    struct id_slot *slot = slot_at(s, number);
    if (--slot->uses)
        return;
    *link_to(s, slot->id) = slot->next;
    slot->next = s->free;
    s->free = number;
}

static void slots_open(struct id_slots *s, size_t stride)
{
    *s = (struct id_slots){.stride = (u32)stride, .free = NO_ENTRY};
}

static void slots_close(struct id_slots *s)
{
    free(s->storage);
    free(s->first);
}

void profile_open(struct profile *p, u32 args_words)
{
    p->args_words = args_words;
    slots_open(&p->members, sizeof(struct member) + args_words * sizeof(u64));
    slots_open(&p->groups, sizeof(struct selector_group));
}

void profile_close(struct profile *p)
{
    for (u32 i = 0; i < p->groups.used; i++)
        free(((struct selector_group *)slot_at(&p->groups, i))->part);
    slots_close(&p->members);
    slots_close(&p->groups);
}

long profile_use(struct profile *p, enum target_kind kind, u32 id)
{
    if (kind == TARGET_GROUP)
        return use(&p->groups, id);
    long number = use(&p->members, id);
    if (number < 0)
        return number;
    struct member *m = profile_member(p, (u32)number);
    if (m->slot.uses == 1) /* new: a definition would be a use */
        m->action = NO_ACTION;
    return number;
}

void profile_release(struct profile *p, enum target_kind kind, u32 slot)
{
    release(kind == TARGET_GROUP ? &p->groups : &p->members, slot);
}

static void delete_member(struct profile *p, u32 id)
{
    u32 number = find(&p->members, id);
    if (number == NO_ENTRY || profile_member(p, number)->action == NO_ACTION)
        return;
    profile_member(p, number)->action = NO_ACTION;
    release(&p->members, number);
}

int profile_set_member(struct profile *p, u32 id, u32 action, const u64 *args)
{
    if (action == NO_ACTION) {
        delete_member(p, id);
        return 0;
    }
    long number = profile_use(p, TARGET_MEMBER, id);
    if (number < 0)
        return (int)number;
    struct member *m = profile_member(p, (u32)number);
    if (m->action != NO_ACTION)
        release(&p->members, (u32)number); /* used by its definition already */
    m->action = action;
    memcpy(m->args, args, p->args_words * sizeof(u64));
    return 0;
}

static void drop_parts(struct profile *p, struct group_part *part, u32 parts)
{
    for (u32 i = 0; i < parts; i++)
        release(&p->members, part[i].member);
    free(part);
}

/* NULL when memory is out. */
static struct group_part *make_parts(struct profile *p, const u32 *ids, const u32 *weights, u32 count)
{
    struct group_part *part = malloc(count * sizeof *part);
    u32 end = 0;
    for (u32 i = 0; part && i < count; i++) {
        long member = profile_use(p, TARGET_MEMBER, ids[i]);
        if (member < 0) {
            drop_parts(p, part, i);
            return NULL;
        }
        end += weights[i];
        part[i] = (struct group_part){.member = (u32)member, .end = end};
    }
    return part;
}

static void delete_group(struct profile *p, u32 id)
{
    u32 number = find(&p->groups, id);
    struct selector_group *g = number != NO_ENTRY ? slot_at(&p->groups, number) : NULL;
    if (!g || !g->parts)
        return;
    drop_parts(p, g->part, g->parts);
    g->part = NULL;
    g->parts = 0;
    release(&p->groups, number);
}

int profile_set_group(struct profile *p, u32 id, const u32 *ids, const u32 *weights, u32 count)
{
    u64 end = 0;
    for (u32 i = 0; i < count; i++) {
        end += weights[i];
        if (!weights[i] || end > UINT32_MAX)
            return TABLE_WEIGHTS;
    }
    if (!count) {
        delete_group(p, id);
        return 0;
    }
    struct group_part *part = make_parts(p, ids, weights, count);
    if (!part)
        return TABLE_NO_MEMORY;
    long number = use(&p->groups, id);
    if (number < 0) {
        drop_parts(p, part, count);
        return (int)number;
    }
    struct selector_group *g = slot_at(&p->groups, (u32)number);
    if (g->parts) {
        drop_parts(p, g->part, g->parts);
        release(&p->groups, (u32)number); /* used by its definition already */
    }
    g->part = part;
    g->parts = count;
    return 0;
}
