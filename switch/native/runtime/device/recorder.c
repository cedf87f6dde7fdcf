#include "device/recorder.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1024 };

struct recorder *recorder_create(u64 start_ns, u64 stop_ns)
{
    struct recorder *r = calloc(1, sizeof *r);
    if (r) {
        r->start_ns = start_ns;
        r->stop_ns = stop_ns;
    }
    return r;
}

void recorder_destroy(struct recorder *r)
{
    free(r->record);
    free(r);
}

static bool grow(struct recorder *r)
{
    u64 room = r->room ? 2 * r->room : FIRST_ROOM;
    struct packet_record *records = realloc(r->record, room * sizeof *records);
    if (!records)
        return false;
    r->record = records;
    r->room = room;
    return true;
}

void recorder_note(struct recorder *r, struct packet_record record, const u8 *frame, u32 stored)
{
    if (record.t_ns < r->start_ns || record.t_ns >= r->stop_ns)
        return;
    if (r->count == r->room && !grow(r)) {
        r->missing++;
        return;
    }
    record.head_length = (u8)(stored < RECORD_HEAD ? stored : RECORD_HEAD);
    memcpy(record.head, frame, record.head_length);
    r->record[r->count++] = record;
}

u64 recorder_take(struct recorder *r, u8 *out, u64 room)
{
    u64 count = room / sizeof *r->record;
    if (count > r->count)
        count = r->count;
    if (!count)
        return 0;
    memcpy(out, r->record, count * sizeof *r->record);
    r->count -= count;
    memmove(r->record, r->record + count, r->count * sizeof *r->record);
    return count;
}

u64 recorder_missing(const struct recorder *r)
{
    return r->missing;
}
