/* One thread that drives many devices in real time over Linux interfaces.
 *
 * Everything but the waiting happens inside the gate; control calls take it too. The thread sleeps until a frame comes,
 * a packet is due, or a control call wakes it; with a `turn_ns` on to its next multiple, so that one turn serves all
 * that has come and is due meanwhile. */
#pragma once

#include "device/device.h"
#include "driver/lateness.h"

struct driver;

/* NULL when memory or descriptors are out. */
struct driver *driver_create(u64 turn_ns);
/* Stops the thread; every device must have been removed. */
void driver_destroy(struct driver *d);
struct pool *driver_pool(struct driver *d);

void driver_enter(struct driver *d);
/* Leave the gate after a control call that touched a device (or NULL). */
void driver_leave(struct driver *d, struct device *device);
u64 driver_now_ns(void);
/* CPU time that the thread has used. */
u64 driver_cpu_ns(struct driver *d);

/* How late devices were served: `total` gets how often and by how much together since the start, `span` the longest
 * spans since the last call, as pairs of when something was due and when it was done. Returns their number. */
u32 driver_lateness(struct driver *d, u64 total[2], u64 span[2 * STALLS]);

/* With the gate held: */
/* `id` comes back with the frames that leave by ports without an interface. */
int driver_add(struct driver *d, struct device *device, u64 id);
void driver_remove(struct driver *d, struct device *device);
/* Attach a configured port to an interface. 0, or -errno with what could not be done in *what. */
int driver_attach(struct driver *d, struct device *device, u32 port, const char *interface, const char *netns,
                  const char **what);
/* Count what the kernel dropped at the port's socket since the last call. */
void driver_count_drops(struct driver *d, struct device *device, u32 port);

/* Without the gate: close the sockets of removed devices. The kernel takes about 10 ms for each, so they go together. */
void driver_close_sockets(struct driver *d);

/* Without the gate: wait for a frame that left by a port without an interface, or for a digest, whose `port` is PORTS
 * and the number of its learn list. Returns its length (more than `room`
 * is cut), or -1 when the driver is being destroyed. One caller at a time. */
long driver_take(struct driver *d, u64 *id, u32 *port, u8 *frame, u32 room);
/* Make driver_take return -1 from now on. */
void driver_end_takes(struct driver *d);
