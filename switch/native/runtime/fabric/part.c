/* A fabric in parts: frames for switches of other parts wait in those switches' heaps, in the order that they have there. */
#include "fabric/frame.h"
#include "fabric/inside.h"

int fabric_leave_to(struct fabric *f, u32 number, u32 part)
{
    if (number >= f->switches || !part)
        return FABRIC_NO_PORT;
    f->place[number].part = part;
    f->due_ns[number] = NEVER;
    return 0;
}

u64 fabric_between_ns(struct fabric *f)
{
    if (f->changed)
        fabric_measure(f);
    return f->between_ns;
}

u64 fabric_departing_ns(const struct fabric *f)
{
    return f->departing_ns;
}

u64 fabric_depart(struct fabric *f, u32 part, u8 *out, u64 room)
{
    u64 used = 0;
    f->departing_ns = NEVER;
    for (u32 i = 0; i < f->switches; i++) {
        struct heap *departing = &f->place[i].arrivals;
        while (f->place[i].part == part && departing->count) {
            struct packet *p = departing->item[0].what;
            if (used + sizeof(struct fabric_passing) + p->stored > room)
                break;
            heap_pop(departing);
            used += frame_pass_out(p, i, out + used);
            pool_give(f->pool, p);
        }
        if (f->place[i].part && departing->count)
            f->departing_ns = lesser(f->departing_ns, departing->item[0].t_ns);
    }
    return used;
}

int fabric_arrive(struct fabric *f, const u8 *bytes, u64 length)
{
    struct fabric_passing passing;
    for (u64 at = 0; at < length; at += sizeof passing + passing.stored) {
        if (length - at < sizeof passing)
            return FABRIC_MALFORMED;
        memcpy(&passing, bytes + at, sizeof passing);
        if (length - at - sizeof passing < passing.stored || passing.stored > passing.length ||
            passing.length > FRAME_MAX)
            return FABRIC_MALFORMED;
        if (passing.node >= f->switches || passing.port >= DROP_PORT || f->place[passing.node].part)
            return FABRIC_NO_PORT;
        if (passing.t_ns < f->now_ns)
            return FABRIC_PAST;
        struct packet *p = frame_pass_in(f->pool, &passing, bytes + at + sizeof passing);
        if (!p)
            return FABRIC_NO_MEMORY;
        if (!fabric_give_to_switch(f, &(struct fabric_end){END_SWITCH, passing.node, passing.port}, p)) {
            pool_give(f->pool, p);
            return FABRIC_NO_MEMORY;
        }
    }
    return 0;
}
