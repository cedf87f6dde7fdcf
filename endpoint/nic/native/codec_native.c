/* The codec's hottest calls in C: `endpoint.nic.native.codec_native`, a module of the compiled form alone.
 *
 * `endpoint/nic/codec.py` says what the calls take and give. Python beside each call does the same where there is no
 * build, and serves every frame of which `read` says nothing. Nothing here counts, logs or keeps state between calls.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "crc32.h"

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

static void put32_little(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* --- the ICRC's beginning -------------------------------------------------------------------------------------------- */

static uint32_t icrc_start; /* the CRC's state after the mask of a local route header and the first word of IPv6 */

static void start_icrc(void)
{
    static const uint8_t ones[12] = {255, 255, 255, 255, 255, 255, 255, 255, 0x6F, 255, 255, 255};
    icrc_start = crc_of(ones, sizeof ones, 0);
}

/* --- read ----------------------------------------------------------------------------------------------------------- */

/* Where the fields of a frame are that has an outer IPv6 header, and how much of it the ICRC has in masked form. */
enum {
    ETHERTYPE = 12, OUTER = 14, OUTER_NEXT = 20, OUTER_DST = 38, INNER = 54, LENGTH = 58, INNER_NEXT = 60, SRC = 62,
    DST = 78, SOURCE_PORT = 94, DPORT = 96, OPCODE = 102, SECOND = 103, QPN = 106, PSN = 110, BEHIND_BTH = 114,
    VA = 118, RKEY = 126, TOTAL = 130, USUAL_MIN = 138, MASKED = BEHIND_BTH - LENGTH,
    AETH = BEHIND_BTH, ACKNOWLEDGE_MIN = AETH + 4 + 4, REQUEST_MIN = BEHIND_BTH + 16 + 4, RESPONSE_MIN = BEHIND_BTH + 36 + 4
};
enum { ADDRESS = 16, ACKNOWLEDGE = 0xD1, REQUEST = 0xD8, RESPONSE = 0xD9, SACK = 0xDC };
enum { PSN_AND_QPN, SRC_FIELD, WAY, KINDS, VA_FIELD, RKEY_FIELD, TOTAL_FIELD, FIELDS };

/* Whether a frame is long enough for the headers of its opcode, if the opcode is a usual one. */
static int has_headers(const uint8_t *at, Py_ssize_t size)
{
    if (size < ACKNOWLEDGE_MIN)
        return 0;
    uint32_t opcode = at[OPCODE];
    return opcode == ACKNOWLEDGE || (opcode == REQUEST && size >= REQUEST_MIN) ||
           (opcode == RESPONSE && size >= RESPONSE_MIN) ||
           (size >= USUAL_MIN && ((opcode >= 0xC6 && opcode <= 0xCB) || opcode == SACK));
}

/* Whether a frame is as long as it says, or with `counted` a write that is as long with the payload that it leaves out. */
static int has_its_length(const uint8_t *at, Py_ssize_t size, int counted)
{
    Py_ssize_t length = (Py_ssize_t)get16(at + LENGTH) + 94;
    Py_ssize_t immediate = at[OPCODE] == 0xC9 || at[OPCODE] == 0xCB ? 4 : 0;
    return length == size || (counted && length > size && at[OPCODE] < ACKNOWLEDGE && size == USUAL_MIN + immediate);
}

/* A frame with an outer header, as long as it says, without trim and TSETH. It has its headers. */
static int is_usual(const uint8_t *at, Py_ssize_t size, uint64_t trimmed, int counted)
{
    return get16(at + ETHERTYPE) == 0x86DD && at[OUTER_NEXT] == 41 && at[INNER_NEXT] == 17 && at[OUTER] >> 4 == 6 &&
           at[INNER] >> 4 == 6 && !(trimmed >> (get32(at + OUTER) >> 22 & 0x3F) & 1) && !(at[PSN] & 0x10) &&
           has_its_length(at, size, counted);
}

static int is_one_of(const uint8_t *destination, const uint8_t *addresses, Py_ssize_t size)
{
    for (Py_ssize_t at = 0; at + ADDRESS <= size; at += ADDRESS)
        if (!memcmp(destination, addresses + at, ADDRESS))
            return 1;
    return 0;
}

/* Whether the ICRC is right. At least ACKNOWLEDGE_MIN bytes. */
static int is_whole(const uint8_t *at, Py_ssize_t size)
{
    uint8_t masked[MASKED], sent[4];
    memcpy(masked, at + LENGTH, MASKED);
    masked[3] = masked[42] = masked[43] = masked[48] = 0xFF; /* hop limit, UDP checksum, variant */
    uint32_t crc = crc_of(masked, MASKED, icrc_start);
    put32_little(sent, crc_of(at + BEHIND_BTH, (size_t)(size - BEHIND_BTH - 4), crc));
    return !memcmp(sent, at + size - 4, 4);
}

