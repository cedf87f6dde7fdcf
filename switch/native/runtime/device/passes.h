/* The passes of a packet through a device's program: ingress, queues, egress, and what goes round again. */
#pragma once

#include "device/device.h"

/* The room that the program needs with each packet. */
static inline struct extra extra_of(const struct device *d)
{
    return (struct extra){d->program->headers_size, d->program->headroom};
}

/* A packet, which holds the frame that a port has received, from the parser on. Owns the packet. */
void passes_enter(struct device *d, struct port *port, struct packet *p);
/* Everything that waits for another pass, or is served by now_ns. */
void passes_work(struct device *d, u64 now_ns);
