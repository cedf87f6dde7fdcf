#include "program/table.h"

#include <stdlib.h>

void table_open(struct table *t, const struct table_info *info)
{
    *t = (struct table){.info = info, .free = NO_ENTRY};
    size_t size = sizeof(struct entry) + (2 * (size_t)info->key_words + info->args_words) * sizeof(u64);
    t->stride = (u32)size;
}

void table_close(struct table *t)
{
    for (u32 handle = 0; handle < t->used; handle++)
        free(table_entry(t, handle)->meter);
    for (u32 g = 0; g < t->group_count; g++) {
        free(t->groups[g].mask);
        free(t->groups[g].first);
    }
    free(t->groups);
    free(t->ranked);
    free(t->storage);
    free(t->fallback);
    *t = (struct table){.info = t->info, .stride = t->stride, .free = NO_ENTRY};
}

static struct entry *allocate(struct table *t)
{
    if (t->free == NO_ENTRY && t->used == t->capacity) {
        u32 capacity = t->capacity ? 2 * t->capacity : 8;
        u8 *storage = realloc(t->storage, (size_t)capacity * t->stride);
        if (!storage)
            return NULL;
        t->storage = storage;
        if (t->info->kind == TABLE_SCAN) {
            u32 *ranked = realloc(t->ranked, capacity * sizeof *ranked);
            if (!ranked)
                return NULL;
            t->ranked = ranked;
        }
        t->capacity = capacity;
    }
    u32 handle = t->free != NO_ENTRY ? t->free : t->used++;
    struct entry *e = table_entry(t, handle);
    if (handle == t->free)
        t->free = e->next;
    memset(e, 0, t->stride);
    e->handle = handle;
    e->live = true;
    return e;
}

static void release(struct table *t, struct entry *e)
{
    free(e->meter);
    e->meter = NULL;
    e->live = false;
    e->next = t->free;
    t->free = e->handle;
}

/* The words of an entry that tell it from others: of a ranked one the mask as well, which look-ups do not hash. */
static u32 keyed_words(const struct table *t)
{
    return t->info->kind == TABLE_SCAN ? 2 * t->info->key_words : t->info->key_words;
}

static bool group_resize(struct table *t, struct hash_group *g, u32 buckets)
{
    u32 *first = malloc(buckets * sizeof *first);
    if (!first)
        return false;
    for (u32 i = 0; i < buckets; i++)
        first[i] = NO_ENTRY;
    for (u32 i = 0; i < g->buckets; i++) {
        u32 handle = g->first[i];
        while (handle != NO_ENTRY) {
            struct entry *e = table_entry(t, handle);
            u32 *head = &first[key_hash(e->words, keyed_words(t)) & (buckets - 1)];
            handle = e->next;
            e->next = *head;
            *head = e->handle;
        }
    }
    free(g->first);
    g->first = first;
    g->buckets = buckets;
    return true;
}

/* The group of this mask, made when it is new; groups stay ordered by falling prefix length. */
static struct hash_group *group_of(struct table *t, const u64 *mask, u32 prefix_len)
{
    u32 at = 0;
    while (at < t->group_count && t->groups[at].prefix_len > prefix_len)
        at++;
    if (at < t->group_count && t->groups[at].prefix_len == prefix_len)
        return &t->groups[at];
    u32 words = t->info->key_words;
    struct hash_group fresh = {.prefix_len = prefix_len, .mask = malloc((words + 1) * sizeof(u64))};
    struct hash_group *groups = realloc(t->groups, (t->group_count + 1) * sizeof *groups);
    if (groups)
        t->groups = groups;
    if (!groups || !fresh.mask || !group_resize(t, &fresh, 8)) {
        free(fresh.mask);
        return NULL;
    }
    memcpy(fresh.mask, mask, words * sizeof(u64));
    memmove(&groups[at + 1], &groups[at], (t->group_count - at) * sizeof *groups);
    groups[at] = fresh;
    t->group_count++;
    return &groups[at];
}

static void group_drop(struct table *t, struct hash_group *g)
{
    free(g->mask);
    free(g->first);
    u32 at = (u32)(g - t->groups);
    t->group_count--;
    memmove(g, g + 1, (t->group_count - at) * sizeof *g);
}

