/* Frames between a fabric and its hosts as Python objects: a module in the runtime's own shared object, where Python's
 * headers were found when it was built. `fabric.py` does the same over a buffer where they were not. */
#ifdef MRCLAB_PYTHON
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "fabric/frame.h"
#include "program/packet.h"

enum { T_NS, HOST, PORT, FRAME, FIELDS };
enum { FETCHED_BYTES = 1024 }; /* of a packet and its frame; how it goes on the processor finds itself */

/* A `switch.fabric.HostFrame`, which `type` is, as its own `__new__` would make it. */
static PyObject *host_frame(PyTypeObject *type, PyObject *host, const struct packet *p)
{
    PyObject *made = type->tp_alloc(type, FIELDS);
    if (!made)
        return NULL;
    PyTuple_SET_ITEM(made, T_NS, PyLong_FromUnsignedLongLong(p->t_ns));
    PyTuple_SET_ITEM(made, HOST, Py_NewRef(host));
    PyTuple_SET_ITEM(made, PORT, PyLong_FromLong(p->port_in));
    PyTuple_SET_ITEM(made, FRAME, PyBytes_FromStringAndSize(NULL, frame_bytes(p)));
    if (!PyTuple_GET_ITEM(made, T_NS) || !PyTuple_GET_ITEM(made, PORT) || !PyTuple_GET_ITEM(made, FRAME))
        Py_CLEAR(made);
    else
        frame_put(p, (u8 *)PyBytes_AS_STRING(PyTuple_GET_ITEM(made, FRAME)));
    return made;
}

/* collect(fabric, host, HostFrame): the frames in the host's inbox, which are taken out of it. */
static PyObject *exchange_collect(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 3 || !PyType_Check(args[2]) || !PyType_IsSubtype((PyTypeObject *)args[2], &PyTuple_Type))
        return PyErr_Format(PyExc_TypeError, "collect takes a fabric, a host and a class of tuples");
    struct fabric *f = PyLong_AsVoidPtr(args[0]);
    unsigned long host = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLong(args[1]);
    PyObject *frames = PyErr_Occurred() ? NULL : PyList_New(0);
    const struct packet *p;
    while (frames && (p = fabric_first(f, (u32)host))) {
        if (p->next)
            fetch(p->next, FETCHED_BYTES);
        PyObject *made = host_frame((PyTypeObject *)args[2], args[1], p);
        if (!made || PyList_Append(frames, made))
            Py_CLEAR(frames);
        else
            fabric_drop_first(f, (u32)host);
        Py_XDECREF(made);
    }
    return frames;
}

/* What a field says, up to `most`; above `most` for what is no such number. */
static unsigned long long number(PyObject *field, unsigned long long most)
{
    unsigned long long value = PyLong_Check(field) ? PyLong_AsUnsignedLongLong(field) : most + 1;
    if (PyErr_Occurred())
        PyErr_Clear();
    return value > most ? most + 1 : value;
}

static int send_tuple(struct fabric *f, PyObject *tuple)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != FIELDS || !PyBytes_Check(PyTuple_GET_ITEM(tuple, FRAME)))
        return FABRIC_MALFORMED;
    PyObject *frame = PyTuple_GET_ITEM(tuple, FRAME);
    unsigned long long t_ns = number(PyTuple_GET_ITEM(tuple, T_NS), INT64_MAX);
    unsigned long long host = number(PyTuple_GET_ITEM(tuple, HOST), UINT32_MAX);
    unsigned long long port = number(PyTuple_GET_ITEM(tuple, PORT), UINT16_MAX);
    if (host > UINT32_MAX || port > UINT16_MAX)
        return FABRIC_NO_PORT;
    if (t_ns > INT64_MAX || PyBytes_GET_SIZE(frame) > UINT16_MAX)
        return FABRIC_MALFORMED;
    struct fabric_record record = {t_ns, (u32)host, (u16)port, (u16)PyBytes_GET_SIZE(frame)};
    return fabric_send_one(f, &record, (const u8 *)PyBytes_AS_STRING(frame));
}

/* send(fabric, list of HostFrames): None, or the place of the first that was not taken, and its enum fabric_error. */
static PyObject *exchange_send(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 2 || !PyList_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "send takes a fabric and a list of frames");
    struct fabric *f = PyLong_AsVoidPtr(args[0]);
    if (PyErr_Occurred())
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); i++) {
        int error = send_tuple(f, PyList_GET_ITEM(args[1], i));
        if (error)
            return Py_BuildValue("ni", i, error);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"collect", (PyCFunction)(void (*)(void))exchange_collect, METH_FASTCALL, NULL},
    {"send", (PyCFunction)(void (*)(void))exchange_send, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "exchange", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_exchange(void)
{
    return PyModule_Create(&definition);
}
#endif
