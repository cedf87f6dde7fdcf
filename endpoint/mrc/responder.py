"""The receiving half of a QP: places packets as they come, keeps the bitmap, answers with SACK, ACK and NACK.

Numbers without wrap inside: `epsn` is the next PSN expected in order, bit i of `bitmap` is PSN epsn + i. A packet is
placed before it is recorded, so all that a SACK reports is in memory. Messages complete in order as the bitmap closes
behind their last packets; that is when immediates are delivered and transport acknowledgements fall due.
"""

from typing import Final

from endpoint.mrc.arrived import Arrived
from endpoint.mrc.congestion.granter import CREDIT_UNIT
from endpoint.mrc.context import Context
from endpoint.mrc.reverse import ReverseEvs
from endpoint.nic import codec, icrc, packet, wire
from endpoint.nic.config import NEVER
from endpoint.nic.headers import Header
from endpoint.nic.memory import Rights, place
from endpoint.nic.packet import VARIANT_MASKED, Route
from endpoint.nic.port import Port
from endpoint.nic.verbs import Fail
from endpoint.nic.wire import ACK_REQUEST, PSN_HALF, PSN_MASK, RETRANSMISSION, SOLICITED, NackReason, Opcode, Syndrome
from endpoint.nic.work import WorkQueue
from endpoint.transport import CompletionStatus

SACK_TYPE: Final = int(wire.PdsType.SACK) << 12
CREDIT_CC: Final = int(wire.CcType.CREDIT) << 4


class Answers:
    """Queues control frames for the QP `dest_qpn` of the peer, in the traffic class of control packets."""

    def __init__(self, dest_qpn: int, traffic_class: int) -> None:
        self._dest_qpn = dest_qpn
        self._dest_masked = VARIANT_MASKED | dest_qpn
        self._traffic_class = traffic_class
        self.mpr = 0
        """The dynamic MPR as SACKs say it, in units of 128 PSNs; 0: off."""
        self.granted_bytes = -1
        """Credit granted so far, where this host's congestion control grants any; -1: SACKs say what was received."""
        self.sacks_sent = self.nacks_sent = 0

    def sack(
        self,
        route: Route,
        cack: int,
        start: int,
        bitmap: int,
        ev: int,
        signals: int,
        answer: int,
        stamp: int,
        beyond: int,
        congestion: int,
    ) -> None:
        """A SACK: everything up to `cack` has arrived, and bit i of `bitmap` says whether cack + start + i has.

        `signals` are the path mark and the probe response in the SETH's first 16 bits, `answer` its offset of the
        causing PSN or its probe id; `beyond` counts PSNs above `cack`, `congestion` is the CC_STATE's last word.
        """
        self.sacks_sent += 1
        first = SACK_TYPE | signals
        cack &= PSN_MASK
        kind = 0
        if self.granted_bytes >= 0:
            kind = CREDIT_CC
            congestion = congestion & ~0xFFFFFF | self.granted_bytes // CREDIT_UNIT & 0xFFFFFF
        elif codec.IN_C:
            frame = codec.sack(
                route.headers, self._traffic_class, self._dest_masked, cack, first, answer, ev, self.mpr, start, bitmap,
                stamp, beyond, congestion,
            )  # fmt: skip
            route.port.queue_control(frame)
            return
        transport = bytearray(packet.SACK.size)
        packet.SACK.pack_into(
            transport, 0,
            wire.OP_SACK, 0, 0xFFFF, self._dest_masked, cack,
            first, answer, ev, 0, 0, cack, kind, self.mpr, start, bitmap,
            stamp, beyond, congestion,
        )  # fmt: skip
        route.port.queue_control(route.seal(transport, self._traffic_class))

    def nack(self, route: Route, psn: int, ev: int, reason: NackReason, stamp: int) -> None:
        """Refuse the packet `psn` that came on `ev`."""
        self._send(route, Opcode.NACK, psn, wire.Neth(reason, psn & PSN_MASK, ev, stamp))
        self.nacks_sent += 1

    def transport_ack(self, route: Route, syndrome: Syndrome, psn: int, msn: int) -> None:
        """Through `psn` everything has arrived and `msn` messages are complete; or, by the syndrome, the QP ends."""
        self._send(route, Opcode.ACKNOWLEDGE, psn, wire.Aeth(syndrome, msn & PSN_MASK))

    def _send(self, route: Route, opcode: int, psn: int, extension: Header) -> None:
        bth = wire.Bth(opcode, self._dest_qpn, psn & PSN_MASK, variant=0xFF)
        route.port.queue_control(route.seal(bytearray(bth.pack() + extension.pack()), self._traffic_class))


