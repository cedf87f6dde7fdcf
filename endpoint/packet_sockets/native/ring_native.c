/* The module `endpoint.packet_sockets.native.ring_native`: `FrameRing` of `endpoint/packet_sockets/ring.py` in C.
 *
 * A module of the compiled form alone. Frames are views of the memory that the ring was made with, so they keep it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <linux/if_packet.h>
#include <stdint.h>
#include <sys/socket.h>

/* TPACKET_ALIGN(header 32 + sockaddr_ll 20 + 16 for the link layer), less its 14 bytes of Ethernet. */
#define FRAME_OFFSET 66

typedef struct {
    PyObject_HEAD
    Py_buffer memory; /* .obj is NULL in a closed ring */
    PyObject *data;
    Py_ssize_t block_bytes, slot_bytes, per_block, slots, next, held;
    int descriptor;
    unsigned long long tx_packets, tx_bytes, tx_refused, rx_packets, rx_bytes;
} Ring;

static volatile struct tpacket2_hdr *header(const Ring *ring, Py_ssize_t slot)
{
    char *block = (char *)ring->memory.buf + slot / ring->per_block * ring->block_bytes;
    return (volatile struct tpacket2_hdr *)(block + slot % ring->per_block * ring->slot_bytes);
}

static int of_user(volatile struct tpacket2_hdr *slot)
{
    return (__atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) != 0;
}

static int closed(const Ring *ring)
{
    if (ring->memory.obj)
        return 0;
    PyErr_SetString(PyExc_ValueError, "ring_native: the ring is closed");
    return 1;
}

static int ring_init(Ring *ring, PyObject *args, PyObject *kwds)
{
    PyObject *data;
    Py_ssize_t blocks;
    (void)kwds;
    if (!PyArg_ParseTuple(args, "iO!nnn", &ring->descriptor, &PyMemoryView_Type, &data, &ring->block_bytes, &blocks,
                          &ring->slot_bytes))
        return -1;
    if (PyObject_GetBuffer(data, &ring->memory, PyBUF_WRITABLE))
        return -1;
    ring->per_block = ring->slot_bytes > FRAME_OFFSET ? ring->block_bytes / ring->slot_bytes : 0;
    if (ring->per_block < 1 || blocks < 1 || ring->memory.len / ring->block_bytes < blocks) {
        PyBuffer_Release(&ring->memory);
        PyErr_SetString(PyExc_ValueError, "ring_native: the memory must hold all blocks, and a block at least a slot");
        return -1;
    }
    ring->slots = ring->per_block * blocks;
    ring->data = Py_NewRef(data);
    return 0;
}

static PyObject *ring_close(Ring *ring, PyObject *unused)
{
    (void)unused;
    if (ring->memory.obj)
        PyBuffer_Release(&ring->memory);
    Py_CLEAR(ring->data);
    Py_RETURN_NONE;
}

static void ring_dealloc(Ring *ring)
{
    Py_XDECREF(ring_close(ring, NULL));
    Py_TYPE(ring)->tp_free((PyObject *)ring);
}

static PyObject *ring_receive(Ring *ring, PyObject *arg)
{
    Py_ssize_t limit = PyLong_AsSsize_t(arg);
    if ((limit == -1 && PyErr_Occurred()) || closed(ring))
        return NULL;
    PyObject *frames = PyList_New(0);
    if (!frames)
        return NULL;
    /* A slot that is held looks full, and is not another frame. */
    for (; limit > 0 && ring->held < ring->slots; limit--) {
        volatile struct tpacket2_hdr *slot = header(ring, ring->next);
        if (!of_user(slot))
            break;
        Py_ssize_t start = (char *)slot - (char *)ring->memory.buf + FRAME_OFFSET;
        Py_ssize_t size = slot->tp_snaplen, room = ring->slot_bytes - FRAME_OFFSET;
        size = size < room ? size : room;
        PyObject *frame = PySequence_GetSlice(ring->data, start, start + size);
        if (!frame || PyList_Append(frames, frame)) {
            Py_XDECREF(frame);
            Py_DECREF(frames);
            return NULL;
        }
        Py_DECREF(frame);
        ring->rx_packets++;
        ring->rx_bytes += (unsigned long long)size;
        ring->held++;
        ring->next = ring->next + 1 < ring->slots ? ring->next + 1 : 0;
    }
    return frames;
}

static PyObject *ring_release(Ring *ring, PyObject *unused)
{
    (void)unused;
    if (closed(ring))
        return NULL;
    for (; ring->held; ring->held--) {
        Py_ssize_t slot = ring->next - ring->held;
        __atomic_store_n(&header(ring, slot < 0 ? slot + ring->slots : slot)->tp_status, 0, __ATOMIC_RELEASE);
    }
    Py_RETURN_NONE;
}

static PyObject *ring_oldest_ns(Ring *ring, PyObject *unused)
{
    (void)unused;
    if (closed(ring))
        return NULL;
    volatile struct tpacket2_hdr *slot = header(ring, ring->next);
    if (ring->held == ring->slots || !of_user(slot))
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(slot->tp_sec * 1000000000ULL + slot->tp_nsec);
}

static PyObject *ring_send(Ring *ring, PyObject *arg)
{
    Py_buffer frame;
    if (PyObject_GetBuffer(arg, &frame, PyBUF_SIMPLE))
        return NULL;
    if (send(ring->descriptor, frame.buf, (size_t)frame.len, MSG_DONTWAIT) < 0) {
        ring->tx_refused++;
    } else {
        ring->tx_packets++;
        ring->tx_bytes += (unsigned long long)frame.len;
    }
    PyBuffer_Release(&frame);
    Py_RETURN_NONE;
}

static PyObject *ring_counts(Ring *ring, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("KKKKK", ring->tx_packets, ring->tx_bytes, ring->tx_refused, ring->rx_packets, ring->rx_bytes);
}

static PyMethodDef ring_methods[] = {
    {"receive", (PyCFunction)ring_receive, METH_O, NULL},
    {"release", (PyCFunction)ring_release, METH_NOARGS, NULL},
    {"oldest_ns", (PyCFunction)ring_oldest_ns, METH_NOARGS, NULL},
    {"send", (PyCFunction)ring_send, METH_O, NULL},
    {"counts", (PyCFunction)ring_counts, METH_NOARGS, NULL},
    {"close", (PyCFunction)ring_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject ring_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ring_native.FrameRing",
    .tp_basicsize = sizeof(Ring),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)ring_init,
    .tp_dealloc = (destructor)ring_dealloc,
    .tp_methods = ring_methods,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "ring_native", .m_size = -1};

PyMODINIT_FUNC PyInit_ring_native(void)
{
    if (PyType_Ready(&ring_type))
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddObjectRef(module, "FrameRing", (PyObject *)&ring_type)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
