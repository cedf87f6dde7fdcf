/* The module `endpoint.nic.native.codec_native`: what compiled Python calls by name; it calls `codec_direct.c` directly.
 * A module of the compiled form alone. */
#include "codec_direct.c"

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
    else if (transport.len <= BTH_VARIANT)
        PyErr_Format(PyExc_ValueError, "codec_native: %zd bytes are no transport packet", transport.len);
    else
        frame = sealed(args[0], (uint32_t)traffic_class, transport.buf, transport.len);
    PyBuffer_Release(&transport);
    return frame;
}

static PyMethodDef methods[] = {
    {"place", (PyCFunction)(void (*)(void))py_place, METH_FASTCALL, NULL},
    {"seal", (PyCFunction)(void (*)(void))py_seal, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "codec_native", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_codec_native(void)
{
    return PyModule_Create(&definition);
}
