/* Shared by the files of the driver and seen by no others. */
#pragma once

#include "device/heap.h"
#include "driver/driver.h"
#include "driver/gate.h"
#include "driver/outbox.h"
#include "driver/wire.h"

struct interface {
    struct wire wire;
    struct device *device;
    struct port *port;
};

struct slot {
    struct device *device;
    u64 id;
    u64 next_ns; /* as in the heap; NEVER: not in it */
};

struct driver {
    struct gate gate;
    struct pool *pool;
    int epoll_fd, wake_fd;
    pthread_t thread;
    clockid_t cpu_clock;
    bool started;
    _Atomic bool stopping;
    _Atomic u64 sleeps_until_ns;
    u64 turn_ns;   /* moderated turns; 0: as soon as there is something to do */
    u64 early_ns;  /* how much earlier than due a packet may leave */
    u64 turned_ns; /* the last turn */
    struct slot *slot;
    u32 slots;
    struct interface **interface;
    u32 interfaces;
    int *closing; /* sockets of removed ports */
    u32 closing_count;
    struct heap due; /* (time, slot) of devices; stale when the slot's next_ns is another */
    struct lateness late;
    struct wire_batch batch;

    struct outbox outbox; /* frames for the control plane */
};
