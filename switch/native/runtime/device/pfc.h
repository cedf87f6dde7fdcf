/* Priority-based flow control (IEEE 802.1Qbb) of one port: below the P4 program, between the MAC and the queues.
 *
 * A frame of a lossless priority is charged to the port by which it came, from when it is queued until it begins to leave.
 * Above xoff the port pauses its peer, at xon it lets the peer go on. Frames are those of IEEE 802.3, clause 31 and annex
 * 31D: EtherType 0x8808, opcode 0x0101, class-enable vector, eight times in quanta of 512 bit times. */
#pragma once

#include "program/packet.h"

struct device;
struct port;
struct port_config;

enum { PFC_FRAME_BYTES = 60 }; /* the least that Ethernet carries, without FCS */

struct pfc_pause {
    u64 since_ns;  /* from when it is not counted yet; NEVER: not paused */
    u64 until_ns;  /* when its quanta are over */
    u64 began_ns;  /* of this pause, however often it was repeated */
    u64 rate_ns;   /* when the queue's own rate lets the next packet go */
    bool watched;  /* the watchdog has counted it */
};

struct pfc {
    u8 classes; /* lossless priorities; 0: no PFC */
    u8 want;    /* those that the peer should hold back */
    u8 told;    /* those of which the peer knows */
    u16 quanta;
    u64 xoff_bytes, xon_bytes, headroom_bytes, watchdog_ns, mac;
    u64 held[8]; /* bytes that came by this port and wait, by priority */
    u64 sent_ns;
    struct pfc_pause pause[8];
};

void pfc_init(struct port *port);
/* After the rest of the port was configured; the caller reschedules the port. */
void pfc_configure(struct device *d, struct port *port, const struct port_config *config, u64 now_ns);
/* As after a power cycle, of a port with empty queues: nothing is held, said or heard. */
void pfc_forget(struct port *port, u64 now_ns);
/* Is there room for `bytes` of this packet? False: xoff and headroom of its port are used up. */
bool pfc_admits(const struct device *d, const struct packet *p, u32 bytes);
/* Charge a packet that was queued, or release one that leaves or is dropped. */
void pfc_charge(struct device *d, struct packet *p, u64 now_ns);
void pfc_release(struct device *d, struct packet *p, u64 now_ns);
/* Obey the frame if it is MAC control; false: it is not, and the program gets the frame. */
bool pfc_receive(struct device *d, struct port *port, const u8 *frame, u32 length);
/* Send the frame that is due. */
void pfc_send(struct device *d, struct port *port, u64 t_ns);
/* Count pauses up to now_ns. */
void pfc_settle(struct port *port, u64 now_ns);
