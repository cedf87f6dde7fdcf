#include "device/access.h"

#include <stdlib.h>

static struct table *table_at(struct device *d, u32 number)
{
    return d->program && number < d->program->tables ? &d->tables[number] : NULL;
}

static struct entry *entry_at(struct device *d, u32 number, u64 handle)
{
    struct table *t = table_at(d, number);
    if (!t || handle >= t->used)
        return NULL;
    struct entry *e = table_entry(t, (u32)handle);
    return e->live ? e : NULL;
}

/* Entries of indirect tables hold slots, not ids, and use them until `let_go`. */
static long resolve(struct device *d, const struct table *t, u32 kind, u32 action)
{
    if (kind == TARGET_ACTION)
        return action;
    if (t->info->profile < 0)
        return TABLE_NO_SUCH;
    return profile_use(&d->profiles[t->info->profile], kind, action);
}

static void let_go(struct device *d, const struct table *t, u32 kind, u32 target)
{
    if (kind != TARGET_ACTION)
        profile_release(&d->profiles[t->info->profile], kind, target);
}

long access_insert(struct device *d, u32 table, const u64 *key, const u64 *mask, u32 prefix_len, int priority, u32 kind,
                   u32 action, const u64 *args)
{
    struct table *t = table_at(d, table);
    long target = t ? resolve(d, t, kind, action) : TABLE_NO_SUCH;
    if (target < 0)
        return target;
    long handle = table_insert(t, key, mask, prefix_len, priority, kind, (u32)target, args);
    if (handle < 0)
        let_go(d, t, kind, (u32)target);
    return handle;
}

int access_modify(struct device *d, u32 table, u32 handle, u32 kind, u32 action, const u64 *args)
{
    struct table *t = table_at(d, table);
    struct entry *e = entry_at(d, table, handle);
    long target = e ? resolve(d, t, kind, action) : TABLE_NO_SUCH;
    if (target < 0)
        return (int)target;
    let_go(d, t, e->target, e->action);
    table_modify(t, e, kind, (u32)target, args);
    return 0;
}

int access_delete(struct device *d, u32 table, u32 handle)
{
    struct table *t = table_at(d, table);
    struct entry *e = entry_at(d, table, handle);
    if (!e)
        return TABLE_NO_SUCH;
    let_go(d, t, e->target, e->action);
    table_delete(t, e);
    return 0;
}

int access_set_default(struct device *d, u32 table, u32 action, const u64 *args)
{
    struct table *t = table_at(d, table);
    return t ? table_set_default(t, action, args) : TABLE_NO_SUCH;
}

int access_set_member(struct device *d, u32 profile, u32 id, u32 action, const u64 *args)
{
    if (!d->program || profile >= d->program->profiles)
        return TABLE_NO_SUCH;
    return profile_set_member(&d->profiles[profile], id, action, args);
}

int access_set_group(struct device *d, u32 profile, u32 id, const u32 *members, const u32 *weights, u32 count)
{
    if (!d->program || profile >= d->program->profiles)
        return TABLE_NO_SUCH;
    return profile_set_group(&d->profiles[profile], id, members, weights, count);
}

int access_counter(struct device *d, bool direct, u32 number, u64 index, bool write, u64 *packets, u64 *bytes)
{
    struct counter *cell = NULL;
    if (direct) {
        struct entry *e = entry_at(d, number, index);
        cell = e ? &e->count : NULL;
    } else if (d->program && number < d->program->counters && index < d->program->counter[number].size) {
        cell = &d->counters[number][index];
    }
    if (!cell)
        return -1;
    if (write) {
        cell->packets = *packets;
        cell->bytes = *bytes;
    }
    *packets = cell->packets;
    *bytes = cell->bytes;
    return 0;
}

void access_packet_counts(struct device *d, u32 number, u64 first, u64 count, u64 *packets)
{
    for (u64 i = 0; i < count; i++)
        packets[i] = d->counters[number][first + i].packets;
}

int access_meter(struct device *d, bool direct, u32 number, u64 index, const u64 *rates)
{
    struct meter *cell = NULL;
    if (direct) {
        struct entry *e = entry_at(d, number, index);
        if (e && !e->meter)
            e->meter = calloc(1, sizeof *e->meter);
        cell = e ? e->meter : NULL;
    } else if (d->program && number < d->program->meters && index < d->program->meter[number].size) {
        cell = &d->meters[number][index];
    }
    if (!cell)
        return -1;
    if (rates)
        meter_configure(cell, rates[0], rates[1], rates[2], rates[3], d->now_ns);
    else
        *cell = (struct meter){0};
    return 0;
}

int access_register(struct device *d, u32 number, u64 index, bool write, u64 *words)
{
    if (!d->program || number >= d->program->registers || index >= d->program->reg[number].size)
        return -1;
    u32 count = d->program->reg[number].words;
    u64 *cell = d->registers[number] + index * count;
    if (write)
        memcpy(cell, words, count * sizeof *cell);
    else
        memcpy(words, cell, count * sizeof *cell);
    return 0;
}

long access_last_hit(struct device *d, u32 table, u32 handle)
{
    const struct entry *e = entry_at(d, table, handle);
    return e ? (long)e->hit_ns : -1;
}

u32 access_digest(struct device *d, u8 *out, u32 *bytes)
{
    struct packet *p = device_take_digest(d);
    if (!p)
        return 0;
    u32 list = p->port_out;
    *bytes = p->length;
    memcpy(out, p->data, p->length);
    pool_give(d->pool, p);
    return list;
}

u32 access_collect(struct device *d, u64 now_ns, u8 *out, u32 room)
{
    struct record {
        u64 t_ns;
        u32 port;
        u32 length;
    };
    u32 used = 0;
    device_advance(d, now_ns);
    for (;;) {
        const struct packet *next = d->leaving.count ? d->leaving.item[0].what : NULL;
        if (!next || next->t_ns > now_ns || used + sizeof(struct record) + (next->length + 7) / 8 * 8 > room)
            return used;
        struct packet *p = device_take(d, now_ns);
        struct record record = {p->t_ns, p->port_out, p->length};
        memcpy(out + used, &record, sizeof record);
        memcpy(out + used + sizeof record, p->data, p->length);
        used += (u32)sizeof record + (p->length + 7) / 8 * 8;
        pool_give(d->pool, p);
    }
}
