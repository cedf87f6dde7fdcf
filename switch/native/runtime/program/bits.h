/* Integer types, big-endian loads and stores, and branch hints. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the native switch is written for little-endian machines"
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Have memory that is written or read soon brought to the cache meanwhile. Any address will do. */
static inline void fetch(const void *from, u32 bytes)
{
    enum { LINE = 64 };
    for (u32 at = 0; at < bytes; at += LINE)
        __builtin_prefetch((const u8 *)from + at, 1);
}

static inline u64 lesser(u64 a, u64 b)
{
    return a < b ? a : b;
}

static inline u64 greater(u64 a, u64 b)
{
    return a > b ? a : b;
}

/* What so many units take at a rate a second, rounded up; 0 for no rate, which is no limit. */
static inline u64 interval_ns(u64 units, u64 rate)
{
    return rate ? (u64)(((u128)units * 1000000000u + rate - 1) / rate) : 0;
}

/* load16 and store16, load32 and store32, load64 and store64: words in network byte order. */
#define WORD(bits)                                      \
    static inline u64 load##bits(const u8 *p)           \
    {                                                   \
        u##bits v;                                      \
        memcpy(&v, p, sizeof v);                        \
        return __builtin_bswap##bits(v);                \
    }                                                   \
                                                        \
    static inline void store##bits(u8 *p, u64 v)        \
    {                                                   \
        u##bits w = __builtin_bswap##bits((u##bits)v);  \
        memcpy(p, &w, sizeof w);                        \
    }

WORD(16)
WORD(32)
WORD(64)

static inline u128 load128(const u8 *p)
{
    return (u128)load64(p) << 64 | load64(p + 8);
}

static inline void store128(u8 *p, u128 v)
{
    store64(p, (u64)(v >> 64));
    store64(p + 8, (u64)v);
}

/* `bits` (at most 128) bits that begin `offset` bits after `p`, most significant first. */
static inline u128 load_bits(const u8 *p, size_t offset, unsigned bits)
{
    u128 value = 0;
    p += offset / 8;
    unsigned skip = offset % 8, left = bits;
    while (left) {
        unsigned have = 8 - skip, take = left < have ? left : have;
        value = value << take | (((unsigned)*p >> (have - take)) & ((1u << take) - 1));
        left -= take;
        skip = 0;
        p++;
    }
    return value;
}

/* Write `bits` (at most 128) bits `offset` bits after `p`; the bits around them keep their values. */
static inline void store_bits(u8 *p, size_t offset, unsigned bits, u128 value)
{
    p += offset / 8;
    unsigned skip = offset % 8, left = bits;
    while (left) {
        unsigned have = 8 - skip, take = left < have ? left : have;
        unsigned mask = ((1u << take) - 1) << (have - take);
        unsigned part = (unsigned)(value >> (left - take)) << (have - take);
        *p = (u8)((*p & ~mask) | (part & mask));
        left -= take;
        skip = 0;
        p++;
    }
}
