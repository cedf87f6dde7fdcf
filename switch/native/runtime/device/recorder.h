/* What becomes of packets in a stretch of time, for the packet log (switch/packet_log.py says what a record means). */
#pragma once

#include "program/bits.h"

enum { RECORD_HEAD = 160, RECORD_NO_PORT = UINT16_MAX };
enum record_kind { RECORD_SWITCH = 0, RECORD_HOST = 1 };
enum fate {
    FATE_SENT,
    FATE_LOST,
    FATE_QUEUE_FULL,
    FATE_PORT_DOWN,
    FATE_WIPED,
    FATE_NO_PROGRAM,
    FATE_NO_PORT,
    FATE_DROPPED,
    FATE_RECEIVED,
};

/* Little-endian, without holes: the layout of switch.packet_log.LAYOUT. */
struct packet_record {
    u64 t_ns, arrives_ns, queued_ns;
    u32 node, depth;
    u16 port, port_in, length, length_in;
    u8 kind, fate, priority, head_length;
    u8 reserved[4];
    u8 head[RECORD_HEAD];
};

struct recorder {
    u64 start_ns, stop_ns; /* records of times from the first on and before the second are kept */
    struct packet_record *record;
    u64 count, room;
    u64 missing; /* records for which there was no memory */
};

struct recorder *recorder_create(u64 start_ns, u64 stop_ns);
void recorder_destroy(struct recorder *r);
/* Keep a record with the first of the `stored` bytes of its frame. */
void recorder_note(struct recorder *r, struct packet_record record, const u8 *frame, u32 stored);
/* Move the oldest records that fit into `out`; how many there were. */
u64 recorder_take(struct recorder *r, u8 *out, u64 room);
u64 recorder_missing(const struct recorder *r);
