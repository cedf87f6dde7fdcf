/* Stateful externs: counters, meters, registers, and the one random stream of a device. */
#pragma once

#include "program/bits.h"

struct counter {
    u64 packets;
    u64 bytes;
};

static inline void counter_add(struct counter *c, u64 bytes)
{
    c->packets++;
    c->bytes += bytes;
}

enum colour { GREEN = 0, YELLOW = 1, RED = 2 };

struct bucket {
    u64 rate; /* units a second */
    u64 burst;
    u64 tokens;
    u128 last; /* tokens generated since time zero, at the last use: at a high rate more than 64 bits hold */
};

/* Two-rate three-colour marker, colour-blind (RFC 2698). */
struct meter {
    bool configured;
    struct bucket committed, peak;
};

static inline u128 bucket_generated(const struct bucket *b, u64 now_ns)
{
    return (u128)now_ns * b->rate / 1000000000u;
}

static inline bool bucket_take(struct bucket *b, u64 size, u64 now_ns)
{
    u128 generated = bucket_generated(b, now_ns);
    if (generated > b->last) {
        u128 fresh = generated - b->last;
        b->tokens = fresh > b->burst || b->tokens > b->burst - fresh ? b->burst : b->tokens + (u64)fresh;
        b->last = generated;
    }
    if (b->tokens < size)
        return false;
    b->tokens -= size;
    return true;
}

static inline u64 meter_colour(struct meter *m, u64 size, u64 now_ns)
{
    if (!m->configured)
        return GREEN;
    if (!bucket_take(&m->peak, size, now_ns))
        return RED;
    return bucket_take(&m->committed, size, now_ns) ? GREEN : YELLOW;
}

static inline void meter_configure(struct meter *m, u64 cir, u64 cburst, u64 pir, u64 pburst, u64 now_ns)
{
    m->configured = true;
    m->committed = (struct bucket){.rate = cir, .burst = cburst, .tokens = cburst};
    m->peak = (struct bucket){.rate = pir, .burst = pburst, .tokens = pburst};
    m->committed.last = bucket_generated(&m->committed, now_ns);
    m->peak.last = bucket_generated(&m->peak, now_ns);
}

/* splitmix64 (Steele, Lea, Flood 2014) */
static inline u64 random_next(u64 *state)
{
    u64 z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
