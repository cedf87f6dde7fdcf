"""The sending half of a RoCE QP: in order, back to the gap on a NAK or a timeout, at DCQCN's rate.

With selective repeat it does not go back: a NAK also names the packet that came, and what is missing before that one is
sent again, once; after a timeout everything that no NAK has named is. (IRN: Mittal et al., "Revisiting Network Support
for RDMA", SIGCOMM 2018, section 3.1.)
"""

from collections import deque
from math import ceil
from zlib import crc32

from endpoint.nic import wire as shared
from endpoint.nic.config import ACK_TIMEOUT_UNIT_NS, NEVER
from endpoint.nic.icrc import WIRE as ICRC
from endpoint.nic.message import Message
from endpoint.nic.packet import VARIANT, Route, left_out
from endpoint.nic.rtt import RttEstimator
from endpoint.nic.scheduler import Agenda, Sender
from endpoint.nic.verbs import Fail
from endpoint.nic.wire import PSN_MASK, expand
from endpoint.nic.work import WorkQueue
from endpoint.roce import wire
from endpoint.roce.context import Context
from endpoint.roce.dcqcn import Dcqcn
from endpoint.roce.dcqcn_setting import dcqcn_setting
from endpoint.transport import CompletionStatus

HEADER_BYTES_MAX = 136
"""Ethernet, two IPv6 headers, UDP, BTH, RETH, immediate, pad and ICRC."""
NAK_STATUS = {
    wire.SYNDROME_NAK_ACCESS: CompletionStatus.REMOTE_ACCESS_ERROR,
    wire.SYNDROME_NAK_INVALID: CompletionStatus.REMOTE_INVALID_REQUEST,
    wire.SYNDROME_NAK_OPERATIONAL: CompletionStatus.REMOTE_OPERATION_ERROR,
}


