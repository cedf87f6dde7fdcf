"""The receiving half of a RoCE QP: packets in order; those ahead of their turn are dropped, or kept until then."""

from __future__ import annotations

from endpoint.nic import wire as shared
from endpoint.nic.memory import Rights, place
from endpoint.nic.packet import Route
from endpoint.nic.verbs import Fail
from endpoint.nic.wire import PSN_HALF, PSN_MASK
from endpoint.nic.work import WorkQueue
from endpoint.roce import wire
from endpoint.roce.context import Context
from endpoint.roce.dcqcn_setting import dcqcn_setting
from endpoint.transport import CompletionStatus

_Packet = tuple[int, int, shared.Reth | None, int, memoryview, int, int]


class Responder:
    """Go-back-N: a packet ahead of its turn is dropped and answered with one NAK until the sequence goes on.

    Selective repeat: the packet is kept, and each one brings a NAK that names the gap and the packet.
    """

    def __init__(
        self, context: Context, work: WorkQueue, answers: Answers, rights: Rights, fail: Fail, epsn: int, pmtu: int
    ) -> None:
        self._work = work
        self._rights = rights
        self._answers = answers
        self._fail = fail
        self._writable = context.memory.writable
        self._pmtu = pmtu
        setting = dcqcn_setting(context.settings.dcqcn_setting)
        limits = context.limits
        constants = setting.at(limits.rate_bps, limits.base_rtt_ns, limits.bdp_bytes)
        self._cnp_period_ns = constants.cnp_period_ns
        self._cnp_due_ns = 0
        self.epsn = epsn
        self.msn = 0
        self._nak_sent = False
        self._ahead_max = int(context.settings.window_bdps * limits.bdp_bytes) // pmtu
        self._selective = context.settings.selective_repeat
        self._ahead: dict[int, _Packet] = {}
        """By PSN, the packets that are kept: as many as the window holds."""
        self._va = self._rkey = 0
        self._length = self._left = 0
        """Bytes of the message under way, and those that have not arrived; 0 between messages."""
        self.syndrome = 0
        """With which this end has refused a request and ended the QP; 0: it has not."""
        self.received_bytes = self.received_packets = 0
        self.duplicates = self.marked = self.naks_sent = self.cnps_sent = 0

    def receive_write(
        self,
        now_ns: int,
        opcode: int,
        flags: int,
        psn24: int,
        marked: bool,
        reth: shared.Reth | None,
        immediate: int,
        frame: memoryview,
        start: int,
        size: int,
    ) -> None:
        """A write whose ICRC was right; `reth` is there for the first packet of a message.

        The payload without pad is the `size` bytes of `frame` from `start` on.
        """
        if marked:
            self._congested(now_ns)
        distance = (psn24 - self.epsn) & PSN_MASK
        if distance:
            if 0 < distance <= self._ahead_max and self._selective:
                packet = opcode, flags, reth, immediate, memoryview(bytes(frame)), start, size
                self._ahead.setdefault(self.epsn + distance, packet)
            self._out_of_order(distance, flags)
            return
        self._take(now_ns, opcode, flags, reth, immediate, frame, start, size)
        while self._ahead and (kept := self._ahead.pop(self.epsn, None)) is not None:
            self._take(now_ns, *kept)

    def _take(
        self,
        now_ns: int,
        opcode: int,
        flags: int,
        reth: shared.Reth | None,
        immediate: int,
        frame: memoryview,
        start: int,
        size: int,
    ) -> None:
        """The packet whose turn it is."""
        if (reth is not None) != (self._left == 0):
            self._refuse(now_ns, wire.SYNDROME_NAK_INVALID, "a message began inside of another, or without its start")
            return
        if reth is not None:
            self._va, self._rkey, self._left = reth.va, reth.rkey, reth.length
            self._length = reth.length
        last = opcode in wire.LASTS
        if size > self._left or (size != self._left if last else size != self._pmtu):
            self._refuse(now_ns, wire.SYNDROME_NAK_INVALID, f"{wire.Opcode(opcode).name} of {size} bytes")
            return
        region = self._writable.get(self._rkey)
        at = self._va - region.va if region is not None else -1
        rights = self._rights
        wrong = region is None or at < 0 or at + size > region.length or region.domain != rights.domain
        if (
            wrong and (size or rights.domain < 0) and not rights.admit(region, at, size)
        ):  # C9-88: no key of an empty write
            what = f"write of {size} bytes to {self._va:#x} rkey {self._rkey:#x}"
            self._refuse(now_ns, wire.SYNDROME_NAK_INVALID if rights.domain < 0 else wire.SYNDROME_NAK_ACCESS, what)
            return
        if size and region is not None and not place(region, at, frame, start, size):
            what = f"write of {size} bytes to {self._va:#x}, where the program has no memory any more"
            self._refuse(now_ns, wire.SYNDROME_NAK_ACCESS, what)
            return
        if opcode in wire.IMMEDIATES and not self._work.deliver(
            immediate, self._length, bool(flags & shared.SOLICITED)
        ):
            self._refuse(now_ns, wire.SYNDROME_NAK_OPERATIONAL, "a write with immediate found no posted receive")
            return
        self._va += size
        self._left -= size
        self.epsn += 1
        self._nak_sent = False
        self.received_bytes += size
        self.received_packets += 1
        if last:
            self.msn += 1
        if flags & wire.ACK_REQUEST:
            self._answers.ack(wire.SYNDROME_ACK, self.epsn - 1, self.msn)

    def _out_of_order(self, distance: int, flags: int) -> None:
        """A packet that was here before is acknowledged if it asks; of a gap the first packet behind it tells."""
        if distance >= PSN_HALF:
            self.duplicates += 1
            if flags & wire.ACK_REQUEST:
                self._answers.ack(wire.SYNDROME_ACK, self.epsn - 1, self.msn)
        elif self._selective:
            if self.epsn + distance in self._ahead:
                self.naks_sent += 1
                self._answers.ack(wire.SYNDROME_NAK_SEQUENCE, self.epsn, self.epsn + distance)
        elif not self._nak_sent:
            self._nak_sent = True
            self.naks_sent += 1
            self._answers.ack(wire.SYNDROME_NAK_SEQUENCE, self.epsn, self.msn)

    def _congested(self, now_ns: int) -> None:
        """DCQCN's notification point: at most one notification a period."""
        self.marked += 1
        if now_ns >= self._cnp_due_ns:
            self._cnp_due_ns = now_ns + self._cnp_period_ns
            self.cnps_sent += 1
            self._answers.cnp()

    def _refuse(self, now_ns: int, syndrome: int, cause: str) -> None:
        self.syndrome = syndrome
        self._answers.ack(syndrome, self.epsn, self.msn)
        self._fail(now_ns, CompletionStatus.FLUSHED, cause)

    def counters(self) -> dict[str, int]:
        return {
            "received_bytes": self.received_bytes,
            "received_packets": self.received_packets,
            "duplicates": self.duplicates,
            "received_marked": self.marked,
            "nacks_sent": self.naks_sent,
            "cnps_sent": self.cnps_sent,
        }


class Answers:
    """Queues control frames for the QP `dest_qpn` of the peer."""

    def __init__(self, route: Route, dest_qpn: int, traffic_class: int) -> None:
        self._route = route
        self._dest_qpn = dest_qpn
        self._traffic_class = traffic_class

    def ack(self, syndrome: int, psn: int, msn: int) -> None:
        """Acknowledge through `psn`, or refuse it, by the syndrome; `msn` messages are complete."""
        bth = shared.Bth(wire.Opcode.ACKNOWLEDGE, self._dest_qpn, psn & PSN_MASK, variant=0xFF)
        self._send(bth.pack() + shared.Aeth(syndrome, msn & PSN_MASK).pack())

    def cnp(self) -> None:
        """Tell the peer that one of its packets was marked."""
        self._send(shared.Bth(wire.Opcode.CNP, self._dest_qpn, 0, variant=0xFF).pack() + wire.CNP_PAYLOAD)

    def _send(self, transport: bytes) -> None:
        self._route.port.queue_control(self._route.seal(bytearray(transport), self._traffic_class))