WORD: Final = (1 << wire.SACK_BITS) - 1
SACKS_MAX: Final = 128
"""Acknowledgements in one go, when what is new does not fit one bitmap: enough for the largest window."""
NO_CAUSE: Final = -0x8000
"""The offset of a causing PSN that no window reaches."""
COUNTED_BYTES: Final = 8 + wire.BTH_BYTES + wire.METH_BYTES + wire.RETH_BYTES + icrc.SIZE + 40
"""The bytes of a write's packet in `rcvd_bytes` beside its payload: the length of its UDP datagram, and 40 for the
IPv6 header (UEC 3.6.13: nominal packet size). The pad, a TSETH and an immediate count as well. NSCC's bytes in flight
are the same sum at the requester, so bytes that one end left out would stay in flight for ever at the other."""
SACK_SIZE_MIN: Final = 1024
"""A packet counts at least this much towards the threshold (OCP MRC, SACK trigger 1)."""


class Responder:
    """`epsn` is the first PSN of the peer, `window` how many PSNs from there on it may use, `max_write_imm` how many
    of its writes with immediate may wait; with `trim_nack` the peer wants NACKs for packets that arrive trimmed."""

    def __init__(
        self,
        context: Context,
        work: WorkQueue,
        reverse: ReverseEvs,
        answers: Answers,
        rights: Rights,
        fail: Fail,
        *,
        epsn: int,
        pmtu: int,
        window: int,
        max_write_imm: int,
        trim_nack: bool,
    ) -> None:
        self._work = work
        self._reverse = reverse
        self._answers = answers
        self._rights = rights
        self._fail = fail
        self._penalty = context.penalty
        self._crediting = context.crediting if context.crediting.grants_anything else None
        self.qpn = 0
        """This end's, once the responder has joined the `Crediting`."""
        self._granting_at = 0
        self._memory = context.memory
        self._pmtu = pmtu
        self._threshold = context.limits.sack_threshold_bytes
        self._window = self._wanted = window
        """PSNs that are accepted from `epsn` on, and as many as there shall be once what was granted is used up."""
        self._edge = 0
        self._max_write_imm = max_write_imm
        self._oor_nack = context.settings.oor_nack
        self._trim_nack = trim_nack
        self._refusal: Syndrome | tuple[int, int] | None = None
        """With what this end has refused a packet and ended the QP: a NAK, or a NACK for this PSN on this EV."""
        self._refusal_interval_ns = context.limits.probe_interval_ns
        self._refusal_due_ns = NEVER
        self.epsn = epsn
        self.bitmap = 0
        self.lasts = 0
        """Received packets that end a message, as in `bitmap`."""
        self.unreported = 0
        """Received packets that no SACK has reported, as in `bitmap`."""
        self.immediates: dict[int, tuple[int, int, bool]] = {}
        """Immediate, message length and whether it is solicited, by the PSN of the last packet, until everything
        before it has arrived."""
        self.msn = 0
        """Messages completed in order."""
        self.msn_acked = 0
        self._sack_bytes = 0
        self.probes = 0
        self.received_bytes = self.received_packets = 0
        self._counted_bytes = 0
        self.penalty_seen_bytes = 0
        self.penalty_weight = 0.0
        self.duplicates = self.out_of_window = self.marked = self.trimmed = 0

    def grant(self, mpr: int) -> None:
        """Change the window to `mpr` units of 128 PSNs, and say so in every SACK (dynamic MPR). What was granted before
        stays granted: a smaller window holds from where the larger one ended."""
        self._edge = self.epsn + self._window
        self._answers.mpr = mpr
        self._wanted = mpr * wire.MPR_UNIT
        self._window = max(self._wanted, self._window)

    def receive_write(self, now_ns: int, write: Arrived, frame: bytes | memoryview) -> bool:
        """A write in `frame`, whose ICRC was right. True: it is placed, and that is all: no answer, no delivery."""
        distance = (write.psn - self.epsn) & PSN_MASK
        psn = self.epsn + distance
        if distance >= self._window:
            self._outside(now_ns, write, psn)
            return False
        bit = 1 << distance
        mark, size = write.mark, write.size
        if self.bitmap & bit:
            self.duplicates += 1
            self._acknowledge(now_ns, write, psn)
            return False
        if self._crediting is not None:
            self._crediting.arrived(now_ns, self, size, bool(mark))
        region = self._memory.written(write.rkey)
        at = write.va - region.va if region is not None else -1
        rights = self._rights
        wrong = region is None or at < 0 or at + size > region.length or region.domain != rights.domain
        if (
            wrong and (size or rights.domain < 0) and not rights.admit(region, at, size)
        ):  # C9-88: no key of an empty write
            return self._refuse_access(now_ns, psn, f"write of {size} bytes to {write.va:#x} rkey {write.rkey:#x}")
        if write.opcode >= wire.OP_WRITE_LAST:
            if not self._may_end(now_ns, write, psn):
                return False
            self.lasts |= bit
        elif size != self._pmtu:
            self._invalid(now_ns, write, psn, f"{Opcode(write.opcode).name} of {size} bytes")
            return False
        if size and region is not None and not place(region, at, frame, write.start, size):
            gone = f"write of {size} bytes to {write.va:#x}, where the program has no memory any more"
            return self._refuse_access(now_ns, psn, gone)
        self.bitmap |= bit
        self.unreported |= bit
        self.received_bytes += size
        self.received_packets += 1
        self._counted_bytes += (size + 3 & ~3) + COUNTED_BYTES
        if write.flags & wire.TIMESTAMP:
            self._counted_bytes += wire.TSETH_BYTES
        urgent = self._advance(now_ns) if not distance else False
        self._sack_bytes += size if size > SACK_SIZE_MIN else SACK_SIZE_MIN
        if urgent or mark or self._sack_bytes > self._threshold or write.flags & (ACK_REQUEST | RETRANSMISSION):
            self.marked += mark != 0
            self._acknowledge(now_ns, write, psn)
            return False
        return self._crediting is None

    def _may_end(self, now_ns: int, write: Arrived, psn: int) -> bool:
        """Whether this packet can be the last of its message; keeps its immediate until then."""
        size, opcode = write.size, write.opcode
        ahead = write.length - size  # what the message's other packets carry: whole ones, and none before an Only
        pmtu = self._pmtu
        only = opcode >= wire.OP_WRITE_ONLY
        if size > pmtu or ahead < 0 or (ahead if only else not size or ahead % pmtu):
            what = f"{Opcode(opcode).name} of {size} bytes in a message of {write.length}"
            self._invalid(now_ns, write, psn, what)
            return False
        if opcode == wire.OP_WRITE_LAST_IMM or opcode == wire.OP_WRITE_ONLY_IMM:
            if len(self.immediates) >= self._max_write_imm:
                what = f"more than {self._max_write_imm} writes with immediate in flight"
                self.refuse(now_ns, Syndrome.NAK_INVALID_REQUEST, what)
                return False
            self.immediates[psn] = (write.immediate, write.length, bool(write.flags & SOLICITED))
            self._counted_bytes += wire.IMMEDIATE.size
        return True

    def _refuse_access(self, now_ns: int, psn: int, what: str) -> bool:
        """A NAK is about the next message in order. A packet ahead of others counts as lost: it will come again."""
        if psn > self.epsn:
            self.lasts &= ~(1 << psn - self.epsn)
            self.immediates.pop(psn, None)
            return False
        no_writes = self._rights.domain < 0
        syndrome = Syndrome.NAK_INVALID_REQUEST if no_writes else Syndrome.NAK_REMOTE_ACCESS_ERROR
        self.refuse(now_ns, syndrome, what)
        return False

    def receive_trimmed(self, now_ns: int, write: Arrived, lasthop: bool) -> None:
        """Only headers arrived, and nothing but the window vouches for them: ask for the packet again."""
        self.trimmed += 1
        distance = (write.psn - self.epsn) & PSN_MASK
        psn = self.epsn + distance
        if distance >= self._window:
            self._outside(now_ns, write, psn)
        elif self.bitmap >> distance & 1:
            self.duplicates += 1
            self._acknowledge(now_ns, write, psn)
        else:
            if self._crediting is not None:
                self._crediting.trimmed(now_ns, self, self._pmtu, lasthop)
            if self._trim_nack:
                reason = NackReason.TRIMMED_LASTHOP if lasthop else NackReason.TRIMMED
                self.nack(write.port, write.ev, psn, reason, write.stamp)

    def receive_probe(self, now_ns: int, asked: Arrived, probe_id: int) -> None:
        """A reliability probe asks what has arrived from its PSN on, and whether messages have completed."""
        self.probes += 1
        distance = (asked.psn - self.epsn) & PSN_MASK
        from_bit = distance if distance < PSN_HALF else 0
        self.unreported |= self.bitmap >> from_bit << from_bit
        self.msn_acked = -1
        self.acknowledge(now_ns, asked.port, asked.ev, self.epsn - 1, asked.mark, asked.stamp, probe_id)

    def _outside(self, now_ns: int, write: Arrived, psn: int) -> None:
        if psn - self.epsn > PSN_HALF:  # in (epsn - 2^23, epsn): had arrived before
            self.duplicates += 1
            self.msn_acked = -1
            self._acknowledge(now_ns, write, psn - PSN_MASK - 1)
            return
        self.out_of_window += 1
        if self._oor_nack:
            self.nack(write.port, write.ev, psn, NackReason.PSN_OOR_WINDOW, write.stamp)

    def _invalid(self, now_ns: int, write: Arrived, psn: int, what: str) -> None:
        self._keep_refusal(now_ns, (psn, write.ev))
        self.nack(write.port, write.ev, psn, NackReason.UNEXP_EVENT, 0)
        self._fail(now_ns, CompletionStatus.REMOTE_OPERATION_ERROR, f"peer sent a {what}")

    def _advance(self, now_ns: int) -> bool:
        """Move past what is now contiguous and complete messages. True if an immediate was delivered."""
        holes = ~self.bitmap
        count = (holes & -holes).bit_length() - 1
        ended = self.lasts & ((1 << count) - 1)
        self.bitmap >>= count
        self.lasts >>= count
        self.unreported >>= count
        first = self.epsn
        self.epsn = first + count
        if self._window != self._wanted:
            self._window = max(self._wanted, self._edge - self.epsn)
        if not ended:
            return False
        if not self.immediates:
            self.msn += ended.bit_count()
            return False
        delivered = False
        while ended:
            low = ended & -ended
            ended ^= low
            immediate = self.immediates.pop(first + low.bit_length() - 1, None)
            if immediate is not None:
                if not self._work.deliver(*immediate):
                    what = "a write with immediate found no posted receive"
                    self.refuse(now_ns, Syndrome.NAK_REMOTE_OPERATIONAL_ERROR, what)
                    return True
                delivered = True
            self.msn += 1
        return delivered

    def counters(self) -> dict[str, int]:
        """This half of the QP's fields in `sample` lines."""
        return {
            "received_bytes": self.received_bytes,
            "received_packets": self.received_packets,
            "duplicates": self.duplicates,
            "received_trimmed": self.trimmed,
            "received_marked": self.marked,
            "sacks_sent": self._answers.sacks_sent,
            "nacks_sent": self._answers.nacks_sent,
        }

    # --- answers -----------------------------------------------------------------------------------------------

    def _acknowledge(self, now_ns: int, write: Arrived, psn: int) -> None:
        self.acknowledge(now_ns, write.port, write.ev, psn, write.mark, write.stamp)

    def acknowledge(
        self, now_ns: int, port: Port, ev: int, psn: int, mark: int, stamp: int, probe_id: int | None = None
    ) -> None:
        """Send a SACK caused by `psn` on `ev`, more of them if what is new spans several bitmaps, and an ACK if due.

        `psn` may be any number of the past; only the last SACK answers mark and probe. A probe has no PSN:
        the SACKs before the last must name none, or the peer would take that PSN for a late duplicate.
        """
        route = self._reverse.choose(port, ev) if probe_id is None else self._reverse.same_way(port, ev)
        if route is None:
            return
        self._sack_bytes = 0
        cack = self.epsn - 1
        offset = psn - cack
        answer = offset if probe_id is None and NO_CAUSE <= offset < 0x8000 else NO_CAUSE
        congestion = self._congestion(now_ns)
        beyond = self.bitmap.bit_count() if self.bitmap else 0
        for _sack in range(SACKS_MAX):
            start = self._next_bitmap()
            if not self.unreported:
                break
            bits = self._bits_from(start)
            self._answers.sack(route, cack, start + 1, bits, ev, 0, answer, stamp, beyond, congestion)
        signals = mark << 5
        if probe_id is not None:
            signals |= 2
            answer = probe_id - 0x10000 if probe_id & 0x8000 else probe_id
        bits = self._bits_from(start)
        self._answers.sack(route, cack, start + 1, bits, ev, signals, answer, stamp, beyond, congestion)
        if self.msn != self.msn_acked:
            self.msn_acked = self.msn
            self._answers.transport_ack(route, Syndrome.ACK, cack, self.msn)

    def _congestion(self, now_ns: int) -> int:
        """CC_STATE's window penalty, and the bytes received in units of 256, rounded up."""
        return self._penalty.at(now_ns) << 24 | (self._counted_bytes + 255 >> 8) & 0xFFFFFF

    def _next_bitmap(self) -> int:
        """Where the next SACK's bitmap starts, from `epsn`; what the bitmap covers is reported from now on.

        The bitmap covers the highest PSN not yet reported and as much as possible below it, so that a later SACK
        repeats what a lost one said. If what is unreported does not fit, the bitmap starts at the lowest.
        """
        unreported = self.unreported
        if not unreported >> wire.SACK_BITS:  # as nearly always; numbers of 64 bits are dear
            self.unreported = 0
            return 0
        lowest = (unreported & -unreported).bit_length() - 1
        start = min(lowest, unreported.bit_length() - wire.SACK_BITS)
        if unreported >> start >> wire.SACK_BITS:
            start = lowest
        self.unreported = unreported & ~(WORD << start)
        return start

    def _bits_from(self, start: int) -> int:
        """As many bits as a SACK has of `bitmap`, from this one on."""
        bits = self.bitmap >> start
        return bits & WORD if bits >> wire.SACK_BITS else bits

    def nack(self, port: Port, ev: int, psn: int, reason: NackReason, stamp: int) -> None:
        """Refuse `psn`, which came by `port` on `ev`."""
        route = self._reverse.choose(port, ev)
        if route is not None:
            self._answers.nack(route, psn, ev, reason, stamp)

    def _tell(self, now_ns: int, route: Route) -> None:
        cack, congestion = self.epsn - 1, self._congestion(now_ns)
        self._answers.sack(
            route, cack, 1, self.bitmap & WORD, route.ev, 0, NO_CAUSE, 0, self.bitmap.bit_count(), congestion
        )

    def credit(self, now_ns: int, size: int) -> None:
        """Grant `size` bytes more, and say so on one live plane after the other: the next SACK repeats what is lost."""
        self._answers.granted_bytes = max(self._answers.granted_bytes, 0) + size
        routes = self._reverse.live()
        if routes:
            self._granting_at = (self._granting_at + 1) % len(routes)
            self._tell(now_ns, routes[self._granting_at])

    def refuse(self, now_ns: int, syndrome: Syndrome, cause: str) -> None:
        """A packet cannot be accepted: tell the peer on every live port, and end the QP."""
        self._keep_refusal(now_ns, syndrome)
        for route in self._reverse.live():
            self._answers.transport_ack(route, syndrome, self.epsn - 1, self.msn)
        self._fail(now_ns, CompletionStatus.FLUSHED, cause)

    def _keep_refusal(self, now_ns: int, refusal: Syndrome | tuple[int, int]) -> None:
        self._refusal = refusal
        self._refusal_due_ns = now_ns + self._refusal_interval_ns

    @property
    def refusing(self) -> bool:
        """Whether this end has refused a packet and ended the QP."""
        return self._refusal is not None

    @property
    def syndrome(self) -> int:
        """Of the refusal; 0: there is none."""
        refusal = self._refusal or 0
        return int(refusal if isinstance(refusal, int) else Syndrome.NAK_INVALID_REQUEST)

    def refuse_again(self, now_ns: int, port: Port, ev: int) -> None:
        """A write or a probe has come by `port` on `ev`: repeat the refusal, at most once per probe interval."""
        route = self._reverse.choose(port, ev)
        if now_ns < self._refusal_due_ns or route is None:
            return
        self._refusal_due_ns = now_ns + self._refusal_interval_ns
        refusal = self._refusal
        if isinstance(refusal, Syndrome):
            self._answers.transport_ack(route, refusal, self.epsn - 1, self.msn)
        elif refusal is not None:
            psn, refused_ev = refusal
            self._answers.nack(route, psn, refused_ev, NackReason.UNEXP_EVENT, 0)
