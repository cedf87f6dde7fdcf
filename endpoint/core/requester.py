"""The sending half of a QP: what goes out next, what was acknowledged, what is lost, when to ask and to give up.

PSNs are counted without wrap. `una` is the oldest not acknowledged, `nxt` the next new one; bit i of `acked` and
`lost` is PSN una + i. What is known of a packet in flight lies in rings indexed by PSN; nothing is allocated per packet
but its entry in the log of the reorder rule.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from endpoint.core.config import NEVER
from endpoint.core.congestion import find_congestion
from endpoint.core.ev_set import Path
from endpoint.core.ev_state import EvCause
from endpoint.core.message import Message
from endpoint.core.packet import WritePacker
from endpoint.core.probe import ProbeTable
from endpoint.core.psn import PSN_HALF, PSN_MASK, expand
from endpoint.core.recovery import ReorderRule
from endpoint.core.retry import RetryTimer
from endpoint.core.rtt import RttEstimator
from endpoint.core.wire import ACK_REQUEST, RETRANSMISSION, NackReason, PathMark, Syndrome
from endpoint.transport import CompletionStatus

if TYPE_CHECKING:
    from endpoint.core.qp import QueuePair

NAK_STATUS = {
    Syndrome.NAK_REMOTE_ACCESS_ERROR: CompletionStatus.REMOTE_ACCESS_ERROR,
    Syndrome.NAK_INVALID_REQUEST: CompletionStatus.REMOTE_OPERATION_ERROR,
    Syndrome.NAK_REMOTE_OPERATIONAL_ERROR: CompletionStatus.REMOTE_OPERATION_ERROR,
}
TRIM_CAUSES = {NackReason.TRIMMED: EvCause.TRIM, NackReason.TRIMMED_LASTHOP: EvCause.TRIM_LASTHOP}


class Requester:
    """`psn` is the first to send, `window` how many PSNs the peer grants (its MPR); sizes are payload bytes."""

    def __init__(self, qp: QueuePair, psn: int, window: int) -> None:
        endpoint = qp.endpoint
        limits = self._limits = endpoint.limits
        self._qp = qp
        self._window = window
        self._pmtu = limits.pmtu
        self.cc = find_congestion(endpoint.settings.congestion)(
            base_rtt_ns=limits.base_rtt_ns,
            bdp_bytes=limits.bdp_bytes,
            mtu_bytes=limits.pmtu,
            jitter_ns=limits.jitter_ns,
            trimming=limits.trimming,
        )
        size = 1 << (window - 1).bit_length()
        self._mask = size - 1
        self._sent_ns = [0] * size
        self._sizes = [0] * size
        self._tries = [0] * size
        self._paths: list[Path | None] = [None] * size
        self._blamed: list[Path | None] = [None] * size
        """The path that a packet was last taken for lost on, and when it was sent there."""
        self._blamed_ns = [0] * size
        self._messages: list[Message | None] = [None] * size
        self._packer = WritePacker(qp.dest_masked, limits.pmtu, endpoint.stamp_ns, endpoint.stamp_resolution)
        self.una = self.nxt = psn
        self.acked = 0
        self.lost = 0
        self.inflight_bytes = 0
        self._queue: deque[Message] = deque()
        self._current: Message | None = None
        self._imms: deque[Message] = deque()
        """Writes with immediate that were begun and wait for their transport acknowledgement."""
        self._rule = ReorderRule(limits.base_rtt_ns, limits.jitter_ns)
        self._rtt = RttEstimator(limits.base_rtt_ns)
        self._probes = ProbeTable(qp.dest_masked & 0xFFFFFF, endpoint.probe_class)
        self._ask_every = limits.sack_threshold_bytes
        self._unasked = 0
        """Bytes sent since the last packet that asked for an acknowledgement."""
        self._retry = RetryTimer(limits, endpoint.settings, self._rtt, self._rule)
        self.acked_bytes = self.data_packets = self.retransmits = self.timeouts = 0
        self.trims = self.nacks = self.marks = self.skips = self.spurious = 0

    @property
    def rtt_ns(self) -> int:
        """Smoothed round-trip time."""
        return self._rtt.smoothed_ns

    def counters(self) -> dict[str, int]:
        """This half of the QP's fields in `sample` lines."""
        return {
            "cwnd_bytes": self.cc.window_bytes,
            "inflight_bytes": self.inflight_bytes,
            "rtt_ns": self._rtt.smoothed_ns,
            "acked_bytes": self.acked_bytes,
            "data_packets": self.data_packets,
            "retransmits": self.retransmits,
            "rto": self.timeouts,
            "trims": self.trims,
            "ecn": self.marks,
            "nacks": self.nacks,
            "skips": self.skips,
            "probes": self._probes.sent,
            "spurious": self.spurious,
        }

    def enqueue(self, message: Message) -> None:
        """Send this write when its turn comes."""
        if self.una == self.nxt and len(self._qp.pending) == 1:
            self._retry.restart(self._qp.endpoint.now_ns)
        self._queue.append(message)

    def planes_changed(self) -> None:
        """The delay of a plane that is gone spreads nothing any more."""
        for plane in self._qp.evs.planes:
            if not plane.wanted:
                self._rule.forget_plane(plane.number)

    # --- sending -----------------------------------------------------------------------------------------------

    def transmit(self, now_ns: int, out: list[tuple[int, bytes]], budget: int) -> bool:
        """Append up to `budget` frames. True: there is more, but the budget or the ports are used up."""
        endpoint = self._qp.endpoint
        if not self._qp.pending:
            return False
        if self.una == self.nxt and not self._imms and self._qp.evs.live:
            self._retry.restart(now_ns)
        take = self._qp.selection.next
        first, more = len(out), True
        while budget:
            window = self.cc.window_bytes
            if self.lost:
                if now_ns < self._retry.hold_ns:
                    more = False
                    break
                psn = self.una + (self.lost & -self.lost).bit_length() - 1
                slot = psn & self._mask
                size = self._sizes[slot]
                if self.inflight_bytes and self.inflight_bytes + size > window:
                    more = False
                    break
                path = take(endpoint.usable)
                if path is None:
                    break
                message = self._messages[slot]
                assert message is not None  # kept until it is acknowledged
                self.lost &= self.lost - 1
                self._tries[slot] += 1
                self.retransmits += 1
                flags, traffic_class = RETRANSMISSION, endpoint.retransmit_class
            else:
                message = self._current
                if message is None:
                    message = self._begin(now_ns)
                    if message is None:
                        more = False
                        break
                psn = self.nxt
                if psn - self.una >= self._window:
                    more = False
                    break
                slot = psn & self._mask
                size = self._pmtu
                last = psn == message.last_psn
                if last:
                    size = message.length - (psn - message.first_psn) * size
                inflight = self.inflight_bytes
                if inflight and inflight + size > window:
                    more = False
                    break
                path = take(endpoint.usable)
                if path is None:
                    break
                flags = 0
                if last:
                    self._current = None
                    if not self._queue or message.immediate is not None:
                        flags = ACK_REQUEST
                self._unasked += size
                if inflight + size + self._pmtu > window and self._unasked >= min(self._ask_every, window >> 2):
                    flags = ACK_REQUEST  # the window closes, and no answer to open it has been asked for lately
                if flags:
                    self._unasked = 0
                self.nxt = psn + 1
                self._messages[slot] = message
                self._sizes[slot] = size
                self._tries[slot] = 0
                self._blamed[slot] = None
                self.data_packets += 1
                traffic_class = endpoint.data_class
            self._paths[slot] = path
            self._sent_ns[slot] = now_ns
            self._rule.log.append((psn, now_ns))
            self.inflight_bytes += size
            frame = self._packer.pack(message, psn, size, flags, path.route, traffic_class, now_ns)
            path.sent += 1
            port = path.port
            port.charge(len(frame), now_ns)
            if port.free_ns > endpoint.horizon_ns:
                endpoint.usable &= ~port.bit
            out.append((port.number, frame))
            budget -= 1
        if len(out) > first:
            self._retry.sent(now_ns)
            self._qp.arm(self._retry.ask_due_ns)
        elif not self._qp.evs.live:
            self._qp.arm(self._retry.retry_due_ns)
        return more

    def _begin(self, now_ns: int) -> Message | None:
        """Take the next posted write, unless the peer's limit on writes with immediate holds it back."""
        if not self._queue:
            return None
        message = self._queue[0]
        if message.immediate is not None and len(self._imms) >= self._qp.peer_max_write_imm:
            return None
        if not self._qp.endpoint.memory.holds(message.region):
            self._qp.fail(now_ns, CompletionStatus.LOCAL_PROTECTION_ERROR, "the local region was deregistered", message)
            return None
        self._queue.popleft()
        message.first_psn = self.nxt
        message.last_psn = self.nxt + message.unacked - 1
        if message.immediate is not None:
            self._imms.append(message)
        self._current = message
        return message

    # --- acknowledgements --------------------------------------------------------------------------------------

    def receive_sack(
        self,
        now_ns: int,
        cack24: int,
        sack_offset: int,
        bitmap: int,
        entropy: int,
        first: int,
        answer: int,
        penalty: int,
    ) -> None:
        """A SACK; `first` is the SETH's first 16 bits, `answer` its offset of the causing PSN, or probe id."""
        una, nxt = self.una, self.nxt
        count = (cack24 - una + 1) & PSN_MASK
        if count >= PSN_HALF:
            count -= PSN_MASK + 1  # an old one; its bitmap may still tell something new
        if count > nxt - una:
            self._qp.endpoint.count("sack_of_unsent")
            return
        reported = (1 << count) - 1 if count > 0 else 0
        if bitmap:
            shift = count - 1 + sack_offset
            reported |= bitmap << shift if shift >= 0 else bitmap >> -shift
            reported &= (1 << (nxt - una)) - 1
        fresh = reported & ~self.acked
        marked = first >> 5 & 3
        rtt_ns: int | None = None
        if first & 2:
            self._probe_answered(now_ns, answer & 0xFFFF, entropy, marked)
        else:
            cause = count - 1 + answer
            slot = (una + cause) & self._mask
            if cause >= 0 and fresh >> cause & 1:
                if not self._tries[slot]:
                    rtt_ns = now_ns - self._sent_ns[slot]
                    self._rtt.update(rtt_ns)
                    path = self._paths[slot]
                    assert path is not None
                    if path.plane.wanted:  # what was under way when the plane went down would bring its delay back
                        self._rule.rtt_sample(path.plane.number, rtt_ns)
            elif nxt - self._mask <= una + cause < nxt:
                # A duplicate, perhaps the original of what was sent again: then its path was only slow.
                blamed = self._blamed[slot]
                if blamed is not None and blamed.ev == entropy and self._tries[slot]:
                    if blamed.plane.wanted:
                        self._rule.late_rtt(blamed.plane.number, now_ns - self._blamed_ns[slot])
                    self._late(slot, now_ns)
        if marked and not first & 2:
            self.marks += 1
            self._signal(self._qp.evs.paths.get(entropy), MARK_CAUSES[marked], now_ns)
        self.cc.on_penalty(penalty)
        if fresh:
            acked = self._take_acked(now_ns, fresh)
            if acked:
                self.cc.on_ack(now_ns, acked, rtt_ns, marked == PathMark.SKIP_ONCE, self.inflight_bytes)
            self._retry.acknowledged(now_ns)
        self._detect(now_ns)
        self._qp.wake()

    def _take_acked(self, now_ns: int, fresh: int) -> int:
        """Account for newly acknowledged PSNs (bits from una); returns their bytes."""
        una, mask, lost = self.una, self._mask, self.lost
        sizes, tries, sent_ns, messages = self._sizes, self._tries, self._sent_ns, self._messages
        self.acked |= fresh
        newest_ns = self._rule.newest_ns
        total = freed = 0
        while fresh:
            low = fresh & -fresh
            fresh ^= low
            slot = (una + low.bit_length() - 1) & mask
            size = sizes[slot]
            total += size
            if low & lost:
                lost ^= low
                self._late(slot, now_ns)
            else:
                freed += size
                sent = sent_ns[slot]
                if tries[slot]:
                    if now_ns - sent < self._rtt.min_ns * 3 // 4:
                        self._late(slot, now_ns)
                        sent = -1  # too soon to be the answer to the copy
                    elif self._blamed[slot] is not None:
                        self._rule.true_loss()
                if sent > newest_ns:
                    newest_ns = sent
            message = messages[slot]
            if message is not None:
                message.unacked -= 1
                if not message.unacked and message.immediate is None:
                    self._qp.complete(message)
                messages[slot] = None
        self._rule.newest_ns = newest_ns
        self.lost = lost
        self.inflight_bytes -= freed
        self.acked_bytes += total
        holes = ~self.acked
        count = (holes & -holes).bit_length() - 1
        if count:
            self.acked >>= count
            self.lost >>= count
            self.una = una + count
        return total

    def _late(self, slot: int, now_ns: int) -> None:
        """What was taken for lost on this slot has arrived: path or report were only slow."""
        path = self._blamed[slot]
        if path is not None:
            self.spurious += 1
            self._blamed[slot] = None
            self._rule.late_arrival()
            self._signal(path, EvCause.LATE_ACK, now_ns)

    def receive_nack(self, now_ns: int, reason: int, psn24: int, entropy: int) -> None:
        """A NACK: a trimmed packet is sent again at once; if the peer lacked something, after a round trip."""
        index = expand(psn24, self.una) - self.una
        if not 0 <= index < self.nxt - self.una:
            return  # about nothing that is under way: old, or forged
        self.nacks += 1
        if reason == NackReason.UNEXP_EVENT:
            self._qp.fail(now_ns, CompletionStatus.REMOTE_OPERATION_ERROR, "NACK with reason UNEXP_EVENT")
            return
        slot = (self.una + index) & self._mask
        path = self._paths[slot]
        if (self.acked | self.lost) >> index & 1 or path is None or path.ev != entropy:
            return  # arrived meanwhile, or about a copy that has been replaced
        size = self._sizes[slot]
        self.lost |= 1 << index
        self.inflight_bytes -= size
        self._blamed[slot] = None
        self._retry.heard(now_ns)
        cause = TRIM_CAUSES.get(reason)  # type: ignore[call-overload]
        if cause is not None:
            self.trims += 1
            self._signal(path, cause, now_ns)
            self.cc.on_trim(now_ns, size, self.inflight_bytes)
        else:
            self._retry.hold_ns = now_ns + self._limits.base_rtt_ns
            self._qp.arm(self._retry.hold_ns)
        if len(self._rule.log) > 4 * len(self._sent_ns):
            self._prune_log()
        self._qp.wake()

    def receive_ack(self, now_ns: int, syndrome: int, msn24: int, psn24: int) -> None:
        """A transport acknowledgement: completes writes with immediate, in order; a negative one ends the QP."""
        status = NAK_STATUS.get(syndrome)  # type: ignore[call-overload]
        count = (psn24 - self.una + 1) & PSN_MASK
        if status is not None:
            if count <= self.nxt - self.una:  # else it is about nothing that is under way: forged
                self._qp.fail(now_ns, status, f"NAK with syndrome {syndrome:#x}")
            return
        if syndrome >> 5:
            self._qp.endpoint.count("ack_syndrome")
            return
        if 0 < count <= self.nxt - self.una:
            fresh = ((1 << count) - 1) & ~self.acked
            if fresh:
                self._take_acked(now_ns, fresh)
                self._retry.heard(now_ns)
        while self._imms:
            message = self._imms[0]
            if message.unacked or expand(msn24, message.index) <= message.index:
                break
            self._imms.popleft()
            self._qp.complete(message)
            self._retry.heard(now_ns)
        self._qp.wake()

    # --- losses and probes -------------------------------------------------------------------------------------

    def _signal(self, path: Path | None, cause: EvCause, now_ns: int) -> None:
        if path is not None and self._qp.selection.heeds_signals:
            if cause is EvCause.ECN or cause is EvCause.TRIM:
                self.skips += 1
            self._qp.evs.signal(path, cause, now_ns)

    def _detect(self, now_ns: int) -> None:
        """Apply the reorder rule to the oldest transmissions."""
        rule = self._rule
        log, horizon_ns = rule.log, rule.newest_ns - rule.window_ns
        while log and log[0][1] <= horizon_ns:
            psn, sent_ns = log.popleft()
            index = psn - self.una
            if index < 0 or (self.acked | self.lost) >> index & 1 or self._sent_ns[psn & self._mask] != sent_ns:
                continue
            self._lose(index, now_ns)

    def _prune_log(self) -> None:
        """NACKs bring nothing that the reorder rule could judge by; stale entries must not pile up meanwhile."""
        log, sent_ns, mask = self._rule.log, self._sent_ns, self._mask
        kept = [entry for entry in log if entry[0] >= self.una and sent_ns[entry[0] & mask] == entry[1]]
        log.clear()
        log.extend(kept)

    def _lose(self, index: int, now_ns: int) -> None:
        slot = (self.una + index) & self._mask
        self.lost |= 1 << index
        size = self._sizes[slot]
        self.inflight_bytes -= size
        self.cc.on_loss(now_ns, size, self.inflight_bytes)
        path = self._paths[slot]
        assert path is not None
        self._blamed[slot] = path
        self._blamed_ns[slot] = self._sent_ns[slot]
        if path.plane.wanted:  # a port that is known to be down explains the loss
            self._signal(path, EvCause.LOSS, now_ns)

    def probe(self, path: Path, now_ns: int) -> None:
        """Send a reliability probe on this EV."""
        self._probes.send(path, self.una, now_ns)

    def _probe_answered(self, now_ns: int, probe_id: int, entropy: int, marked: int) -> None:
        found = self._probes.answered(probe_id, entropy)
        if found is None:
            return
        path, sent_ns = found
        self._rtt.update(now_ns - sent_ns)
        if sent_ns > self._rule.newest_ns:
            self._rule.newest_ns = sent_ns
        self._retry.alive(now_ns)
        self._qp.evs.probe_answered(path, marked != PathMark.NONE, now_ns)
        self._qp.arm(self._qp.evs.next_probe_ns())

    def handle_timer(self, now_ns: int) -> int:
        """Probe when it was quiet for too long, retransmit everything when even that brought nothing; returns when to
        come again."""
        if not self._qp.pending:
            return NEVER
        retry = self._retry
        if now_ns >= retry.hold_ns and self.lost:
            self._qp.wake()
        if self.una == self.nxt and not self._imms and self._qp.evs.live:
            return NEVER  # nothing is out: the next packet sets the timers
        if now_ns >= retry.retry_due_ns:
            self._timeout(now_ns)
            if not self._qp.pending:
                return NEVER
        if now_ns >= retry.ask_due_ns:
            self._ask(now_ns)
        due_ns = min(retry.retry_due_ns, retry.ask_due_ns)
        return min(due_ns, retry.hold_ns) if retry.hold_ns > now_ns else due_ns

    def _ask(self, now_ns: int) -> None:
        """Probe two EVs, of different planes where there are several live ones."""
        asked: list[Path] = []
        for _ in range(2):
            path = self._qp.selection.next(-1)
            if path is not None and path not in asked:
                asked.append(path)
                self.probe(path, now_ns)
        self._retry.asked(now_ns)

    def _timeout(self, now_ns: int) -> None:
        self.timeouts += 1
        if self._retry.expired(now_ns):
            cause = f"no answer after {self._retry.retries - 1} retries"
            self._qp.fail(now_ns, CompletionStatus.RETRY_EXCEEDED, cause)
            return
        self.cc.on_timeout(now_ns)
        waiting = ~(self.acked | self.lost) & ((1 << (self.nxt - self.una)) - 1)
        while waiting:
            low = waiting & -waiting
            waiting ^= low
            self._lose(low.bit_length() - 1, now_ns)
        self._rule.log.clear()
        self._qp.wake()


MARK_CAUSES = (EvCause.ECN, EvCause.ECN, EvCause.ALWAYS_SKIP, EvCause.ECN)