/* A new entry in the group of this mask, unless one with the same words and priority is there. */
static long insert_keyed(struct table *t, const u64 *keyed, const u64 *mask, u32 prefix_len, int priority,
                         struct entry **made)
{
    u32 words = keyed_words(t);
    struct hash_group *g = group_of(t, mask, prefix_len);
    if (!g)
        return TABLE_NO_MEMORY;
    u32 hash = key_hash(keyed, words);
    for (u32 handle = g->first[hash & (g->buckets - 1)]; handle != NO_ENTRY;) {
        const struct entry *other = table_entry(t, handle);
        if (other->priority == priority && key_equal(other->words, keyed, words))
            return TABLE_DUPLICATE;
        handle = other->next;
    }
    if (g->entries >= g->buckets && !group_resize(t, g, 2 * g->buckets))
        return TABLE_NO_MEMORY;
    struct entry *e = allocate(t);
    if (!e)
        return TABLE_NO_MEMORY;
    memcpy(e->words, keyed, words * sizeof(u64));
    e->prefix_len = prefix_len;
    e->priority = priority;
    u32 *head = &g->first[hash & (g->buckets - 1)];
    e->next = *head;
    *head = e->handle;
    g->entries++;
    *made = e;
    return e->handle;
}

static long insert_hashed(struct table *t, const u64 *key, const u64 *mask, u32 prefix_len, struct entry **made)
{
    u32 words = t->info->key_words;
    u64 masked[words + 1];
    for (u32 i = 0; i < words; i++)
        masked[i] = key[i] & mask[i];
    return insert_keyed(t, masked, mask, prefix_len, 0, made);
}

/* Where an entry of this priority and order is, or belongs, among `entries` that are ranked. */
static u32 rank_of(const struct table *t, u32 entries, int priority, u64 order)
{
    u32 low = 0, high = entries;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        const struct entry *e = table_entry(t, t->ranked[middle]);
        if (e->priority > priority || (e->priority == priority && e->order < order))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static long insert_ranked(struct table *t, const u64 *key, const u64 *mask, int priority, struct entry **made)
{
    u32 words = t->info->key_words;
    u64 keyed[2 * words + 1];
    memcpy(keyed, key, words * sizeof(u64));
    memcpy(keyed + words, mask, words * sizeof(u64));
    long handle = insert_keyed(t, keyed, mask, 0, priority, made);
    if (handle < 0)
        return handle;
    u32 at = rank_of(t, t->entries, priority, t->inserted);
    memmove(&t->ranked[at + 1], &t->ranked[at], (t->entries - at) * sizeof *t->ranked);
    t->ranked[at] = (u32)handle;
    return handle;
}

long table_insert(struct table *t, const u64 *key, const u64 *mask, u32 prefix_len, int priority, u32 target, u32 action,
                  const u64 *args)
{
    if (t->entries >= t->info->max_entries)
        return TABLE_FULL;
    struct entry *e = NULL;
    long handle = t->info->kind == TABLE_SCAN ? insert_ranked(t, key, mask, priority, &e)
                                              : insert_hashed(t, key, mask, prefix_len, &e);
    if (handle < 0)
        return handle;
    e->order = t->inserted++;
    t->entries++;
    table_modify(t, e, target, action, args);
    return handle;
}

void table_modify(struct table *t, struct entry *e, u32 target, u32 action, const u64 *args)
{
    e->target = target;
    e->action = action;
    memcpy(entry_args(t, e), args, t->info->args_words * sizeof(u64));
}

void table_delete(struct table *t, struct entry *e)
{
    if (t->info->kind == TABLE_SCAN) {
        u32 at = rank_of(t, t->entries, e->priority, e->order);
        memmove(&t->ranked[at], &t->ranked[at + 1], (t->entries - at - 1) * sizeof *t->ranked);
    }
    struct hash_group *g = t->groups;
    while (g->prefix_len != e->prefix_len)
        g++;
    u32 *link = &g->first[key_hash(e->words, keyed_words(t)) & (g->buckets - 1)];
    while (*link != e->handle)
        link = &table_entry(t, *link)->next;
    *link = e->next;
    if (--g->entries == 0)
        group_drop(t, g);
    t->entries--;
    release(t, e);
}

int table_set_default(struct table *t, u32 action, const u64 *args)
{
    if (!t->fallback) {
        t->fallback = calloc(1, t->stride);
        if (!t->fallback)
            return TABLE_NO_MEMORY;
    }
    t->fallback->action = action;
    t->fallback->target = TARGET_ACTION;
    memcpy(entry_args(t, t->fallback), args, t->info->args_words * sizeof(u64));
    return 0;
}
