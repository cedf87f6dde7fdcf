/* The hash algorithms of v1model, as BMv2 computes them. */
#pragma once

#include "program/bits.h"

/* A reflected CRC, four bits at a time: `polynomial` is bit-reversed. */
static inline u32 crc_reflected(const u8 *input, size_t bytes, u32 polynomial, u32 remainder)
{
    u32 step[16];
    for (u32 i = 0; i < 16; i++) {
        step[i] = i;
        for (int bit = 0; bit < 4; bit++)
            step[i] = step[i] >> 1 ^ (step[i] & 1 ? polynomial : 0);
    }
    for (size_t i = 0; i < bytes; i++) {
        remainder ^= input[i];
        remainder = remainder >> 4 ^ step[remainder & 15];
        remainder = remainder >> 4 ^ step[remainder & 15];
    }
    return remainder;
}

static inline u64 hash_crc32(const u8 *input, size_t bytes)
{
    return crc_reflected(input, bytes, 0xEDB88320u, 0xFFFFFFFFu) ^ 0xFFFFFFFFu;
}

static inline u64 hash_crc16(const u8 *input, size_t bytes)
{
    return crc_reflected(input, bytes, 0xA001u, 0);
}

/* CRC-CCITT with initial value 0xFFFF, not reflected. */
static inline u64 hash_ccitt(const u8 *input, size_t bytes)
{
    u32 remainder = 0xFFFF;
    for (size_t i = 0; i < bytes; i++) {
        remainder ^= (u32)input[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            remainder = (remainder << 1 ^ (remainder & 0x8000 ? 0x1021 : 0)) & 0xFFFF;
    }
    return remainder;
}

/* The Internet checksum (RFC 1071), an odd last byte padded with zero. */
static inline u64 hash_csum16(const u8 *input, size_t bytes)
{
    u64 sum = 0;
    size_t i = 0;
    for (; i + 1 < bytes; i += 2)
        sum += load16(input + i);
    if (i < bytes)
        sum += (u64)input[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return ~sum & 0xFFFF;
}

/* The first eight bytes, or fewer, as a number. */
static inline u64 hash_identity(const u8 *input, size_t bytes)
{
    u64 value = 0;
    for (size_t i = 0; i < bytes && i < 8; i++)
        value = value << 8 | input[i];
    return value;
}

/* The sum without carry of `width`-byte words, the last padded with zeros behind. */
static inline u64 hash_xor(const u8 *input, size_t bytes, size_t width)
{
    u64 value = 0;
    for (size_t i = 0; i < bytes; i++)
        value ^= (u64)input[i] << (8 * (width - 1 - i % width));
    return value;
}

static inline u64 hash_xor16(const u8 *input, size_t bytes)
{
    return hash_xor(input, bytes, 2);
}

static inline u64 hash_xor32(const u8 *input, size_t bytes)
{
    return hash_xor(input, bytes, 4);
}
