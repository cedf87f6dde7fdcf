/* Frames to be sent in one system call. */
#ifndef MRCLAB_OUTGOING_H
#define MRCLAB_OUTGOING_H

#include "device/device.h"
#include "driver/wire.h"

struct outgoing {
    u32 count;
    int fd;
    struct mmsghdr message[BATCH];
    struct iovec part[BATCH][2];
    struct packet *packet[BATCH];
    struct port *port[BATCH];
};

/* Add a packet, which leaves by a port's wire; sends what is there first where it goes by another socket, or is full. */
void outgoing_add(struct outgoing *out, struct pool *pool, struct port *port, const struct wire *wire, struct packet *p);
/* Send everything, and give the packets back to the pool. */
void outgoing_flush(struct outgoing *out, struct pool *pool);

#endif
