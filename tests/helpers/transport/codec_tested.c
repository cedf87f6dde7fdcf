/* A module of all that the codec has in C, for tests: Python's integers are handed over as compiled Python's. */
#include "codec_native.c"

/* Python's integer as compiled Python has it: a copy if it has at most 62 bits. Raises TypeError for what is none. */
static int integer_from(PyObject *arg, size_t *integer)
{
    int overflow = 0;
    if (!PyLong_Check(arg)) {
        PyErr_Format(PyExc_TypeError, "codec_native: %R is no integer", arg);
        return 0;
    }
    long long value = PyLong_AsLongLongAndOverflow(arg, &overflow);
    int is_short = !overflow && value >= -(1LL << 62) && value < 1LL << 62;
    *integer = is_short ? (size_t)value << 1 : (size_t)arg + IS_OBJECT;
    return 1;
}

static int integers_from(PyObject *const *args, int count, size_t *integers)
{
    for (int i = 0; i < count; i++)
        if (!integer_from(args[i], &integers[i]))
            return 0;
    return 1;
}

static PyObject *object_of(size_t integer)
{
    if (integer == EXCEPTION)
        return NULL;
    return integer & IS_OBJECT ? (PyObject *)(integer - IS_OBJECT) : PyLong_FromSsize_t((Py_ssize_t)integer >> 1);
}

static PyObject *py_usual(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    size_t number[2];
    if (count != 6 || !PyBytes_Check(args[1]) || PyBytes_GET_SIZE(args[1]) != ADDRESS || !PyBytes_Check(args[2]))
        return wrong_arguments("usual takes a frame, an address, addresses, trimmed DSCPs, a UDP port and whether payload is counted");
    int counted = PyObject_IsTrue(args[5]);
    if (counted < 0 || !integers_from(args + 3, 2, number))
        return NULL;
    char usual = codec_usual(args[0], args[1], args[2], number[0], number[1], (char)counted);
    return usual == BOOL_EXCEPTION ? NULL : PyBool_FromLong(usual);
}

static PyObject *py_has(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    size_t at;
    if (count != 3 || !PyBytes_Check(args[2]))
        return wrong_arguments("has takes a frame, where in it, and bytes");
    if (!integer_from(args[1], &at))
        return NULL;
    char has = codec_has(args[0], at, args[2]);
    return has == BOOL_EXCEPTION ? NULL : PyBool_FromLong(has);
}

static PyObject *number_at(PyObject *const *args, Py_ssize_t count, size_t (*read)(PyObject *, size_t))
{
    size_t at;
    if (count != 2)
        return wrong_arguments("a number is read from a frame and a place in it");
    return integer_from(args[1], &at) ? object_of(read(args[0], at)) : NULL;
}

static PyObject *py_u16(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    return number_at(args, count, codec_u16);
}

static PyObject *py_u32(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    return number_at(args, count, codec_u32);
}

static PyObject *py_u64(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    return number_at(args, count, codec_u64);
}

static PyObject *py_write(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    size_t number[NUMBERS], where[2];
    if (count != NUMBERS + 5 || !PyBytes_Check(args[0]) || !PyBytes_Check(args[NUMBERS + 4]))
        return wrong_arguments("write takes headers, nine fields, memory, where in it the payload begins, its length, and"
                               " an immediate");
    if (!integers_from(args + 1, NUMBERS, number) || !integers_from(args + NUMBERS + 2, 2, where))
        return NULL;
    return codec_write(args[0], number[CLASS], number[WRITE_OPCODE], number[WRITE_SECOND], number[DESTINATION],
                       number[FLAGS_PSN], number[METH], number[WRITE_VA], number[WRITE_RKEY], number[WRITE_TOTAL],
                       args[NUMBERS + 1], where[0], where[1], args[NUMBERS + 4]);
}

static PyObject *py_sack(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    size_t n[SACK_NUMBERS];
    if (count != 1 + SACK_NUMBERS || !PyBytes_Check(args[0]))
        return wrong_arguments("sack takes headers and twelve numbers");
    if (!integers_from(args + 1, SACK_NUMBERS, n))
        return NULL;
    return codec_sack(args[0], n[SACK_CLASS], n[SACK_DESTINATION], n[CACK], n[FIRST], n[ANSWER], n[ENTROPY], n[MPR],
                      n[START], n[BITMAP], n[STAMP], n[BEYOND], n[CONGESTION]);
}

/* For tests: the CRC of frames, of any bytes and from any state, by these means or what is left of them. */
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

static PyMethodDef tested[] = {
    {"crc32", (PyCFunction)(void (*)(void))py_crc32, METH_FASTCALL, NULL},
    {"has", (PyCFunction)(void (*)(void))py_has, METH_FASTCALL, NULL},
    {"place", (PyCFunction)(void (*)(void))py_place, METH_FASTCALL, NULL},
    {"sack", (PyCFunction)(void (*)(void))py_sack, METH_FASTCALL, NULL},
    {"seal", (PyCFunction)(void (*)(void))py_seal, METH_FASTCALL, NULL},
    {"u16", (PyCFunction)(void (*)(void))py_u16, METH_FASTCALL, NULL},
    {"u32", (PyCFunction)(void (*)(void))py_u32, METH_FASTCALL, NULL},
    {"u64", (PyCFunction)(void (*)(void))py_u64, METH_FASTCALL, NULL},
    {"usual", (PyCFunction)(void (*)(void))py_usual, METH_FASTCALL, NULL},
    {"write", (PyCFunction)(void (*)(void))py_write, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef tested_definition = {
    PyModuleDef_HEAD_INIT, .m_name = "codec_tested", .m_size = -1, .m_methods = tested};

PyMODINIT_FUNC PyInit_codec_tested(void)
{
    return PyModule_Create(&tested_definition);
}
