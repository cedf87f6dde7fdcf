#include "fabric/frame.h"

struct frame frame_measured(bool counts, const u8 *at, u32 bytes)
{
    enum { TYPE = 12, IPV6_LENGTH = 18, IPV6_END = 54, IPV6 = 0x86DD };
    struct frame frame = {at, bytes, bytes};
    if (counts && bytes >= IPV6_END + COUNTED_TAIL && load16(at + TYPE) == IPV6) {
        u32 length = (u32)load16(at + IPV6_LENGTH) + IPV6_END;
        if (length > bytes)
            frame = (struct frame){at, bytes - COUNTED_TAIL, length};
    }
    return frame;
}

struct packet *frame_packet(struct pool *pool, const struct frame *frame)
{
    struct packet *p = pool_take(pool, frame->stored, (struct extra){0, 0});
    if (!p)
        return NULL;
    memcpy(p->data, frame->at, frame->stored);
    p->length = frame->length;
    p->counted = frame->stored < frame->length;
    if (p->counted)
        memcpy(p->tail, frame->at + frame->stored, COUNTED_TAIL);
    return p;
}

u32 frame_bytes(const struct packet *p)
{
    return p->counted ? p->stored + COUNTED_TAIL : p->length;
}

void frame_put(const struct packet *p, u8 *out)
{
    memcpy(out, p->data, p->stored);
    if (p->counted)
        memcpy(out + p->stored, p->tail, COUNTED_TAIL);
    else
        memset(out + p->stored, 0, p->length - p->stored);
}

u64 frame_pass_out(const struct packet *p, u32 node, u8 *out)
{
    struct fabric_passing passing = {
        .t_ns = p->t_ns,
        .node = node,
        .port = p->port_in,
        .length = (u16)p->length,
        .stored = (u16)p->stored,
        .counted = p->counted,
    };
    memcpy(passing.tail, p->tail, COUNTED_TAIL);
    memcpy(out, &passing, sizeof passing);
    memcpy(out + sizeof passing, p->data, p->stored);
    return sizeof passing + p->stored;
}

struct packet *frame_pass_in(struct pool *pool, const struct fabric_passing *passing, const u8 *data)
{
    struct packet *p = pool_take(pool, passing->stored, (struct extra){0, 0});
    if (!p)
        return NULL;
    memcpy(p->data, data, passing->stored);
    memcpy(p->tail, passing->tail, COUNTED_TAIL);
    p->length = passing->length;
    p->counted = passing->counted;
    p->t_ns = passing->t_ns;
    return p;
}

void frame_note_leaving(struct recorder *recorder, const struct fabric_record *of, enum fate fate, u64 t_ns,
                        u64 arrives_ns, const struct frame *frame)
{
    struct packet_record record = {
        .t_ns = t_ns,
        .arrives_ns = arrives_ns,
        .queued_ns = of->t_ns,
        .node = of->host,
        .port = of->port,
        .port_in = RECORD_NO_PORT,
        .length = (u16)frame->length,
        .length_in = (u16)frame->length,
        .kind = RECORD_HOST,
        .fate = (u8)fate,
    };
    recorder_note(recorder, record, frame->at, frame->stored);
}

void frame_note_arrived(struct recorder *recorder, u32 host, bool up, const struct packet *p)
{
    struct packet_record record = {
        .t_ns = p->t_ns,
        .queued_ns = p->t_ns,
        .node = host,
        .port = RECORD_NO_PORT,
        .port_in = p->port_in,
        .length = (u16)p->length,
        .length_in = (u16)p->length,
        .kind = RECORD_HOST,
        .fate = up ? FATE_RECEIVED : FATE_PORT_DOWN,
    };
    recorder_note(recorder, record, p->data, p->stored);
}
