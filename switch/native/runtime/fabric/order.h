/* The order of simultaneous arrivals, as switch/fabric.py says it: numbers for a heap, the least first. */
#pragma once

#include "device/device.h"
#include "program/extern.h"

/* At a switch: 16 bits drawn from time and port, so that no port always comes first; the port; the order of sending. */
static inline u64 arrival_order(u64 t_ns, u32 port, u64 number)
{
    u64 state = t_ns * PORTS + port;
    return random_next(&state) >> 48 << 48 | (u64)port << 39 | (number & ((1ull << 39) - 1));
}

/* At the hosts: the host, its port, the order of sending. */
static inline u64 host_order(u32 host, u32 port, u64 number)
{
    return (u64)host << 44 | (u64)port << 35 | (number & ((1ull << 35) - 1));
}

static inline u32 ordered_host(u64 order)
{
    return (u32)(order >> 44);
}

static inline u16 ordered_port(u64 order)
{
    return order >> 35 & 511;
}
