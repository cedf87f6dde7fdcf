/* Match-action tables. A key is a vector of 64-bit words: each match field takes as many words as it needs, least
 * significant first. Look-ups are inline so that the compiler can unroll them for a table's key. */
#pragma once

#include "program/extern.h"
#include "program/program.h"

enum { NO_ENTRY = UINT32_MAX, NO_ACTION = UINT32_MAX };
enum target_kind { TARGET_ACTION, TARGET_MEMBER, TARGET_GROUP };

/* What an entry, or an action profile's member, does. */
struct entry {
    u32 handle;
    u32 next;       /* in its hash bucket, or in the free list */
    u32 action;     /* number in the program; for a member or group its slot in the profile */
    u32 target;     /* enum target_kind */
    u32 prefix_len; /* names its hash group */
    int priority;   /* larger wins */
    u64 order;      /* of insertion: earlier wins between equal priorities */
    struct counter count;
    struct meter *meter;
    u64 live : 1;
    u64 hit_ns : 63; /* when a packet last found it, in tables with idle timeouts */
    u64 words[]; /* key, then mask (or high end of a range), then action data */
};

/* Entries whose keys have the same mask: all of an exact table, or one prefix length of an LPM table. Those of a
 * TABLE_SCAN are one group, which finds duplicates. */
struct hash_group {
    u64 *mask;
    u32 prefix_len;
    u32 entries;
    u32 buckets; /* a power of two */
    u32 *first;
};

struct table {
    const struct table_info *info;
    u8 *storage;
    u32 stride;
    u32 capacity;
    u32 used; /* slots handed out so far */
    u32 free;
    u32 entries;
    u64 inserted;
    struct hash_group *groups; /* longest prefix first */
    u32 group_count;
    u32 *ranked; /* TABLE_SCAN: the handles, best first */
    struct entry *fallback; /* the default action */
};

static inline struct entry *table_entry(const struct table *t, u32 handle)
{
    return (struct entry *)(void *)(t->storage + (size_t)handle * t->stride);
}

static inline u64 *entry_args(const struct table *t, struct entry *e)
{
    return e->words + 2 * t->info->key_words;
}

static inline u32 key_hash(const u64 *key, u32 words)
{
    u64 h = 0;
    for (u32 i = 0; i < words; i++) {
        h = (h ^ key[i]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return (u32)(h >> 32 ^ h);
}

static inline bool key_equal(const u64 *a, const u64 *b, u32 words)
{
    u64 difference = 0;
    for (u32 i = 0; i < words; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

static inline struct entry *group_find(const struct table *t, const struct hash_group *g, const u64 *key, u32 words)
{
    u32 handle = g->first[key_hash(key, words) & (g->buckets - 1)];
    while (handle != NO_ENTRY) {
        struct entry *e = table_entry(t, handle);
        if (key_equal(e->words, key, words))
            return e;
        handle = e->next;
    }
    return NULL;
}

static inline struct entry *table_exact(const struct table *t, const u64 *key, u32 words)
{
    return t->group_count ? group_find(t, t->groups, key, words) : NULL;
}

static inline struct entry *table_lpm(const struct table *t, const u64 *key, u32 words)
{
    for (u32 g = 0; g < t->group_count; g++) {
        u64 masked[words];
        for (u32 i = 0; i < words; i++)
            masked[i] = key[i] & t->groups[g].mask[i];
        struct entry *e = group_find(t, &t->groups[g], masked, words);
        if (e)
            return e;
    }
    return NULL;
}

/* The first entry in rank that `matches(key, entry words, entry masks)`. */
static inline struct entry *table_scan(const struct table *t, const u64 *key,
                                       bool (*matches)(const u64 *, const u64 *, const u64 *))
{
    for (u32 i = 0; i < t->entries; i++) {
        struct entry *e = table_entry(t, t->ranked[i]);
        if (matches(key, e->words, e->words + t->info->key_words))
            return e;
    }
    return NULL;
}

void table_open(struct table *t, const struct table_info *info);
void table_close(struct table *t);
/* Returns the new entry's handle, or one of the negative codes. */
enum { TABLE_FULL = -1, TABLE_DUPLICATE = -2, TABLE_NO_MEMORY = -3, TABLE_NO_SUCH = -4,
       TABLE_WEIGHTS = -5 };
long table_insert(struct table *t, const u64 *key, const u64 *mask, u32 prefix_len, int priority, u32 target, u32 action,
                  const u64 *args);
void table_modify(struct table *t, struct entry *e, u32 target, u32 action, const u64 *args);
void table_delete(struct table *t, struct entry *e);
/* action NO_ACTION: a miss runs nothing. */
int table_set_default(struct table *t, u32 action, const u64 *args);
