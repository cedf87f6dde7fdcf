/* Packet sockets (packet(7)), one for each interface. */
#pragma once

#include <linux/if_packet.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "program/packet.h"

enum { BATCH = 64, BUFFER_BYTES = 8 << 20 };
enum { FRAME_ROOM = FRAME_MAX + 8 }; /* a VLAN tag that the kernel took out goes back in */

enum { OFFLOAD_BYTES = 10 }; /* a struct virtio_net_hdr, before each frame that is received or sent */

/* The socket of one interface. */
struct wire {
    int fd;
};

/* Frames received in one system call. */
struct wire_batch {
    struct mmsghdr message[BATCH];
    struct iovec part[BATCH][2];
    u8 offload[BATCH][16];
    union {
        struct cmsghdr header;
        u8 bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } control[BATCH];
    u8 frame[BATCH][FRAME_ROOM];
};

/* Open the socket of `interface` in the namespace at path `netns` (NULL: this process's own).
 * Returns 0, or -errno with what could not be done in *what. */
int wire_open(struct wire *w, const char *interface, const char *netns, const char **what);
void wire_close(struct wire *w);
/* Close many sockets at once: the kernel waits for a grace period at each, which threads can share. */
void wire_close_many(const int *fds, u32 count);

void wire_batch_prepare(struct wire_batch *batch);
/* Receive up to BATCH frames; 0 when there are none. */
int wire_receive(const struct wire *w, struct wire_batch *batch);
/* The frame of message i, checksum completed and VLAN tag put back; NULL when it cannot be one frame on a wire
 * (a segmentation-offload aggregate, or longer than FRAME_MAX). */
u8 *wire_frame(struct wire_batch *batch, int i, u32 *length);
/* Send up to BATCH frames, now or never: how many went, or -1 and errno of the first. The OFFLOAD_BYTES before each frame
 * are overwritten. */
int wire_send(const struct wire *w, struct packet *const *packet, u32 count);
/* Frames that the kernel dropped because they were not read in time, since the last call. */
u32 wire_drops(const struct wire *w);
