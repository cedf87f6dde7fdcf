/* The codec's hottest calls in C, which the compiled endpoint calls directly: the declared ones of `codec_direct.h`.
 *
 * `endpoint/nic/codec.py` says what they take and give. Python beside each call does the same where there is no build,
 * and serves every frame that is not usual. Nothing here counts, logs or keeps state between calls.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "codec_direct.h"
#include "crc32.h"
#include "layouts.h"

/* --- bytes ---------------------------------------------------------------------------------------------------------- */

static uint32_t get16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t get32(const uint8_t *at)
{
    return get16(at) << 16 | get16(at + 2);
}

static uint64_t get64(const uint8_t *at)
{
    return (uint64_t)get32(at) << 32 | get32(at + 4);
}

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void put64(uint8_t *at, uint64_t value)
{
    put32(at, (uint32_t)(value >> 32));
    put32(at + 4, (uint32_t)value);
}

static void put32_little(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* --- the ICRC's beginning -------------------------------------------------------------------------------------------- */

static uint32_t icrc_start; /* the CRC's state after the mask of a local route header and the first word of IPv6 */

__attribute__((constructor)) static void start_icrc(void)
{
    make_tables();
    find_instructions();
    static const uint8_t ones[12] = {255, 255, 255, 255, 255, 255, 255, 255, 0x6F, 255, 255, 255};
    icrc_start = crc_of(ones, sizeof ones, 0);
}

/* --- read ----------------------------------------------------------------------------------------------------------- */

/* Where the fields of a frame are that has an outer IPv6 header, and how much of it the ICRC has in masked form. */
enum {
    ETHERTYPE = 12, OUTER = 14, OUTER_NEXT = 20, OUTER_DST = 38, INNER = 54, LENGTH = 58, INNER_NEXT = 60,
    DST = 78, DPORT = 96, OPCODE = 102, FLAGS = OPCODE + BTH_FLAGS, BEHIND_BTH = OPCODE + BTH_BYTES,
    MASKED = BEHIND_BTH - LENGTH, ADDRESS = 16, IMMEDIATE = 4, ICRC = 4, SMALLEST = BEHIND_BTH + AETH_BYTES + ICRC,
    HEAD = BTH_BYTES + METH_BYTES + RETH_BYTES
};

/* Whether a frame is long enough for the headers of its opcode, if the opcode is a usual one. */
static int has_headers(const uint8_t *at, Py_ssize_t size)
{
    if (size < SMALLEST)
        return 0;
    Py_ssize_t behind = size - BEHIND_BTH - ICRC;
    switch (at[OPCODE]) {
    case OP_ACKNOWLEDGE: return 1;
    case OP_ENDPOINT_REQUEST: return behind >= ERTH_BYTES;
    case OP_ENDPOINT_RESPONSE: return behind >= EETH_BYTES;
    case OP_SACK: return behind >= SETH_BYTES + CCSTATE_BYTES;
    default: return at[OPCODE] >= OP_WRITE_FIRST && at[OPCODE] <= OP_WRITE_ONLY_IMM && behind >= METH_BYTES + RETH_BYTES;
    }
}

/* Whether a frame is as long as it says, or with `counted` a write that is as long with the payload that it leaves out. */
static int has_its_length(const uint8_t *at, Py_ssize_t size, int counted)
{
    Py_ssize_t length = (Py_ssize_t)get16(at + LENGTH) + 94;
    Py_ssize_t immediate = at[OPCODE] == OP_WRITE_LAST_IMM || at[OPCODE] == OP_WRITE_ONLY_IMM ? IMMEDIATE : 0;
    return length == size || (counted && length > size && at[OPCODE] <= OP_WRITE_ONLY_IMM &&
                              size == OPCODE + HEAD + immediate + ICRC);
}

/* A frame with an outer header, as long as it says, without trim and TSETH. It has its headers. */
static int is_usual(const uint8_t *at, Py_ssize_t size, uint64_t trimmed, int counted)
{
    return get16(at + ETHERTYPE) == 0x86DD && at[OUTER_NEXT] == 41 && at[INNER_NEXT] == 17 && at[OUTER] >> 4 == 6 &&
           at[INNER] >> 4 == 6 && !(trimmed >> (get32(at + OUTER) >> 22 & 0x3F) & 1) && !(at[FLAGS] & 0x10) &&
           has_its_length(at, size, counted);
}

static int is_one_of(const uint8_t *destination, const uint8_t *addresses, Py_ssize_t size)
{
    for (Py_ssize_t at = 0; at + ADDRESS <= size; at += ADDRESS)
        if (!memcmp(destination, addresses + at, ADDRESS))
            return 1;
    return 0;
}

/* Whether the ICRC is right. At least SMALLEST bytes. */
static int is_whole(const uint8_t *at, Py_ssize_t size)
{
    uint8_t masked[MASKED], sent[4];
    memcpy(masked, at + LENGTH, MASKED);
    masked[3] = masked[42] = masked[43] = masked[48] = 0xFF; /* hop limit, UDP checksum, variant */
    uint32_t crc = crc_of(masked, MASKED, icrc_start);
    put32_little(sent, crc_of(at + BEHIND_BTH, (size_t)(size - BEHIND_BTH - 4), crc));
    return !memcmp(sent, at + size - 4, 4);
}

/* --- integers and frames of compiled Python --------------------------------------------------------------------------- */

enum { IS_OBJECT = 1, EXCEPTION = 1, BOOL_EXCEPTION = 2 };

static PyObject *wrong_arguments(const char *what)
{
    PyErr_Format(PyExc_TypeError, "codec_native: %s", what);
    return NULL;
}

/* Raises OverflowError for a number outside of 0 to `most`, as `struct` raises `struct.error`. */
static int number_from(size_t integer, uint64_t most, const char *of, int field, uint64_t *number)
{
    if (integer & IS_OBJECT) {
        *number = PyLong_AsUnsignedLongLong((PyObject *)(integer - IS_OBJECT));
        if (PyErr_Occurred())
            return 0;
    } else
        *number = (uint64_t)((Py_ssize_t)integer >> 1); /* a negative number is above every `most` but the largest */
    if (*number > most || (!(integer & IS_OBJECT) && (Py_ssize_t)integer < 0)) {
        PyErr_Format(PyExc_OverflowError, "codec_native: field %d of %s is too large: %llu", field, of,
                     (unsigned long long)*number);
        return 0;
    }
    return 1;
}

/* A number of 16 bits with a sign, as two's complement. */
static int signed_from(size_t integer, const char *of, int field, uint64_t *number)
{
    if (!(integer & IS_OBJECT) && (Py_ssize_t)integer >> 1 >= INT16_MIN && (Py_ssize_t)integer < 0) {
        *number = (uint16_t)((Py_ssize_t)integer >> 1);
        return 1;
    }
    return number_from(integer, INT16_MAX, of, field, number);
}

/* Raises OverflowError for what no memory is large enough for. */
static int size_from(size_t integer, Py_ssize_t *size)
{
    if (!(integer & IS_OBJECT)) {
        *size = (Py_ssize_t)integer >> 1;
        return 1;
    }
    *size = PyLong_AsSsize_t((PyObject *)(integer - IS_OBJECT));
    return !PyErr_Occurred();
}

/* The bytes of a frame for `frame_done`; 0 for an exception. Most frames are Python's `bytes`, and cost nothing. */
static int frame_bytes(PyObject *frame, Py_buffer *buffer)
{
    buffer->obj = NULL;
    if (!PyBytes_CheckExact(frame))
        return !PyObject_GetBuffer(frame, buffer, PyBUF_SIMPLE);
    buffer->buf = PyBytes_AS_STRING(frame);
    buffer->len = PyBytes_GET_SIZE(frame);
    return 1;
}

static void frame_done(Py_buffer *buffer)
{
    if (buffer->obj)
        PyBuffer_Release(buffer);
}

/* --- reading ----------------------------------------------------------------------------------------------------------- */

char codec_usual(PyObject *frame, PyObject *address, PyObject *addresses, size_t trimmed, size_t port, char counted)
{
    uint64_t trimmed_bits, udp_port;
    Py_buffer bytes;
    if (!number_from(trimmed, UINT64_MAX, "usual", 3, &trimmed_bits) ||
        !number_from(port, UINT16_MAX, "usual", 4, &udp_port) || !frame_bytes(frame, &bytes))
        return BOOL_EXCEPTION;
    const uint8_t *at = bytes.buf;
    char usual = has_headers(at, bytes.len) && is_usual(at, bytes.len, trimmed_bits, counted) &&
                 !memcmp(at + DST, PyBytes_AS_STRING(address), ADDRESS) && get16(at + DPORT) == udp_port &&
                 is_one_of(at + OUTER_DST, (const uint8_t *)PyBytes_AS_STRING(addresses), PyBytes_GET_SIZE(addresses)) &&
                 is_whole(at, bytes.len);
    frame_done(&bytes);
    return usual;
}

char codec_has(PyObject *frame, size_t at, PyObject *part)
{
    Py_ssize_t start, size = PyBytes_GET_SIZE(part);
    Py_buffer bytes;
    if (!size_from(at, &start) || !frame_bytes(frame, &bytes))
        return BOOL_EXCEPTION;
    char has = start >= 0 && start <= bytes.len && size <= bytes.len - start &&
               !memcmp((const uint8_t *)bytes.buf + start, PyBytes_AS_STRING(part), (size_t)size);
    frame_done(&bytes);
    return has;
}

/* `size` bytes of a frame, at most 8, as a number; 0 for an exception. */
static int bytes_from(PyObject *frame, size_t at, Py_ssize_t size, uint64_t *number)
{
    Py_ssize_t start;
    Py_buffer bytes;
    if (!size_from(at, &start) || !frame_bytes(frame, &bytes))
        return 0;
    int inside = start >= 0 && size <= bytes.len && start <= bytes.len - size;
    if (inside) {
        const uint8_t *first = (const uint8_t *)bytes.buf + start;
        *number = size == 2 ? get16(first) : size == 4 ? get32(first) : get64(first);
    } else
        PyErr_Format(PyExc_IndexError, "codec_native: no %zd bytes from byte %zd on in a frame of %zd", size, start, bytes.len);
    frame_done(&bytes);
    return inside;
}

/* The first of `size` bytes, where a frame is Python's `bytes` and has them all, as nearly always; else NULL. */
static inline const uint8_t *quickly(PyObject *frame, size_t at, size_t size)
{
    int known = PyBytes_CheckExact(frame) && !(at & IS_OBJECT) && (at >> 1) + size <= (size_t)PyBytes_GET_SIZE(frame);
    return known ? (const uint8_t *)PyBytes_AS_STRING(frame) + (at >> 1) : NULL;
}

size_t codec_u16(PyObject *frame, size_t at)
{
    const uint8_t *first = quickly(frame, at, 2);
    uint64_t number;
    if (first)
        return (size_t)get16(first) << 1;
    return bytes_from(frame, at, 2, &number) ? number << 1 : EXCEPTION;
}

size_t codec_u32(PyObject *frame, size_t at)
{
    const uint8_t *first = quickly(frame, at, 4);
    uint64_t number;
    if (first)
        return (size_t)get32(first) << 1;
    return bytes_from(frame, at, 4, &number) ? number << 1 : EXCEPTION;
}

size_t codec_u64(PyObject *frame, size_t at)
{
    uint64_t number;
    if (!bytes_from(frame, at, 8, &number))
        return EXCEPTION;
    if (number < (uint64_t)1 << 62)
        return number << 1;
    PyObject *object = PyLong_FromUnsignedLongLong(number);
    return object ? (size_t)object + IS_OBJECT : EXCEPTION;
}

/* Whether `size` bytes from `start` on are inside `room` bytes. */
static int is_inside(Py_ssize_t start, Py_ssize_t size, Py_ssize_t room)
{
    return start >= 0 && size >= 0 && start <= room && size <= room - start;
}

/* --- write and seal -------------------------------------------------------------------------------------------------- */

/* Headers in front of a BTH: Ethernet, an outer IPv6 header or none, IPv6, UDP. */
enum { ETHERNET = 14, IPV6 = 40, UDP = 8, PLAIN_FRONT = ETHERNET + IPV6 + UDP, OUTER_FRONT = PLAIN_FRONT + IPV6 };
enum { LENGTH_MAX = 0xFFFF - IPV6 - UDP };
enum { CLASS, WRITE_OPCODE, WRITE_SECOND, DESTINATION, FLAGS_PSN, METH, WRITE_VA, WRITE_RKEY, WRITE_TOTAL, NUMBERS };

static void put_ipv6(uint8_t *at, uint32_t traffic_class, uint32_t length)
{
    put32(at, get32(at) | traffic_class << 20);
    put16(at + 4, length);
}

/* The headers for `length` bytes from BTH to ICRC, of a path's, which have no lengths and no traffic class; gives the
 * CRC's state behind the masked IPv6 and UDP headers. */
static uint32_t put_front(uint8_t *at, PyObject *path, uint32_t traffic_class, uint32_t length)
{
    enum { COVERED = IPV6 + UDP - 4 };
    uint8_t masked[COVERED], *inner = at + PyBytes_GET_SIZE(path) - IPV6 - UDP;
    memcpy(at, PyBytes_AS_STRING(path), (size_t)PyBytes_GET_SIZE(path));
    if (inner != at + ETHERNET)
        put_ipv6(at + ETHERNET, traffic_class, IPV6 + UDP + length);
    put_ipv6(inner, traffic_class, UDP + length);
    put16(inner + IPV6 + 4, UDP + length);
    memcpy(masked, inner + 4, COVERED);
    masked[3] = masked[COVERED - 2] = masked[COVERED - 1] = 0xFF; /* hop limit, UDP checksum */
    return crc_of(masked, COVERED, icrc_start);
}

/* A frame with room for `length` bytes from BTH to ICRC, and nothing in it yet. */
static PyObject *frame_for(PyObject *path, Py_ssize_t length)
{
    Py_ssize_t front = PyBytes_GET_SIZE(path);
    if (front != PLAIN_FRONT && front != OUTER_FRONT)
        return PyErr_Format(PyExc_ValueError, "codec_native: %zd bytes are no headers of a path", front);
    if (length > LENGTH_MAX)
        return PyErr_Format(PyExc_OverflowError, "codec_native: no IPv6 packet has room for %zd bytes", length);
    return PyBytes_FromStringAndSize(NULL, front + length);
}

/* BTH, METH and RETH, the variant byte as the ICRC has it. */
static void put_head(uint8_t *at, const uint64_t *number)
{
    put32(at, (uint32_t)(number[WRITE_OPCODE] << 24 | number[WRITE_SECOND] << 16 | 0xFFFF));
    put32(at + BTH_VARIANT, (uint32_t)number[DESTINATION]);
    put32(at + BTH_FLAGS, (uint32_t)number[FLAGS_PSN]);
    put32(at + BTH_BYTES, (uint32_t)number[METH]);
    at += BTH_BYTES + METH_BYTES;
    put64(at + RETH_VA, number[WRITE_VA]);
    put32(at + RETH_RKEY, (uint32_t)number[WRITE_RKEY]);
    put32(at + RETH_LENGTH, (uint32_t)number[WRITE_TOTAL]);
}

/* The ICRC behind `size` bytes from the BTH on, and then the variant byte as it is sent. */
static void put_icrc(uint8_t *bth, size_t size, uint32_t state)
{
    put32_little(bth + size, crc_of(bth, size, state));
    bth[BTH_VARIANT] = 0;
}

/* Without a payload, the headers of `size` bytes of payload and an ICRC of headers alone: a counted frame. */
static PyObject *written(PyObject *path, const uint64_t *number, PyObject *immediate, const uint8_t *payload,
                         Py_ssize_t size)
{
    Py_ssize_t head = HEAD + PyBytes_GET_SIZE(immediate), length = head + size + ICRC;
    if (length > LENGTH_MAX)
        return PyErr_Format(PyExc_OverflowError, "codec_native: no IPv6 packet has room for %zd bytes", length);
    if (!payload)
        size = 0;
    PyObject *frame = frame_for(path, head + size + ICRC);
    if (!frame)
        return NULL;
    uint8_t *at = (uint8_t *)PyBytes_AS_STRING(frame), *bth = at + PyBytes_GET_SIZE(path);
    uint32_t state = put_front(at, path, (uint32_t)number[CLASS], (uint32_t)length);
    put_head(bth, number);
    memcpy(bth + HEAD, PyBytes_AS_STRING(immediate), (size_t)(head - HEAD));
    if (payload)
        memcpy(bth + head, payload, (size_t)size);
    put_icrc(bth, (size_t)(head + size), state);
    return frame;
}

static int is_immediate(PyObject *bytes)
{
    Py_ssize_t size = PyBytes_GET_SIZE(bytes);
    if (size && size != IMMEDIATE)
        PyErr_SetString(PyExc_ValueError, "codec_native: an immediate has four bytes, or none");
    return !size || size == IMMEDIATE;
}

PyObject *codec_write(PyObject *headers, size_t traffic_class, size_t opcode, size_t second, size_t destination,
                      size_t flags_psn, size_t meth, size_t va, size_t rkey, size_t length, PyObject *memory,
                      size_t start, size_t size, PyObject *immediate)
{
    static const uint64_t most[NUMBERS] = {
        0xFF, 0xFF, 0xFF, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX,
    };
    const size_t given[NUMBERS] = {traffic_class, opcode, second, destination, flags_psn, meth, va, rkey, length};
    uint64_t number[NUMBERS];
    Py_ssize_t first, count;
    for (int i = 0; i < NUMBERS; i++)
        if (!number_from(given[i], most[i], "a write", i, &number[i]))
            return NULL;
    if (!size_from(start, &first) || !size_from(size, &count) || !is_immediate(immediate))
        return NULL;
    if (memory == Py_None && count >= 0)
        return written(headers, number, immediate, NULL, count);
    Py_buffer bytes;
    if (PyObject_GetBuffer(memory, &bytes, PyBUF_SIMPLE))
        return NULL;
    PyObject *frame = NULL;
    if (!is_inside(first, count, bytes.len))
        PyErr_SetString(PyExc_ValueError, "codec_native: the payload is not inside its memory");
    else
        frame = written(headers, number, immediate, (const uint8_t *)bytes.buf + first, count);
    PyBuffer_Release(&bytes);
    return frame;
}

enum { SACK_CLASS, SACK_DESTINATION, CACK, FIRST, ANSWER, ENTROPY, MPR, START, BITMAP, STAMP, BEYOND, CONGESTION, SACK_NUMBERS };
enum { SACK_BYTES = BTH_BYTES + SETH_BYTES + CCSTATE_BYTES };

/* BTH, SETH and CC_STATE; what is not written here is 0. */
static void put_sack(uint8_t *at, const uint64_t *number)
{
    memset(at, 0, SACK_BYTES);
    put32(at, (uint32_t)OP_SACK << 24 | 0xFFFF);
    put32(at + BTH_VARIANT, (uint32_t)number[SACK_DESTINATION]);
    put32(at + BTH_FLAGS, (uint32_t)number[CACK]);
    at += BTH_BYTES;
    put16(at + SETH_PDS_TYPE, (uint32_t)number[FIRST]);
    put16(at + SETH_ACK_PSN_OFFSET, (uint32_t)number[ANSWER]);
    put32(at + SETH_ENTROPY, (uint32_t)number[ENTROPY]);
    put32(at + SETH_CACK_PSN, (uint32_t)number[CACK]);
    at[SETH_MPR] = (uint8_t)number[MPR];
    put16(at + SETH_SACK_OFFSET, (uint32_t)number[START]);
    put64(at + SETH_BITMAP, number[BITMAP]);
    at += SETH_BYTES;
    put16(at + CCSTATE_TX_TIMESTAMP, (uint32_t)number[STAMP]);
    put16(at + CCSTATE_OOO_COUNT, (uint32_t)number[BEYOND]);
    put32(at + CCSTATE_RESTORE_CWND, (uint32_t)number[CONGESTION]);
}

static PyObject *sealed(PyObject *path, uint32_t traffic_class, const uint8_t *transport, Py_ssize_t size)
{
    PyObject *frame = frame_for(path, size + ICRC);
    if (!frame)
        return NULL;
    uint8_t *at = (uint8_t *)PyBytes_AS_STRING(frame), *bth = at + PyBytes_GET_SIZE(path);
    uint32_t state = put_front(at, path, traffic_class, (uint32_t)(size + ICRC));
    memcpy(bth, transport, (size_t)size);
    put_icrc(bth, (size_t)size, state);
    return frame;
}

PyObject *codec_sack(PyObject *headers, size_t traffic_class, size_t destination, size_t cack, size_t first,
                     size_t answer, size_t ev, size_t mpr, size_t start, size_t bitmap, size_t stamp, size_t beyond,
                     size_t congestion)
{
    static const uint64_t most[SACK_NUMBERS] = {
        0xFF, UINT32_MAX, UINT32_MAX, 0xFFFF, 0, UINT32_MAX, 0xFF, 0, UINT64_MAX, 0xFFFF, 0xFFFF, UINT32_MAX,
    };
    const size_t given[SACK_NUMBERS] = {
        traffic_class, destination, cack, first, answer, ev, mpr, start, bitmap, stamp, beyond, congestion,
    };
    uint64_t number[SACK_NUMBERS];
    uint8_t transport[SACK_BYTES];
    for (int i = 0; i < SACK_NUMBERS; i++)
        if (!(i == ANSWER || i == START ? signed_from(given[i], "a SACK", i, &number[i])
                                        : number_from(given[i], most[i], "a SACK", i, &number[i])))
            return NULL;
    put_sack(transport, number);
    return sealed(headers, (uint32_t)number[SACK_CLASS], transport, SACK_BYTES);
}
