#include "driver/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "program/hash.h"

enum { TAG_BYTES = 4, TAG_AT = 12 };
enum { ONE_PIECE_MAX = 7168 }; /* with what the kernel puts around it, within two pages */
_Static_assert(sizeof(struct virtio_net_hdr) == OFFLOAD_BYTES, "what the kernel puts before a frame");

/* --- opening, in another namespace -------------------------------------------------------------------------- */

struct opening {
    struct wire *wire;
    const char *interface, *netns;
    const char *what;
    int result;
};

static int failed(struct opening *o, const char *what)
{
    int error = errno ? errno : EIO;
    o->what = what;
    return -error;
}

static int open_socket(struct opening *o)
{
    struct wire *w = o->wire;
    int on = 1, bytes = BUFFER_BYTES, ifindex = (int)if_nametoindex(o->interface);
    if (!ifindex)
        return failed(o, "find the interface");
    w->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (w->fd < 0)
        return failed(o, "open a packet socket");
    if (setsockopt(w->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) &&
        setsockopt(w->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes))
        return failed(o, "enlarge the receive buffer");
    if (setsockopt(w->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
        (void)setsockopt(w->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    if (setsockopt(w->fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) ||
        setsockopt(w->fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on))
        return failed(o, "ask for offload and VLAN information");
    if (setsockopt(w->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on))
        return failed(o, "ignore outgoing packets (Linux 4.20 or later is needed)");
    struct packet_mreq promiscuous = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};
    if (setsockopt(w->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous))
        return failed(o, "make the interface promiscuous");
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = ifindex};
    if (bind(w->fd, (struct sockaddr *)&address, sizeof address))
        return failed(o, "bind to the interface");
    return 0;
}

static int enter_and_open(struct opening *o)
{
    int fd = o->netns ? open(o->netns, O_RDONLY | O_CLOEXEC) : -1;
    if (o->netns && fd < 0)
        return failed(o, "open the network namespace");
    int error = o->netns && setns(fd, CLONE_NEWNET) ? failed(o, "enter the network namespace") : 0;
    if (fd >= 0)
        close(fd);
    return error ? error : open_socket(o);
}

static void *opening_thread(void *argument)
{
    struct opening *o = argument;
    o->result = enter_and_open(o);
    return NULL;
}

/* A separate thread enters the namespace, so that no other code ever runs in it. */
int wire_open(struct wire *w, const char *interface, const char *netns, const char **what)
{
    struct opening o = {.wire = w, .interface = interface, .netns = netns, .what = "start a thread", .result = -EAGAIN};
    pthread_t thread;
    *w = (struct wire){.fd = -1};
    if (!pthread_create(&thread, NULL, opening_thread, &o))
        pthread_join(thread, NULL);
    *what = o.what;
    if (o.result < 0)
        wire_close(w);
    return o.result;
}

void wire_close(struct wire *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

enum { CLOSERS = 64 };

struct closing {
    const int *fds;
    u32 count;
    _Atomic u32 next;
};

static void *close_some(void *argument)
{
    struct closing *c = argument;
    for (u32 i = c->next++; i < c->count; i = c->next++)
        close(c->fds[i]);
    return NULL;
}

void wire_close_many(const int *fds, u32 count)
{
    struct closing c = {.fds = fds, .count = count};
    pthread_t thread[CLOSERS];
    u32 threads = 0;
    while (threads < CLOSERS && threads + 1 < count && !pthread_create(&thread[threads], NULL, close_some, &c))
        threads++;
    close_some(&c);
    while (threads)
        pthread_join(thread[--threads], NULL);
}

/* --- receiving ------------------------------------------------------------------------------------------------ */

void wire_batch_prepare(struct wire_batch *batch)
{
    for (int i = 0; i < BATCH; i++) {
        batch->part[i][0] = (struct iovec){batch->offload[i], OFFLOAD_BYTES};
        batch->part[i][1] = (struct iovec){batch->frame[i] + TAG_BYTES, FRAME_ROOM - TAG_BYTES};
        batch->message[i].msg_hdr = (struct msghdr){
            .msg_iov = batch->part[i],
            .msg_iovlen = 2,
            .msg_control = batch->control[i].bytes,
        };
    }
}

int wire_receive(const struct wire *w, struct wire_batch *batch)
{
    for (int i = 0; i < BATCH; i++)
        batch->message[i].msg_hdr.msg_controllen = sizeof batch->control[i];
    int count = recvmmsg(w->fd, batch->message, BATCH, MSG_DONTWAIT, NULL);
    return count < 0 ? 0 : count;
}

static void complete_checksum(u8 *frame, u32 length, u32 start, u32 offset)
{
    if (start > length || offset + 2 > length - start)
        return;
    u64 checksum = hash_csum16(frame + start, length - start);
    store16(frame + start + offset, checksum ? checksum : 0xFFFF);
}

static u8 *restore_tag(struct msghdr *header, u8 *frame, u32 *length)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        struct tpacket_auxdata aux;
        if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA || *length < TAG_AT)
            continue;
        memcpy(&aux, CMSG_DATA(c), sizeof aux);
        if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
            continue;
        memmove(frame - TAG_BYTES, frame, TAG_AT);
        frame -= TAG_BYTES;
        store16(frame + TAG_AT, aux.tp_status & TP_STATUS_VLAN_TPID_VALID ? aux.tp_vlan_tpid : ETH_P_8021Q);
        store16(frame + TAG_AT + 2, aux.tp_vlan_tci);
        *length += TAG_BYTES;
    }
    return frame;
}

