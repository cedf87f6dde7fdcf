/* Frames as hosts send and receive them, and the packets that switches have of them.
 *
 * Where payload is counted, a host leaves it out of its frame: headers and ICRC are there, and the lengths in the headers are
 * those with payload. A switch has a packet of the whole length and stores the headers. Whole, the frame reaches its host
 * as it was sent; of a frame that was cut the host is given as many bytes as are left, zeros where payload would be. */
#pragma once

#include "fabric/fabric.h"

/* A frame from a host: the bytes in front of a payload that is left out, and all bytes that are on the wire. */
struct frame {
    const u8 *at;
    u32 stored, length;
};

/* With `counts`, payload is left out of a frame that is shorter than its outermost IPv6 header says. */
struct frame frame_measured(bool counts, const u8 *at, u32 bytes);
/* The packet of a frame; NULL when memory is out. */
struct packet *frame_packet(struct pool *pool, const struct frame *frame);
/* The bytes that a host is given of a packet: their number, and the bytes themselves. */
u32 frame_bytes(const struct packet *p);
void frame_put(const struct packet *p, u8 *out);
/* A packet that goes to another part of the fabric, as bytes, of which the number is returned; the packet of such bytes,
 * NULL when memory is out. */
u64 frame_pass_out(const struct packet *p, u32 node, u8 *out);
struct packet *frame_pass_in(struct pool *pool, const struct fabric_passing *passing, const u8 *data);
/* Tell the recorder of a frame that a host's port sends (`arrives_ns` is when its last bit is there) or ends. */
void frame_note_leaving(struct recorder *recorder, const struct fabric_record *of, enum fate fate, u64 t_ns,
                        u64 arrives_ns, const struct frame *frame);
/* Tell the recorder of a frame that has reached a host's port, which is up or not. */
void frame_note_arrived(struct recorder *recorder, u32 host, bool up, const struct packet *p);
