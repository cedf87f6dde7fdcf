/* Control-plane access to a loaded device, by the numbers that the program gave its objects. -1: no such cell. */
#pragma once

#include "device/device.h"

/* `kind` is enum target_kind; `action` is an action's number, a member id or a group id. Codes as table_insert. */
long access_insert(struct device *d, u32 table, const u64 *key, const u64 *mask, u32 prefix_len, int priority, u32 kind,
                   u32 action, const u64 *args);
int access_modify(struct device *d, u32 table, u32 handle, u32 kind, u32 action, const u64 *args);
int access_delete(struct device *d, u32 table, u32 handle);
int access_set_default(struct device *d, u32 table, u32 action, const u64 *args);

int access_set_member(struct device *d, u32 profile, u32 id, u32 action, const u64 *args);
int access_set_group(struct device *d, u32 profile, u32 id, const u32 *members, const u32 *weights, u32 count);

/* The cell of counter `number`, or with `direct` of the entry with handle `index` of table `number`. */
int access_counter(struct device *d, bool direct, u32 number, u64 index, bool write, u64 *packets, u64 *bytes);
/* The packets of `count` cells of counter `number`, from cell `first`: the caller has checked that it has them. */
void access_packet_counts(struct device *d, u32 number, u64 first, u64 count, u64 *packets);
/* rates: cir, cburst, pir, pburst; NULL: unconfigured. */
int access_meter(struct device *d, bool direct, u32 number, u64 index, const u64 *rates);
int access_register(struct device *d, u32 number, u64 index, bool write, u64 *words);

/* When a packet last found an entry, or 0; -1: no such entry. */
long access_last_hit(struct device *d, u32 table, u32 handle);
/* The oldest digest that waits: its learn list, and its data with `bytes`; 0: none. `out` has room for FRAME_MAX. */
u32 access_digest(struct device *d, u8 *out, u32 *bytes);

/* Frames that have left by now_ns, as records of (u64 t_ns, u32 port, u32 length, frame padded to 8 bytes). Returns the
 * bytes used; when the next record does not fit it stays for the next call. */
u32 access_collect(struct device *d, u64 now_ns, u8 *out, u32 room);