u8 *wire_frame(struct wire_batch *batch, int i, u32 *length)
{
    struct mmsghdr *message = &batch->message[i];
    struct virtio_net_hdr offload;
    if (message->msg_len < OFFLOAD_BYTES || message->msg_hdr.msg_flags & MSG_TRUNC)
        return NULL;
    memcpy(&offload, batch->offload[i], sizeof offload);
    u8 *frame = batch->frame[i] + TAG_BYTES;
    *length = message->msg_len - OFFLOAD_BYTES;
    if (offload.gso_type != VIRTIO_NET_HDR_GSO_NONE || *length > FRAME_MAX - TAG_BYTES)
        return NULL;
    if (offload.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
        complete_checksum(frame, *length, offload.csum_start, offload.csum_offset);
    return restore_tag(&message->msg_hdr, frame, length);
}

/* --- sending -------------------------------------------------------------------------------------------------- */

int wire_send(const struct wire *w, struct packet *const *packet, u32 count)
{
    struct iovec part[BATCH];
    struct mmsghdr message[BATCH];
    for (u32 i = 0; i < count; i++) {
        u8 *frame = packet[i]->data;
        u32 length = packet[i]->length;
        struct virtio_net_hdr offload = {0};
        /* The kernel copies so many bytes into one piece of memory, and the rest into pages of their own, which takes
         * half a microsecond more on the way through a link. What is longer than two pages is better in pieces. */
        if (length <= ONE_PIECE_MAX)
            offload.hdr_len = (u16)length;
        memcpy(frame - OFFLOAD_BYTES, &offload, OFFLOAD_BYTES);
        part[i] = (struct iovec){frame - OFFLOAD_BYTES, length + OFFLOAD_BYTES};
        message[i].msg_hdr = (struct msghdr){.msg_iov = &part[i], .msg_iovlen = 1};
    }
    if (count == 1) /* as mostly in a lab: `sendmmsg` costs more then */
        return send(w->fd, part[0].iov_base, part[0].iov_len, MSG_DONTWAIT) < 0 ? -1 : 1;
    return sendmmsg(w->fd, message, count, MSG_DONTWAIT);
}

u32 wire_drops(const struct wire *w)
{
    struct tpacket_stats statistics;
    socklen_t size = sizeof statistics;
    if (getsockopt(w->fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &size))
        return 0;
    return statistics.tp_drops;
}
