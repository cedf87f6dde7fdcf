#include "driver/lateness.h"

enum { STALL_NS = 2000000 }; /* lateness from which on a span is kept; judging compares it with a round trip */

void lateness_note(struct lateness *late, u64 due_ns, u64 now_ns)
{
    late->packets++;
    late->sum_ns += now_ns - due_ns;
    if (now_ns - due_ns < STALL_NS)
        return;
    u32 at = late->count;
    if (at && due_ns <= late->stall[at - 1].done_ns) {
        late->stall[at - 1].done_ns = now_ns;
        return;
    }
    if (at == STALLS) {
        u32 shortest = 0;
        for (u32 i = 1; i < at; i++)
            if (late->stall[i].done_ns - late->stall[i].due_ns <
                late->stall[shortest].done_ns - late->stall[shortest].due_ns)
                shortest = i;
        memmove(late->stall + shortest, late->stall + shortest + 1, (at - 1 - shortest) * sizeof *late->stall);
        at--;
    }
    late->stall[at].due_ns = due_ns;
    late->stall[at].done_ns = now_ns;
    late->count = at + 1;
}

u32 lateness_take(struct lateness *late, u64 total[2], u64 span[2 * STALLS])
{
    u32 count = late->count;
    total[0] = late->packets;
    total[1] = late->sum_ns;
    for (u32 i = 0; i < count; i++) {
        span[2 * i] = late->stall[i].due_ns;
        span[2 * i + 1] = late->stall[i].done_ns;
    }
    late->count = 0;
    return count;
}