/* Few and small: an integer costs more to make, and to take apart again, than to read. */
static PyObject *fields_of(const uint8_t *at)
{
    int has_reth = at[OPCODE] < ACKNOWLEDGE;
    const uint64_t numbers[FIELDS] = {
        [PSN_AND_QPN] = (uint64_t)get32(at + PSN) << 24 | (get32(at + QPN) & 0xFFFFFF),
        [WAY] = (uint64_t)get32(at + INNER) << 16 | get16(at + SOURCE_PORT),
        [KINDS] = (uint64_t)get32(at + OUTER) << 16 | (uint64_t)at[OPCODE] << 8 | at[SECOND],
        [VA_FIELD] = has_reth ? get64(at + VA) : 0,
        [RKEY_FIELD] = has_reth ? get32(at + RKEY) : 0,
        [TOTAL_FIELD] = has_reth ? get32(at + TOTAL) : at[OPCODE] == ACKNOWLEDGE ? get32(at + AETH) : 0,
    };
    PyObject *fields = PyTuple_New(FIELDS);
    for (Py_ssize_t i = 0; fields && i < FIELDS; i++) {
        PyObject *field = i == SRC_FIELD ? PyBytes_FromStringAndSize((const char *)at + SRC, ADDRESS)
                                         : PyLong_FromUnsignedLongLong(numbers[i]);
        if (!field)
            Py_CLEAR(fields);
        else
            PyTuple_SET_ITEM(fields, i, field);
    }
    return fields;
}

static PyObject *wrong_arguments(const char *what)
{
    PyErr_Format(PyExc_TypeError, "codec_native: %s", what);
    return NULL;
}

static PyObject *py_read(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 6 || !PyBytes_Check(args[1]) || PyBytes_GET_SIZE(args[1]) != ADDRESS || !PyBytes_Check(args[2]))
        return wrong_arguments("read takes a frame, an address, addresses, trimmed DSCPs, a UDP port and whether payload is counted");
    unsigned long long trimmed = PyLong_AsUnsignedLongLong(args[3]);
    long port = PyErr_Occurred() ? 0 : PyLong_AsLong(args[4]);
    int counted = PyErr_Occurred() ? 0 : PyObject_IsTrue(args[5]);
    Py_buffer frame;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &frame, PyBUF_SIMPLE))
        return NULL;
    const uint8_t *at = frame.buf;
    int usual = has_headers(at, frame.len) && is_usual(at, frame.len, trimmed, counted) &&
                !memcmp(at + DST, PyBytes_AS_STRING(args[1]), ADDRESS) && (long)get16(at + DPORT) == port &&
                is_one_of(at + OUTER_DST, (const uint8_t *)PyBytes_AS_STRING(args[2]), PyBytes_GET_SIZE(args[2])) &&
                is_whole(at, frame.len);
    PyObject *fields = usual ? fields_of(at) : Py_NewRef(Py_None);
    PyBuffer_Release(&frame);
    return fields;
}

/* --- place ---------------------------------------------------------------------------------------------------------- */

/* Whether `size` bytes from `start` on are inside `room` bytes. */
static int is_inside(Py_ssize_t start, Py_ssize_t size, Py_ssize_t room)
{
    return start >= 0 && size >= 0 && start <= room && size <= room - start;
}

static PyObject *py_place(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 5)
        return wrong_arguments("place takes memory, where in it, a frame, where in it the payload begins, and its length");
    Py_ssize_t at = PyLong_AsSsize_t(args[1]);
    Py_ssize_t start = PyErr_Occurred() ? 0 : PyLong_AsSsize_t(args[3]);
    Py_ssize_t size = PyErr_Occurred() ? 0 : PyLong_AsSsize_t(args[4]);
    Py_buffer memory, frame;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &memory, PyBUF_WRITABLE))
        return NULL;
    if (PyObject_GetBuffer(args[2], &frame, PyBUF_SIMPLE)) {
        PyBuffer_Release(&memory);
        return NULL;
    }
    int inside = is_inside(at, size, memory.len) && is_inside(start, size, frame.len);
    if (inside)
        memmove((uint8_t *)memory.buf + at, (const uint8_t *)frame.buf + start, (size_t)size);
    else
        PyErr_SetString(PyExc_ValueError, "codec_native: the payload is not inside its frame and memory");
    PyBuffer_Release(&frame);
    PyBuffer_Release(&memory);
    return inside ? Py_NewRef(Py_None) : NULL;
}

