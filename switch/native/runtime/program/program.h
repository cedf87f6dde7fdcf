/* What an emitted P4 program exports: descriptions of its objects, and its parser, pipelines and deparser. */
#pragma once

#include "program/packet.h"

struct device;

enum table_kind { TABLE_KEYLESS, TABLE_EXACT, TABLE_LPM, TABLE_SCAN };

struct table_info {
    const char *name;
    u32 kind;        /* enum table_kind; TABLE_SCAN serves ternary, range and optional */
    u32 key_words;   /* 64-bit words of a key */
    u32 args_words;  /* room for the action data of the largest action */
    u32 max_entries;
    int profile; /* number of its action profile, or -1 */
};

struct meter_info {
    const char *name;
    u32 size; /* 0: direct */
    bool bytes;
};

struct counter_info {
    const char *name;
    u32 size;
};

struct register_info {
    const char *name;
    u32 size;
    u32 words; /* 64-bit words of one cell */
};

struct program {
    const char *name;
    u32 headers_size; /* bytes of struct headers */
    u32 headroom;     /* the longest header that the deparser writes */
    u32 tables, profiles, meters, counters, registers;
    const struct table_info *table;
    const u32 *profile_args_words;
    const struct meter_info *meter;
    const struct counter_info *counter;
    const struct register_info *reg;
    /* A packet comes in from a port: its metadata (the headers are zero). */
    void (*arrive)(struct packet *, u64 now_ns);
    void (*parse)(struct device *, struct packet *, u64 now_ns);
    void (*ingress)(struct device *, struct packet *, u64 now_ns);
    void (*egress)(struct device *, struct packet *, u64 now_ns);
    void (*deparse)(struct device *, struct packet *, u64 now_ns);
    /* Zero the metadata of `to`, copy the fields of a list into it, set its instance type and packet length. */
    void (*preserve)(struct packet *to, const struct packet *from, u32 list);
};
