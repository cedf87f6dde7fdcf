/* Frames that have arrived at hosts, until they are taken. */
#include "fabric/fabric.h"
#include "fabric/frame.h"
#include "fabric/inside.h"
#include "fabric/order.h"

u32 fabric_gather(struct fabric *f, u64 before_ns)
{
    u32 left = 0;
    for (u32 i = 0; i < f->gathered_count; i++)
        if (f->inbox[f->gathered[i]].first)
            f->gathered[left++] = f->gathered[i];
    f->gathered_count = left;
    while (fabric_next_arrival_ns(f) < before_ns) {
        struct heap_item item = heap_pop(&f->to_hosts);
        struct packet *p = item.what; /* not in the cache, and nothing of it is read here */
        u32 host = ordered_host(item.order);
        u16 port = ordered_port(item.order);
        bool up = nic_port_at(f, host, port)->config.up;
        if (f->recorder)
            frame_note_arrived(f->recorder, host, up, p);
        if (!up) {
            pool_give(f->pool, p);
            continue;
        }
        if (!f->inbox[host].first)
            f->gathered[f->gathered_count++] = host;
        fifo_put(&f->inbox[host], p);
    }
    return f->gathered_count;
}

const u32 *fabric_gathered(const struct fabric *f)
{
    return f->gathered;
}

const struct packet *fabric_first(const struct fabric *f, u32 host)
{
    return host < f->hosts ? f->inbox[host].first : NULL;
}

void fabric_drop_first(struct fabric *f, u32 host)
{
    pool_give(f->pool, fifo_take(&f->inbox[host]));
}

u64 fabric_collect(struct fabric *f, u32 host, u8 *out, u64 room)
{
    const struct packet *p;
    u64 used = 0;
    while ((p = fabric_first(f, host))) {
        u32 bytes = frame_bytes(p);
        struct fabric_record record = {p->t_ns, host, p->port_in, (u16)bytes};
        if (used + sizeof record + bytes > room)
            break;
        memcpy(out + used, &record, sizeof record);
        frame_put(p, out + used + sizeof record);
        used += sizeof record + bytes;
        fabric_drop_first(f, host);
    }
    return used;
}
