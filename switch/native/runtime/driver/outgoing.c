#include "driver/outgoing.h"

#include <errno.h>

static u8 no_offload[OFFLOAD_BYTES]; /* before each frame, as the socket asks for */

void outgoing_flush(struct outgoing *out, struct pool *pool)
{
    u32 sent = 0;
    while (sent < out->count) {
        int done = sendmmsg(out->fd, out->message + sent, out->count - sent, MSG_DONTWAIT);
        if (done > 0) {
            sent += (u32)done;
        } else if (errno != EINTR) {
            /* The interface is down or gone, or the frame is too long for it. A port whose cable has been pulled takes
             * no frames any more (ENOBUFS), and those that were still propagating die with it. */
            struct port *port = out->port[sent];
            if (!port->up || errno == ENETDOWN || errno == ENXIO || errno == ENODEV)
                port->counters.drop_port_down++;
            else
                port->counters.drop_socket++;
            sent++;
        }
    }
    for (u32 i = 0; i < out->count; i++)
        pool_give(pool, out->packet[i]);
    out->count = 0;
}

void outgoing_add(struct outgoing *out, struct pool *pool, struct port *port, const struct wire *wire, struct packet *p)
{
    if (out->count == BATCH || (out->count && out->fd != wire->fd))
        outgoing_flush(out, pool);
    u32 i = out->count++;
    out->fd = wire->fd;
    out->packet[i] = p;
    out->port[i] = port;
    out->part[i][0] = (struct iovec){no_offload, sizeof no_offload};
    out->part[i][1] = (struct iovec){p->data, p->length};
    out->message[i].msg_hdr = (struct msghdr){.msg_iov = out->part[i], .msg_iovlen = 2};
}
