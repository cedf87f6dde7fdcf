/* What emitted programs are written in: included by them and by nothing else. */
#pragma once

#include "device/device.h"
#include "program/hash.h"

#define HEADERS(p) ((struct headers *)(void *)(p)->headers)

#define PARSER_ERROR(code)                                                                                             \
    do {                                                                                                               \
        error = (code);                                                                                                \
        goto done;                                                                                                     \
    } while (0)

/* The parser wants bytes that are not there. In a frame whose payload is counted they would be payload. */
#define PACKET_TOO_SHORT(code)                                                                                         \
    do {                                                                                                               \
        d->wants_payload |= p->stored < p->length;                                                                     \
        PARSER_ERROR(code);                                                                                            \
    } while (0)

/* Two-word action arguments and register cells, least significant word first. */
#define ARG128(p) ((u128)(p)[1] << 64 | (p)[0])

static inline u64 REGISTER_AT(const struct device *d, u32 number, u64 size, u64 index)
{
    return index < size ? d->registers[number][index] : 0;
}

static inline bool VALUE_SET_HAS(const struct device *d, u32 number, const u64 *key, u32 words)
{
    if (number >= d->value_set_count)
        return false;
    const struct value_set *set = &d->value_sets[number];
    for (u32 i = 0; set->words == words && i < set->count; i++)
        if (!memcmp(set->members + (size_t)i * set->words, key, set->words * sizeof *key))
            return true;
    return false;
}

/* Two's complement reading of the low `bits` bits. */
#define SIGNED(x, bits) ((i128)((u128)(x) << (128 - (bits))) >> (128 - (bits)))

/* Functions, since a macro that names an operand twice doubles the text of what is nested in it. */
static inline i128 AT_LEAST_I128(i128 x, i128 low)
{
    return x < low ? low : x;
}

static inline u64 AT_MOST_U64(u64 x, u64 high)
{
    return x > high ? high : x;
}

static inline u128 AT_MOST_U128(u128 x, u128 high)
{
    return x > high ? high : x;
}

static inline i128 AT_MOST_I128(i128 x, i128 high)
{
    return x > high ? high : x;
}

/* Dividing by zero gives zero, in both engines. */
static inline u64 DIVIDE_U64(u64 a, u64 b)
{
    return b ? a / b : 0;
}

static inline u128 DIVIDE_U128(u128 a, u128 b)
{
    return b ? a / b : 0;
}

static inline u64 REMAINDER_U64(u64 a, u64 b)
{
    return b ? a % b : 0;
}

static inline u128 REMAINDER_U128(u128 a, u128 b)
{
    return b ? a % b : 0;
}

static inline u64 SHIFT_LEFT_U64(u64 x, u64 by)
{
    return by < 64 ? x << by : 0;
}

static inline u128 SHIFT_LEFT_U128(u128 x, u64 by)
{
    return by < 128 ? x << by : 0;
}

static inline i128 SHIFT_LEFT_I128(i128 x, u64 by)
{
    return by < 128 ? (i128)((u128)x << by) : 0;
}

static inline u64 SHIFT_RIGHT_U64(u64 x, u64 by)
{
    return by < 64 ? x >> by : 0;
}

static inline u128 SHIFT_RIGHT_U128(u128 x, u64 by)
{
    return by < 128 ? x >> by : 0;
}

static inline i128 SHIFT_RIGHT_I128(i128 x, u64 by)
{
    return x >> (by < 127 ? by : 127);
}

/* Word `place` (0 is the least significant) of the big-endian number in `size` bytes at p. */
static inline u64 load_tail(const u8 *p, size_t size, size_t place)
{
    u64 word = 0;
    size_t end = size - 8 * place, start = end > 8 ? end - 8 : 0;
    for (size_t i = start; i < end; i++)
        word = word << 8 | p[i];
    return word;
}

/* The low `size` bytes of the number in `words`, big-endian. */
static inline void store_words(u8 *p, const u64 *words, size_t size)
{
    for (size_t i = 0; i < size; i++)
        p[size - 1 - i] = (u8)(words[i / 8] >> (8 * (i % 8)));
}

/* The `bytes` bytes that begin `offset` bits after p. */
static inline void load_bytes(u8 *to, size_t bytes, const u8 *p, size_t offset)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (u8)load_bits(p, offset + 8 * i, 8);
}

static inline void store_bytes(u8 *p, size_t offset, size_t bytes, const u8 *from)
{
    for (size_t i = 0; i < bytes; i++)
        store_bits(p, offset + 8 * i, 8, from[i]);
}

/* Append to the zeroed input of a hash. */
static inline void put_bits(u8 *input, size_t *at, unsigned bits, u128 value)
{
    if (*at % 8 == 0 && bits == 16)
        store16(input + *at / 8, (u64)value);
    else if (*at % 8 == 0 && bits == 32)
        store32(input + *at / 8, (u64)value);
    else if (*at % 8 == 0 && bits == 128)
        store128(input + *at / 8, value);
    else
        store_bits(input, *at, bits, value);
    *at += bits;
}

static inline void put_bytes(u8 *input, size_t *at, size_t bytes, const u8 *value)
{
    for (size_t i = 0; i < bytes; i++)
        put_bits(input, at, 8, value[i]);
}

/* Are two big-endian numbers of any lengths equal? */
static inline bool numbers_equal(const u8 *a, size_t a_bytes, const u8 *b, size_t b_bytes)
{
    for (; a_bytes > b_bytes; a_bytes--)
        if (*a++)
            return false;
    for (; b_bytes > a_bytes; b_bytes--)
        if (*b++)
            return false;
    return !memcmp(a, b, a_bytes);
}

/* The bytes behind the parsed headers, cut to the packet's truncation. */
static inline size_t put_payload(struct device *d, const struct packet *p, u8 *input)
{
    u32 bytes = p->length - p->parsed;
    if (bytes > p->limit)
        bytes = p->limit;
    if (bytes > FRAME_MAX)
        bytes = FRAME_MAX;
    u32 stored = p->stored - p->parsed;
    if (bytes > stored) {
        d->wants_payload = true;
        memset(input + stored, 0, bytes - stored);
    }
    memcpy(input, p->data + p->parsed, AT_MOST_U64(bytes, stored));
    return bytes;
}