/* --- write and seal -------------------------------------------------------------------------------------------------- */

/* Headers in front of a BTH: Ethernet, an outer IPv6 header or none, IPv6, UDP. */
enum { ETHERNET = 14, IPV6 = 40, UDP = 8, PLAIN_FRONT = ETHERNET + IPV6 + UDP, OUTER_FRONT = PLAIN_FRONT + IPV6 };
enum { HEAD = 32, IMMEDIATE = 4, VARIANT = 4, ICRC = 4, LENGTH_MAX = 0xFFFF - IPV6 - UDP };
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
    put32(at + 4, (uint32_t)number[DESTINATION]);
    put32(at + 8, (uint32_t)number[FLAGS_PSN]);
    put32(at + 12, (uint32_t)number[METH]);
    put32(at + 16, (uint32_t)(number[WRITE_VA] >> 32));
    put32(at + 20, (uint32_t)number[WRITE_VA]);
    put32(at + 24, (uint32_t)number[WRITE_RKEY]);
    put32(at + 28, (uint32_t)number[WRITE_TOTAL]);
}

/* The ICRC behind `size` bytes from the BTH on, and then the variant byte as it is sent. */
static void put_icrc(uint8_t *bth, size_t size, uint32_t state)
{
    put32_little(bth + size, crc_of(bth, size, state));
    bth[VARIANT] = 0;
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

/* Raises OverflowError for a field that its header has no room for, as `struct` raises `struct.error`. */
static int number_from(PyObject *arg, uint64_t most, const char *of, int field, uint64_t *number)
{
    *number = PyLong_AsUnsignedLongLong(arg);
    if (PyErr_Occurred())
        return 0;
    if (*number > most)
        PyErr_Format(PyExc_OverflowError, "codec_native: field %d of %s is too large: %llu", field, of,
                     (unsigned long long)*number);
    return *number <= most;
}

static int numbers_from(PyObject *const *args, uint64_t *number)
{
    static const uint64_t most[NUMBERS] = {
        0xFF, 0xFF, 0xFF, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX,
    };
    for (int i = 0; i < NUMBERS; i++)
        if (!number_from(args[i], most[i], "a write", i, &number[i]))
            return 0;
    return 1;
}

static int is_immediate(PyObject *bytes)
{
    Py_ssize_t size = PyBytes_GET_SIZE(bytes);
    if (size && size != IMMEDIATE)
        PyErr_SetString(PyExc_ValueError, "codec_native: an immediate has four bytes, or none");
    return !size || size == IMMEDIATE;
}

static PyObject *py_write(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != NUMBERS + 5 || !PyBytes_Check(args[0]) || !PyBytes_Check(args[NUMBERS + 4]))
        return wrong_arguments("write takes headers, nine fields, memory, where in it the payload begins, its length, and"
                               " an immediate");
    uint64_t number[NUMBERS];
    if (!numbers_from(args + 1, number))
        return NULL;
    Py_ssize_t start = PyLong_AsSsize_t(args[NUMBERS + 2]);
    Py_ssize_t size = PyErr_Occurred() ? 0 : PyLong_AsSsize_t(args[NUMBERS + 3]);
    if (PyErr_Occurred() || !is_immediate(args[NUMBERS + 4]))
        return NULL;
    if (args[NUMBERS + 1] == Py_None && size >= 0)
        return written(args[0], number, args[NUMBERS + 4], NULL, size);
    Py_buffer memory;
    if (PyObject_GetBuffer(args[NUMBERS + 1], &memory, PyBUF_SIMPLE))
        return NULL;
    PyObject *frame = NULL;
    if (!is_inside(start, size, memory.len))
        PyErr_SetString(PyExc_ValueError, "codec_native: the payload is not inside its memory");
    else
        frame = written(args[0], number, args[NUMBERS + 4], (const uint8_t *)memory.buf + start, size);
    PyBuffer_Release(&memory);
    return frame;
}

enum { SACK_CLASS, SACK_DESTINATION, CACK, FIRST, ANSWER, ENTROPY, MPR, START, BITMAP, STAMP, BEYOND, CONGESTION, SACK_NUMBERS };
enum { SACK_BYTES = 48 };

