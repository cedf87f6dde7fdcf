/* CRC-32 as Ethernet's, reflected: by eight tables, or by carry-less multiplication where the processor has it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { BY_TABLES, NARROWLY, WIDELY };
static int means = BY_TABLES; /* the best of these that the processor has */

static uint32_t table[8][256];

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
        table[0][i] = crc;
    }
    for (int t = 1; t < 8; t++)
        for (uint32_t i = 0; i < 256; i++)
            table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 255];
}

static uint32_t crc_by_tables(uint32_t crc, const uint8_t *at, size_t count)
{
    for (; count >= 8; at += 8, count -= 8) {
        uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
              table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    }
    while (count--)
        crc = table[0][(crc ^ *at++) & 255] ^ crc >> 8;
    return crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define UNROLLED _Pragma("GCC unroll 4") /* else -O2 keeps the sums in memory */
#define MULTIPLYING __attribute__((target("pclmul,sse4.1")))

MULTIPLYING static __m128i folded(__m128i sum, __m128i powers, __m128i more)
{
    __m128i low = _mm_clmulepi64_si128(sum, powers, 0x00), high = _mm_clmulepi64_si128(sum, powers, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), more);
}

MULTIPLYING static __m128i load(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

enum { LANES = 8, WIDE_BYTES = 128 };

/* What has been summed up counts at its distance from the bytes ahead: of n bytes, x^(8n + 32) and x^(8n - 32) modulo the
 * polynomial for the two halves of a sum, reflected, and shifted up by one. */
#define BY_128 _mm_set_epi64x(0x14a7fe880, 0x1e88ef372)
#define BY_64 _mm_set_epi64x(0x1c6e41596, 0x154442bd4)
#define BY_16 _mm_set_epi64x(0x0ccaa009e, 0x1751997d0)

/* The sums of as many times 128 bytes as there are, two in a register; returns how many bytes that were. */
__attribute__((target("vpclmulqdq,avx2"))) static size_t sum_widely(__m128i sum[LANES], const uint8_t *at, size_t count)
{
    const __m256i powers = _mm256_broadcastsi128_si256(BY_128), *from = (const __m256i *)(const void *)at;
    __m256i wide[LANES / 2];
    size_t done = WIDE_BYTES;
    UNROLLED
    for (int i = 0; i < LANES / 2; i++)
        wide[i] = _mm256_loadu_si256(from + i);
    wide[0] = _mm256_xor_si256(wide[0], _mm256_zextsi128_si256(sum[0]));
    for (; count - done >= WIDE_BYTES; done += WIDE_BYTES) {
        from += LANES / 2;
        UNROLLED
        for (int i = 0; i < LANES / 2; i++) {
            __m256i low = _mm256_clmulepi64_epi128(wide[i], powers, 0x00);
            __m256i high = _mm256_clmulepi64_epi128(wide[i], powers, 0x11);
            wide[i] = _mm256_xor_si256(_mm256_xor_si256(low, high), _mm256_loadu_si256(from + i));
        }
    }
    UNROLLED
    for (int i = 0; i < LANES / 2; i++)
        _mm256_storeu_si256((__m256i *)(void *)(sum + 2 * i), wide[i]);
    return done;
}

MULTIPLYING static size_t sum_narrowly(__m128i sum[LANES], const uint8_t *at, size_t count)
{
    size_t done = 64;
    sum[0] = _mm_xor_si128(sum[0], load(at));
    UNROLLED
    for (int i = 1; i < 4; i++)
        sum[i] = load(at + 16 * i);
    for (; count - done >= 64; done += 64)
        UNROLLED
        for (int i = 0; i < 4; i++)
            sum[i] = folded(sum[i], BY_64, load(at + done + 16 * i));
    return done;
}

/* At least 64 bytes. */
MULTIPLYING static uint32_t crc_by_multiplying(uint32_t crc, const uint8_t *at, size_t count)
{
    __m128i sum[LANES] = {_mm_cvtsi32_si128((int)crc)};
    uint8_t rest[16];
    int widely = means >= WIDELY && count >= WIDE_BYTES;
    size_t done = widely ? sum_widely(sum, at, count) : sum_narrowly(sum, at, count);
    for (int i = 1; i < (widely ? LANES : 4); i++)
        sum[0] = folded(sum[0], BY_16, sum[i]);
    for (at += done, count -= done; count >= 16; at += 16, count -= 16)
        sum[0] = folded(sum[0], BY_16, load(at));
    _mm_storeu_si128((__m128i *)(void *)rest, sum[0]);
    return crc_by_tables(crc_by_tables(0, rest, sizeof rest), at, count);
}

static void find_instructions(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"))
        means = __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2") ? WIDELY : NARROWLY;
}

static uint32_t crc_inside(uint32_t crc, const uint8_t *at, size_t count)
{
    return means >= NARROWLY && count >= 64 ? crc_by_multiplying(crc, at, count) : crc_by_tables(crc, at, count);
}
#else
static void find_instructions(void) {}

static uint32_t crc_inside(uint32_t crc, const uint8_t *at, size_t count)
{
    return crc_by_tables(crc, at, count);
}
#endif

/* As zlib.crc32. */
static uint32_t crc_of(const uint8_t *at, size_t count, uint32_t crc)
{
    return ~crc_inside(~crc, at, count);
}
