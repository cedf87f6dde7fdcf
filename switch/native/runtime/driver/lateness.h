#pragma once

#include "program/bits.h"

enum { STALLS = 16 };

/* How late frames left, and the longest spans in which nothing left although something was due. */
struct lateness {
    u64 packets, sum_ns;
    u32 count;
    struct {
        u64 due_ns, done_ns;
    } stall[STALLS];
};

/* Something was due at `due_ns` and is done only now. Overlapping spans are one; of too many the shortest goes. */
void lateness_note(struct lateness *late, u64 due_ns, u64 now_ns);

/* Totals since the start, and the spans (due, done) since the last call; how many those are. */
u32 lateness_take(struct lateness *late, u64 total[2], u64 span[2 * STALLS]);