/* The numbers of a SACK from Python; ANSWER and START are signed, and taken as 16 bits of two's complement. */
static int sack_numbers_from(PyObject *const *args, uint64_t *number)
{
    static const uint64_t most[SACK_NUMBERS] = {
        0xFF, UINT32_MAX, UINT32_MAX, 0xFFFF, INT16_MAX, UINT32_MAX, 0xFF, INT16_MAX, UINT64_MAX, 0xFFFF, 0xFFFF, UINT32_MAX,
    };
    for (int i = 0; i < SACK_NUMBERS; i++) {
        if (i == ANSWER || i == START) {
            long value = PyLong_AsLong(args[i]);
            if (value >= INT16_MIN && value < 0 && !PyErr_Occurred()) {
                number[i] = (uint16_t)value;
                continue;
            }
        }
        if (PyErr_Occurred() || !number_from(args[i], most[i], "a SACK", i, &number[i]))
            return 0;
    }
    return 1;
}

/* BTH, SETH and CC_STATE; what is not written here is 0. */
static void put_sack(uint8_t *at, const uint64_t *number)
{
    memset(at, 0, SACK_BYTES);
    put32(at, (uint32_t)SACK << 24 | 0xFFFF);
    put32(at + 4, (uint32_t)number[SACK_DESTINATION]);
    put32(at + 8, (uint32_t)number[CACK]);
    put16(at + 12, (uint32_t)number[FIRST]);
    put16(at + 14, (uint32_t)number[ANSWER]);
    put32(at + 16, (uint32_t)number[ENTROPY]);
    put32(at + 24, (uint32_t)number[CACK]);
    at[29] = (uint8_t)number[MPR];
    put16(at + 30, (uint32_t)number[START]);
    put32(at + 32, (uint32_t)(number[BITMAP] >> 32));
    put32(at + 36, (uint32_t)number[BITMAP]);
    put16(at + 40, (uint32_t)number[STAMP]);
    put16(at + 42, (uint32_t)number[BEYOND]);
    put32(at + 44, (uint32_t)number[CONGESTION]);
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

static PyObject *py_seal(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 3 || !PyBytes_Check(args[0]))
        return wrong_arguments("seal takes headers, a traffic class and a transport packet");
    unsigned long traffic_class = PyLong_AsUnsignedLong(args[1]);
    Py_buffer transport;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[2], &transport, PyBUF_SIMPLE))
        return NULL;
    PyObject *frame = NULL;
    if (traffic_class > 0xFF)
        PyErr_Format(PyExc_OverflowError, "codec_native: the traffic class %lu is above 255", traffic_class);
    else if (transport.len <= VARIANT)
        PyErr_Format(PyExc_ValueError, "codec_native: %zd bytes are no transport packet", transport.len);
    else
        frame = sealed(args[0], (uint32_t)traffic_class, transport.buf, transport.len);
    PyBuffer_Release(&transport);
    return frame;
}

static PyObject *py_sack(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    uint64_t number[SACK_NUMBERS];
    uint8_t transport[SACK_BYTES];
    if (count != 1 + SACK_NUMBERS || !PyBytes_Check(args[0]))
        return wrong_arguments("sack takes headers and twelve numbers");
    if (!sack_numbers_from(args + 1, number))
        return NULL;
    put_sack(transport, number);
    return sealed(args[0], (uint32_t)number[SACK_CLASS], transport, SACK_BYTES);
}

/* --- the module ----------------------------------------------------------------------------------------------------- */

/* For tests: the CRC inside `read` and `write`, of any bytes and from any state, by these means or what is left of them. */
static PyObject *py_crc32(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 3)
        return wrong_arguments("crc32 takes data, a state and means");
    unsigned long state = PyLong_AsUnsignedLong(args[1]);
    long asked = PyErr_Occurred() ? 0 : PyLong_AsLong(args[2]);
    Py_buffer data;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE))
        return NULL;
    int best = means;
    means = asked < best ? (int)asked : best;
    uint32_t crc = crc_of(data.buf, (size_t)data.len, (uint32_t)state);
    means = best;
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(crc);
}

static PyMethodDef methods[] = {
    {"crc32", (PyCFunction)(void (*)(void))py_crc32, METH_FASTCALL, NULL},
    {"place", (PyCFunction)(void (*)(void))py_place, METH_FASTCALL, NULL},
    {"read", (PyCFunction)(void (*)(void))py_read, METH_FASTCALL, NULL},
    {"sack", (PyCFunction)(void (*)(void))py_sack, METH_FASTCALL, NULL},
    {"seal", (PyCFunction)(void (*)(void))py_seal, METH_FASTCALL, NULL},
    {"write", (PyCFunction)(void (*)(void))py_write, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "codec_native", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_codec_native(void)
{
    make_tables();
    find_instructions();
    start_icrc();
    return PyModule_Create(&definition);
}