class Requester(Sender):
    """PSNs without wrap: `una` is the oldest not acknowledged, `nxt` the next to send, `top` the next never sent.
    `retries` are the timeout exponent and the number of retries."""

    def __init__(
        self,
        context: Context,
        work: WorkQueue,
        agenda: Agenda,
        route: Route,
        fail: Fail,
        *,
        dest_qpn: int,
        psn: int,
        pmtu: int,
        base_rtt_ns: int,
        retries: tuple[int, int],
    ) -> None:
        limits, settings = context.limits, context.settings
        self._scheduler = context.scheduler
        self._memory = context.memory
        self._work = work
        self._agenda = agenda
        self._route = route
        self._fail = fail
        self._dest_qpn = dest_qpn
        self._data_class = context.data_class
        self._heeds_cnps = settings.dcqcn
        self._pmtu = pmtu
        self._line_bps = route.port.rate_bps
        # Where processes are late, their lateness also keeps bytes in flight to a neighbour.
        full_rtt_ns = min(base_rtt_ns + limits.jitter_ns, max(base_rtt_ns, limits.base_rtt_ns))
        bdp = max(self._line_bps * full_rtt_ns // 8_000_000_000, 2 * pmtu)
        self._window = max(2, int(settings.window_bdps * bdp) // pmtu)
        """In packets."""
        self.dcqcn = Dcqcn(self._line_bps, limits.base_rtt_ns, bdp, dcqcn_setting(settings.dcqcn_setting))
        self._frame_bytes_max = pmtu + HEADER_BYTES_MAX
        self._ack_every = max(1, settings.ack_every_bytes // pmtu)
        self._since_request = 0
        # The timer must not fire for want of a request: packets this far apart, by rate or because other QPs use the
        # port too, ask one by one, and so does the last one of a turn.
        self._sparse_ns = limits.base_rtt_ns // self._ack_every
        self._sparse_bps = pmtu * 8_000_000_000 / max(1, self._sparse_ns)
        self._sent_ns = 0
        self._timeout_ns = ACK_TIMEOUT_UNIT_NS << retries[0]
        self._retry_count = retries[1]
        self._repair_ns = settings.repair_ns
        self._nak_repair_ns = settings.repair_ns if settings.nak_repair_ns is None else settings.nak_repair_ns
        self._hold_ns = 0
        """Until then nothing is sent: this NIC takes its time to go back."""
        self.una = self.nxt = self.top = psn
        self._selective = settings.selective_repeat
        self._lost: deque[int] = deque()
        """PSNs to send again, ascending, with selective repeat."""
        self._arrived: set[int] = set()
        """PSNs above `una` that NAKs have named."""
        self._judged = psn
        """Below this PSN, each packet has arrived or been sent again."""
        self._queue: deque[Message] = deque()
        self._begun: deque[Message] = deque()
        """Messages with PSNs that are not all acknowledged, oldest first."""
        self._turn_ns = 0
        """When the QP's rate lets the next packet go."""
        self._timer_ns = 0
        self._fresh = False
        """Whether a write was posted while nothing was under way, and no time has been told since: posting has none."""
        self._rtt = RttEstimator(base_rtt_ns)
        self._rtt_psn, self._rtt_sent_ns = -1, 0
        self.retries = 0
        self.acked_bytes = self.data_packets = self.retransmits = self.timeouts = 0
        self.naks = self.cnps = 0

    def configure(self, timeout: int, retry_cnt: int) -> None:
        """Attributes of the QP have changed: the local ACK timeout, 1.024 µs * 2^timeout, and the retries."""
        self._timeout_ns = ACK_TIMEOUT_UNIT_NS << timeout
        self._retry_count = retry_cnt
        if self._work.pending:
            self._agenda.arm(self._timer_ns + self._retry_timeout_ns())

    def enqueue(self, message: Message) -> None:
        """Send this write when its turn comes."""
        if self.una == self.top and len(self._work.pending) == 1:
            self._fresh = True
        self._queue.append(message)

    def _restart(self, now_ns: int) -> None:
        """Nothing was under way until now: silence before this moment means nothing."""
        self._fresh = False
        self._timer_ns = now_ns

    def port_lost(self, now_ns: int) -> None:
        """The port is down: writes of which nothing was sent have no timer yet, and the retry rule counts from now."""
        if self._work.pending and self.una == self.top and self._agenda.deadline_ns == NEVER:
            self._restart(now_ns)
            self._agenda.arm(now_ns + self._retry_timeout_ns())

    # --- sending -----------------------------------------------------------------------------------------------------

    def transmit(self, now_ns: int, out: list[tuple[int, bytes]], budget: int) -> bool:
        """Append up to `budget` frames. True: there is more, but budget, credit, port or rate is used up."""
        if not self._work.pending:
            return False
        scheduler, port, dcqcn = self._scheduler, self._route.port, self.dcqcn
        if self._fresh or (self.una == self.top and port.up):
            self._restart(now_ns)
        if now_ns < self._hold_ns:
            self._agenda.arm(self._hold_ns)
            return False
        first, more, agenda = len(out), True, self._agenda
        while budget and agenda.credit > 0:
            psn = self._next_psn()
            if psn - self.una >= self._window:
                more = False
                break
            message = self._message(psn, now_ns)
            if message is None:
                more = False
                break
            if not port.bit & scheduler.usable:
                break
            if dcqcn.limited:
                dcqcn.advance(now_ns)
                if self._turn_ns > scheduler.horizon_ns:
                    scheduler.rate_due_ns = min(scheduler.rate_due_ns, self._turn_ns)
                    break
            frame = self._build(message, psn, now_ns, agenda.credit <= self._frame_bytes_max)
            length = port.charge(len(frame) + left_out(message, self._size(message, psn)), now_ns)
            if port.free_ns > scheduler.horizon_ns:
                scheduler.usable &= ~port.bit
            bits = length * 8_000_000_000
            self._turn_ns = max(self._turn_ns, now_ns) + ceil(bits / dcqcn.rate_bps)
            dcqcn.on_sent(length, now_ns)
            agenda.credit -= length
            out.append((port.number, frame))
            budget -= 1
        if len(out) > first or not port.up:
            self._agenda.arm(self._timer_ns + self._retry_timeout_ns())
        return more

    def _next_psn(self) -> int:
        """The oldest packet that was lost, or else the next one."""
        lost = self._lost
        while lost and (lost[0] < self.una or lost[0] in self._arrived):
            lost.popleft()
        return lost[0] if lost else self.nxt

    def _message(self, psn: int, now_ns: int) -> Message | None:
        """The message that `psn` belongs to; the next posted one begins when all begun ones are sent."""
        for message in reversed(self._begun):
            if message.first_psn <= psn:
                if psn <= message.last_psn:
                    return message
                break
        else:
            if self._begun:
                return self._begun[0]
        if not self._queue:
            return None
        message = self._queue[0]
        if not self._memory.holds(message.region):
            if next(iter(self._work.pending.values())) is message:  # those before it end first, each in its own way
                self._fail(now_ns, CompletionStatus.LOCAL_PROTECTION_ERROR, "the local region is not registered")
            return None
        self._queue.popleft()
        message.first_psn = self.nxt
        message.last_psn = self.nxt + message.unacked - 1
        self._begun.append(message)
        return message

    def _size(self, message: Message, psn: int) -> int:
        """Bytes of payload of one packet of a message."""
        return min(self._pmtu, message.length - (psn - message.first_psn) * self._pmtu)

    def _build(self, message: Message, psn: int, now_ns: int, ends_turn: bool) -> bytes:
        ahead = (psn - message.first_psn) * self._pmtu
        size = self._size(message, psn)
        last = psn == message.last_psn
        before = b""
        if last:
            opcode = wire.Opcode.WRITE_LAST if ahead else wire.Opcode.WRITE_ONLY
            if message.immediate is not None:
                opcode = wire.Opcode.WRITE_LAST_IMM if ahead else wire.Opcode.WRITE_ONLY_IMM
                before = shared.IMMEDIATE.pack(message.immediate)
        else:
            opcode = wire.Opcode.WRITE_MIDDLE if ahead else wire.Opcode.WRITE_FIRST
        if not ahead:
            before = shared.Reth(message.remote_va, message.rkey, message.length).pack() + before
        self._since_request += 1
        flags = 0
        sparse = self.dcqcn.rate_bps < self._sparse_bps or now_ns - self._sent_ns > self._sparse_ns
        self._sent_ns = now_ns
        alone = sparse or ends_turn or last or (self._selective and psn < self.top)
        if alone or self._since_request >= self._ack_every or psn + 1 - self.una >= self._window:
            flags, self._since_request = wire.ACK_REQUEST, 0
        if self._lost:
            self._lost.popleft()
        self.nxt = max(self.nxt, psn + 1)
        if self.nxt > self.top:
            self.top = self.nxt
            self.data_packets += 1
            if flags and self._rtt_psn < self.una:
                self._rtt_psn, self._rtt_sent_ns = psn, now_ns
        else:
            self.retransmits += 1
            self._rtt_psn = -1  # an acknowledgement may be of either copy
        pad = -size & 3
        asks = last and message.solicited
        bth = shared.Bth(opcode, self._dest_qpn, psn & PSN_MASK, flags, pad, solicited=asks, variant=0xFF)
        head = bytearray(bth.pack() + before)
        start = message.offset + ahead
        memory = message.region.buffer
        payload = b"" if memory is None else memory[start : start + size]
        tail = bytes(0 if memory is None else pad)
        front, state = self._route.front(len(head) + size + pad + 4, self._data_class)
        crc = crc32(tail, crc32(payload, crc32(head, state)))
        head[VARIANT] = 0
        return b"".join((front, head, payload, tail, ICRC.pack(crc)))

    # --- acknowledgements --------------------------------------------------------------------------------------------

    def receive_ack(self, now_ns: int, syndrome: int, psn24: int, msn24: int = 0) -> None:
        """An acknowledgement through its PSN, or a NAK: of a gap at its PSN, or of the whole connection.

        With selective repeat, the MSN of a NAK about a gap is the PSN of the packet that came.
        """
        psn = expand(psn24, self.una)
        if syndrome == wire.SYNDROME_NAK_SEQUENCE:
            if not self.una <= psn <= self.top:
                return
            self.naks += 1
            self._acked(psn - 1, now_ns)
            if self._selective:
                self._find_lost(expand(msn24, self.una))
            else:
                self.nxt = psn
            self._timer_ns = now_ns + self._nak_repair_ns
            if self.una < self.top:
                self._hold_ns = self._timer_ns
            self._agenda.wake()
        elif syndrome in NAK_STATUS:
            if self.una <= psn <= self.top:  # else it is about nothing that is under way: forged
                self._acked(psn - 1, now_ns)  # what came before was placed; the oldest write left is the refused one
                self._fail(now_ns, NAK_STATUS[syndrome], f"NAK with syndrome {syndrome:#x}")
        elif not syndrome >> 5:
            if psn < self.top:
                self._acked(psn, now_ns)
            self._agenda.wake()

    def _find_lost(self, arrived: int) -> None:
        """This packet has arrived; those before it that have not are lost."""
        if not self.una <= arrived < self.top:
            return
        self._arrived.add(arrived)
        self._lost.extend(psn for psn in range(max(self.una, self._judged), arrived) if psn not in self._arrived)
        self._judged = max(self._judged, arrived)

    def _acked(self, psn: int, now_ns: int) -> None:
        if psn < self.una:
            return
        if self._arrived:
            self._arrived.difference_update(range(self.una, psn + 1))
        if self.una <= self._rtt_psn <= psn:
            self._rtt.update(now_ns - self._rtt_sent_ns)
            self._rtt_psn = -1
        self.una = psn + 1
        self.nxt = max(self.nxt, self.una)
        if self.una == self.top:
            self._hold_ns = 0  # nothing is left to go back to
        self.retries = 0
        self._timer_ns = now_ns
        while self._begun and self._begun[0].last_psn < self.una:
            message = self._begun.popleft()
            self.acked_bytes += message.length
            self._work.complete(message)

    def receive_cnp(self, now_ns: int) -> None:
        """A congestion notification packet."""
        self.cnps += 1
        if self._heeds_cnps:
            self.dcqcn.on_cnp(now_ns)

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """This host did not run for `late_ns`, until now: no silence has lasted that long, nor has a round trip."""
        self._timer_ns = min(self._timer_ns + late_ns, now_ns)
        self._rtt_psn = -1

    # --- timer -------------------------------------------------------------------------------------------------------

    def _retry_timeout_ns(self) -> int:
        return max(self._repair_ns or self._timeout_ns, 2 * (self._rtt.smoothed_ns + 4 * self._rtt.variation_ns))

    def handle_timer(self, now_ns: int) -> int:
        """Go back to the oldest unacknowledged packet after a timeout; returns when to come again."""
        if self.una == self.top and (self._route.port.up or not self._work.pending):
            return NEVER
        if self._fresh:
            self._restart(now_ns)
        due_ns = self._timer_ns + self._retry_timeout_ns()
        if now_ns < due_ns:
            if 0 < self._hold_ns <= now_ns:
                self._hold_ns = 0
                self._agenda.wake()
            return self._hold_ns or due_ns
        self.retries += 1
        self.timeouts += 1
        if self.retries > self._retry_count:
            cause = f"no acknowledgement after {self.retries - 1} retries"
            self._fail(now_ns, CompletionStatus.RETRY_EXCEEDED, cause)
            return NEVER
        if self._selective:
            self._lost = deque(psn for psn in range(self.una, self.nxt) if psn not in self._arrived)
            self._judged = self.nxt
        else:
            self.nxt = self.una
        self._timer_ns = now_ns
        self._agenda.wake()
        return now_ns + self._retry_timeout_ns()

    def counters(self) -> dict[str, int]:
        inflight = (self.nxt - self.una) * self._pmtu
        return {
            "cwnd_bytes": self._window * self._pmtu,
            "inflight_bytes": inflight,
            "rate_bps": int(self.dcqcn.rate_bps),
            "rtt_ns": self._rtt.smoothed_ns,
            "pending": len(self._work.pending),
            "acked_bytes": self.acked_bytes,
            "data_packets": self.data_packets,
            "retransmits": self.retransmits,
            "rto": self.timeouts,
            "trims": 0,
            "ecn": self.cnps,
            "nacks": self.naks,
            "skips": 0,
            "probes": 0,
        }
