/* A fabric: switches, the cables between them and to hosts, and the frames on the way, in virtual time.
 *
 * Equal to taking one event after the other in the order that switch/fabric.py says. A cable takes at least a nanosecond: its port has
 * a rate or a delay.
 *
 * So a switch may be run alone for as long as the shortest cable takes: what others do meanwhile reaches it later. The
 * whole may run ahead of the hosts until the earliest frame that a host could still send might reach its leaf. */
#pragma once

#include "device/device.h"

struct fabric;

enum end_kind { END_NONE, END_SWITCH, END_HOST };

struct fabric_end {
    u32 kind; /* enum end_kind */
    u32 node; /* number of a switch or host, from 0 */
    u32 port;
};

/* A NIC port's transmit side. Down, it also drops what arrives. */
struct fabric_nic_port {
    u64 rate_bps; /* 0: no limit */
    u64 delay_ns;
    u64 loss; /* share of packets, in units of 2^-53 */
    u64 loss_seed;
    u64 overhead_bytes; /* around each frame on the wire */
    u64 up;
};

/* Before each frame that is given to fabric_send or comes from fabric_collect; little-endian, no padding between. */
struct fabric_record {
    u64 t_ns; /* in: when the host hands it over; out: when its last bit arrives */
    u32 host;
    u16 port;
    u16 length;
};

enum fabric_error { FABRIC_MALFORMED = -1, FABRIC_PAST = -2, FABRIC_NO_PORT = -3, FABRIC_NO_MEMORY = -4 };

struct fabric *fabric_create(u32 switches, u32 hosts, u32 host_ports);
/* The devices must have been destroyed before. */
void fabric_destroy(struct fabric *f);
/* What devices of this fabric are created with. */
struct pool *fabric_pool(struct fabric *f);
/* The device becomes switch `number`; from here its frames leave by cables. Returns 0 or an error. */
int fabric_attach(struct fabric *f, u32 number, struct device *d);
/* A cable between two ports. Returns 0 or an error. */
int fabric_connect(struct fabric *f, const struct fabric_end *a, const struct fabric_end *b);
int fabric_configure_nic_port(struct fabric *f, u32 host, u32 port, const struct fabric_nic_port *config);
/* Hosts may leave payload out of their frames from here on: a frame that is shorter than its outermost IPv6 header says is
 * as long as that on the wire, and its last four bytes, the ICRC, are behind the payload. `frame.h`
 * says how such frames reach hosts. */
void fabric_count_payload(struct fabric *f);
/* Have a recorder, which must outlive the fabric or be replaced, take down all packets from here on; NULL: none. */
void fabric_record(struct fabric *f, struct recorder *r);
/* Let a switch do what is due by the time that the fabric has reached: before anything of it is read or changed. */
void fabric_settle(struct fabric *f, u32 number);

/* Frames from hosts, as records each followed by its frame: each host's in order of time, none at a time that the fabric
 * has passed. Returns how many were taken: all, or those before the one that `*error` is about. */
u32 fabric_send(struct fabric *f, const u8 *bytes, u64 length, int *error);
/* One of them. Returns 0 or an error. */
int fabric_send_one(struct fabric *f, const struct fabric_record *record, const u8 *frame);
/* Run for as long as no host can interfere that sends nothing before `host_ns` besides answers to what it is given, and
 * not beyond limit_ns. Returns the time before which everything in the fabric has happened; 0 once a program has looked at
 * payload that was left out. */
u64 fabric_run(struct fabric *f, u64 host_ns, u64 limit_ns);
/* No frame that is not there yet arrives at a host before this. */
u64 fabric_horizon_ns(const struct fabric *f);
/* The next event in the fabric, the next arrival at a host; NEVER when there is none. */
u64 fabric_next_ns(const struct fabric *f);
u64 fabric_next_arrival_ns(const struct fabric *f);
/* Put the frames that arrive at hosts before before_ns into their inboxes, in order of time. Returns the number of hosts
 * whose inboxes are not empty, which fabric_gathered has, each once, in order of their first frames. */
u32 fabric_gather(struct fabric *f, u64 before_ns);
const u32 *fabric_gathered(const struct fabric *f);
/* Take the frames out of a host's inbox, as records. Returns the bytes used; when the next does not fit it stays for the
 * next call. */
u64 fabric_collect(struct fabric *f, u32 host, u8 *out, u64 room);
/* The first frame in a host's inbox, or NULL; take out what fabric_first has given. */
const struct packet *fabric_first(const struct fabric *f, u32 host);
void fabric_drop_first(struct fabric *f, u32 host);
/* A fabric in parts: each part has every cable, and only some of the switches are its own.
 *
 * Before a frame that goes from part to part, as it arrives at the switch `node`; little-endian. The bytes that are stored follow. */
struct fabric_passing {
    u64 t_ns;
    u32 node;
    u16 port, length, stored;
    u8 tail[4]; /* of a counted frame */
    u8 counted;
    u8 zero;
};

/* Switch `number` belongs to another part, from 1: its frames wait to be taken there. Returns 0 or an error. */
int fabric_leave_to(struct fabric *f, u32 number, u32 part);
/* No frame takes less time from switch to switch. */
u64 fabric_between_ns(struct fabric *f);
/* When the first frame that waits to be taken arrives at its switch; NEVER for none. */
u64 fabric_departing_ns(const struct fabric *f);
/* Take frames for a part, those of one cable in the order of sending. Returns the bytes used: nearly all of `room` when there
 * may be more. */
u64 fabric_depart(struct fabric *f, u32 part, u8 *out, u64 room);
/* Frames from another part, none at a time that the fabric has passed. Returns 0 or an error. */
int fabric_arrive(struct fabric *f, const u8 *bytes, u64 length);
/* Frames that switches have put on cables, altogether. */
u64 fabric_hops(const struct fabric *f);
