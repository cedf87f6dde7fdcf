"""The sending half of a QP: packets to send, acknowledged and lost, requests for answers, and giving up."""

from collections import deque
from collections.abc import Callable

from endpoint.mrc.arrived import Sack
from endpoint.mrc.confirmation import NAK_STATUS, Confirmations
from endpoint.mrc.context import Context, QpAlgorithms, QpTerms
from endpoint.mrc.flight import Flight, Repair
from endpoint.mrc.paths.ev_set import BAD, EvPath, EvSet
from endpoint.mrc.paths.ev_state import MARK_CAUSES, TRIM_CAUSES, EvCause
from endpoint.mrc.paths.probe_budget import ProbeTable
from endpoint.mrc.paths.selection import next_after_loss, next_pair, next_turn, port_may_come
from endpoint.mrc.retry import RetryTimer
from endpoint.mrc.returned import ReturnedPackets
from endpoint.mrc.seams.crediting import CreditHeard
from endpoint.mrc.seams.hearers import Hearers, Pacer
from endpoint.nic.config import NEVER
from endpoint.nic.message import Message
from endpoint.nic.packet import VARIANT_MASKED, WritePacker, left_out
from endpoint.nic.rtt import RttEstimator
from endpoint.nic.scheduler import Agenda, Sender
from endpoint.nic.verbs import Fail
from endpoint.nic.wire import ACK_REQUEST, MPR_UNIT, PSN_HALF, PSN_MASK, RETRANSMISSION, NackReason, PathMark, expand
from endpoint.nic.work import WorkQueue
from endpoint.transport import CompletionStatus


class Requester(Sender):
    """The packets on their way to the peer, and those still to be sent."""

    def __init__(
        self,
        context: Context,
        work: WorkQueue,
        agenda: Agenda,
        evs: EvSet,
        algorithms: QpAlgorithms,
        terms: QpTerms,
        fail: Fail,
        on_repaired: Callable[[Repair, int], None],
    ) -> None:
        limits, stamps, spread = context.limits, context.stamps, context.settings.trims_before_wait
        self._scheduler = context.scheduler
        self._ports, self._asking = context.ports, context.asking
        self._memory, self._log, self._classes = context.memory, context.log, context.classes
        self._work, self._agenda, self._evs = work, agenda, evs
        self._selection = algorithms.selection
        self._fail = fail
        self._repair = Repair()
        self._on_repaired = on_repaired
        self._base_rtt_ns = terms.base_rtt_ns
        self._pmtu = terms.pmtu
        self.cc = algorithms.congestion
        asks = context.solicited_bit
        self._packer = WritePacker(VARIANT_MASKED | terms.dest_qpn, terms.pmtu, stamps.tick_ns, stamps.resolution, asks)
        self._rule = algorithms.loss
        self._hearers = Hearers([self._selection.listener(), self.cc.listener(), self._rule.listener()])
        self._pacer = Pacer(self.cc, context.scheduler)
        self._rtt = RttEstimator(terms.base_rtt_ns)
        self._confirmations = Confirmations(work, terms.max_write_imm, terms.confirm_writes)
        psn, window, placed = terms.psn, terms.window, self._confirmations.placed
        self.flight = Flight(psn, window, self._rule, self._rtt, self._arrived_late, placed, terms.granted)
        self.flight.copies_prove = not context.classes.copies_overtake
        self.credit = CreditHeard(self.cc, self.flight)
        self._dynamic = terms.granted is not None
        self._queue: deque[Message] = deque()
        self._current: Message | None = None
        self._first_psn = psn
        self._probes = ProbeTable(terms.dest_qpn, context.classes.probe)
        self._ask_every, self._unasked = limits.sack_threshold_bytes, 0
        """Bytes sent from one request for an acknowledgement to the next at most, and since the last."""
        self.retry = RetryTimer(*terms.retries, limits.jitter_ns, self._rtt, self.flight, spread, context.rng)
        self.returned = ReturnedPackets(
            self.flight, self._repair, evs, self._selection, self._hearers, self.retry, agenda, terms.base_rtt_ns
        )
        self.acked_bytes = self.data_packets = self.retransmits = self.timeouts = 0
        self.trims = self.nacks = self.marks = self.skips = self.spurious = 0

    @property
    def rtt_ns(self) -> int:
        """Smoothed round-trip time."""
        return self._rtt.smoothed_ns

    def counters(self) -> dict[str, int]:
        return {
            "cwnd_bytes": self.cc.window_bytes, "inflight_bytes": self.flight.inflight_bytes, "rtt_ns": self.rtt_ns,
            "acked_bytes": self.acked_bytes, "data_packets": self.data_packets, "retransmits": self.retransmits,
            "rto": self.timeouts, "trims": self.trims, "ecn": self.marks, "nacks": self.nacks, "skips": self.skips,
            "probes": self._probes.sent, "spurious": self.spurious,
        }  # fmt: skip

    def enqueue(self, message: Message) -> None:
        """Send this write when its turn comes."""
        self.flight.make_room()
        if self.flight.una == self.flight.nxt and len(self._work.pending) == 1:
            self.retry.fresh = True
        self._queue.append(message)

    def configure(self, window: int, max_write_imm: int, retries: tuple[int, int, int]) -> None:
        """Attributes of the QP have changed: the window in PSNs, and the others as at the beginning."""
        self.flight.window = window
        self._confirmations.max_write_imm = max_write_imm
        self.retry.configure(*retries)
        if self._work.pending:
            self.flight.make_room()
            self._agenda.arm(min(self.retry.retry_due_ns, self.retry.ask_due_ns))
            self._agenda.wake()

    def planes_changed(self) -> None:
        """A lost plane's delay no longer widens the reorder window, and what is under way is asked for earlier."""
        for plane in self._evs.planes:
            if not plane.wanted:
                self._rule.forget_plane(plane.number)
        for hearer in self._hearers.ports:
            hearer.on_ports_changed(self._scheduler.now_ns, self._evs.wanted_ports)
        self._agenda.arm(self.retry.ask_due_ns)

    # --- sending -----------------------------------------------------------------------------------------------

    def transmit(self, now_ns: int, out: list[tuple[int, bytes]], budget: int) -> bool:
        """Append up to `budget` frames. True: there is more, but budget, credit or ports are used up."""
        if not self._work.pending:
            return False
        flight = self.flight
        if self.retry.fresh or (flight.una == flight.nxt and not self._confirmations.waiting and self._evs.live):
            self.retry.restart(now_ns)
        first, end = len(out), len(out) + budget
        if self.cc.pacing_bps and (end := self._pacer.end(first, now_ns)) == first:
            return True
        self.retry.held, credit = False, self._agenda.credit
        more = self._send_lost(now_ns, out, end) if flight.lost else None
        if more is None:
            more = self._send_new(now_ns, out, end)
        if len(out) > first:
            self.retry.sent(max(now_ns, self._ports.numbered(out[-1][0]).free_ns))
            self._asking.sent(len(out) - first)
            self._agenda.arm(self.retry.ask_due_ns)
            self._pacer.sent(credit - self._agenda.credit, now_ns)
        elif self.retry.held and self._rule.patience_ns:
            self._agenda.arm(self.retry.ask_due_ns)
        elif not self._evs.live:
            self._agenda.arm(self.retry.retry_due_ns)
        return more

    def _send_lost(self, now_ns: int, out: list[tuple[int, bytes]], end: int) -> bool | None:
        """Send again what was lost, oldest first, until `out` has `end` frames. None: that is all. True: budget, credit
        or ports are used up. False: the window, a refusal of the peer or closed ports hold the rest back."""
        flight, scheduler, agenda = self.flight, self._scheduler, self._agenda
        while flight.lost:
            if len(out) >= end or agenda.credit <= 0:
                return True
            if now_ns < self.retry.hold_ns:
                return False
            psn = flight.una + (flight.lost & -flight.lost).bit_length() - 1
            slot = psn & flight.mask
            size = flight.sizes[slot]
            if flight.inflight_bytes and flight.inflight_bytes + size > self.cc.window_bytes:
                return self.retry.hold_back()
            blame = flight.blame_of(slot)
            blamed = None if blame is None else blame.path
            path = next_after_loss(self._selection, self._evs, scheduler.usable, blamed, now_ns, self.cc.ports_open)
            if path is None:
                return port_may_come(self._evs, scheduler.usable, self.cc.ports_open)
            message = flight.messages[slot]
            assert message is not None  # kept until it is acknowledged
            flight.lost &= flight.lost - 1
            flight.tries[slot] += 1
            flight.paths[slot] = path
            flight.sent_ns[slot] = now_ns - flight.late_ns
            self._rule.log.append((psn, now_ns - flight.late_ns))
            flight.inflight_bytes += size
            self.retransmits += 1
            frame = self._packer.pack(message, psn, size, RETRANSMISSION, path.route, self._classes.retransmit, now_ns)
            path.sent += 1
            for hearer in self._hearers.sent:
                hearer.on_packet_sent(now_ns, path, size)
            port = path.port
            agenda.credit -= port.charge(len(frame) + left_out(message, size), now_ns)
            if port.free_ns > scheduler.horizon_ns:
                scheduler.usable &= ~port.bit
            out.append((port.number, frame))
        return None

    def _send_new(self, now_ns: int, out: list[tuple[int, bytes]], end: int) -> bool:
        """Send packets of posted writes until `out` has `end` frames. False: a window or the queue has ended."""
        flight, scheduler, agenda = self.flight, self._scheduler, self._agenda
        selection, packer, cc, hearers = self._selection, self._packer, self.cc, self._hearers.sent
        pmtu, traffic_class, edge = self._pmtu, self._classes.data, flight.edge
        window, credit, sent_ns = cc.window_bytes, agenda.credit, now_ns - flight.late_ns
        while len(out) < end and credit > 0:
            message = self._current
            if message is None:
                message = self._begin(now_ns)
                if message is None:
                    return False
            psn = flight.nxt
            if psn >= edge:
                return False
            last = psn == message.last_psn
            size = message.length - (psn - message.first_psn) * pmtu if last else pmtu
            inflight = flight.inflight_bytes
            if inflight and inflight + size > window:
                return self.retry.hold_back()
            usable, ports_open = scheduler.usable, cc.ports_open
            path = selection.next(usable & ports_open) or next_turn(selection, self._evs, usable, ports_open)
            if path is None:
                return port_may_come(self._evs, usable, ports_open)
            flags = 0
            if last:
                self._current = None
                if not self._queue or message.immediate is not None:
                    flags = ACK_REQUEST
            self._unasked += size
            if inflight + size + pmtu > window and self._unasked >= min(self._ask_every, window >> 2):
                flags = ACK_REQUEST  # the window closes, and no answer to open it has been asked for lately
            if flags:
                self._unasked = 0
            flight.depart(message, size, path, sent_ns)
            self.data_packets += 1
            frame = packer.pack(message, psn, size, flags, path.route, traffic_class, now_ns)
            path.sent += 1
            for hearer in hearers:
                hearer.on_packet_sent(now_ns, path, size)
            port = path.port
            credit = agenda.credit = credit - port.charge(len(frame) + left_out(message, size), now_ns)
            if port.free_ns > scheduler.horizon_ns:
                scheduler.usable &= ~port.bit
            out.append((port.number, frame))
        return True

    def _begin(self, now_ns: int) -> Message | None:
        """Take the next posted write, unless the peer's limit on writes with immediate holds it back."""
        if not self._queue:
            return None
        message = self._queue[0]
        if self._confirmations.holds_back(message):
            return None
        if not self._memory.holds(message.region):
            if next(iter(self._work.pending.values())) is message:  # those before it end first, each in its own way
                self._fail(now_ns, CompletionStatus.LOCAL_PROTECTION_ERROR, "the local region is not registered")
            return None
        self._queue.popleft()
        message.first_psn = self.flight.nxt
        message.last_psn = self.flight.nxt + message.unacked - 1
        self._confirmations.begin(message)
        self._current = message
        return message

    # --- acknowledgements --------------------------------------------------------------------------------------

    def receive_sack(self, now_ns: int, sack: Sack) -> None:
        flight = self.flight
        una, nxt = flight.una, flight.nxt
        count = (sack.cack - una + 1) & PSN_MASK
        if count >= PSN_HALF:
            count -= PSN_MASK + 1  # an old one; its bitmap may still tell something new
        if count > nxt - una:
            self._log.count("sack_of_unsent")
            return
        if sack.mpr and self._dynamic:
            flight.grant(una + count + sack.mpr * MPR_UNIT)
        fresh = (reported := flight.reported(count, sack.offset, sack.bitmap)) & ~flight.acked
        marked = sack.mark
        rtt_ns: int | None = None
        copy: EvPath | None = None
        if sack.probe_response:
            about = self._probe_answered(now_ns, sack.answer & 0xFFFF, sack.ev, marked)
            cause = -1
        else:
            about = self._evs.paths.get(sack.ev) if marked else None
            cause = count - 1 + sack.answer
            if cause >= 0 and fresh >> cause & 1:
                rtt_ns = self._sample_rtt((una + cause) & flight.mask, now_ns)
                copy = flight.original(cause, sack.ev, now_ns)
            elif nxt - flight.mask <= una + cause < nxt:
                flight.duplicate(cause, sack.ev, now_ns)
        self.cc.on_penalty(sack.penalty)
        counted = fresh & ~flight.lost
        if copy is not None:
            counted &= ~(1 << cause)
            for hearer in self._hearers.withdrawn:
                hearer.on_packet_withdrawn(now_ns, copy, flight.sizes[(una + cause) & flight.mask])
        acked = self._take_acked(fresh, now_ns) if fresh else 0
        if marked:  # not before, since a packet that arrived late brings its EV back
            self.marks += 1
            self._signal(about, MARK_CAUSES[marked], now_ns)
        settled = about if cause < 0 and not sack.probe_response else None
        self._hearers.tell_acked(flight, una, fresh, counted, cause, rtt_ns, bool(marked), now_ns, settled)
        self.cc.on_ack(now_ns, acked, rtt_ns, marked == PathMark.SKIP_ONCE, flight.inflight_bytes)
        flight.look(reported, count - 1 + sack.offset, una)
        overdue = self._rule.overdue(flight, self.cc.window_bytes)
        for index in overdue:
            self._lose(index, now_ns, proved=True)
        if overdue and sack.probe_response:
            self._asking.justified()
        self._agenda.arm(self.retry.ask_due_ns)
        self._agenda.wake()
        if self._selection.wanted_probes:
            self._probes.send_wanted(self._selection.wanted_probes, flight.una, now_ns)

    def _take_acked(self, fresh: int, now_ns: int) -> int:
        """Account for newly acknowledged packets (bits from `una`); returns their bytes."""
        acked = self.flight.take_acked(fresh, now_ns)
        self.acked_bytes += acked
        self.retry.acknowledged(now_ns)
        if self._repair.ended(self.flight.una):
            self._on_repaired(self._repair, now_ns)
            self._repair.packets = 0
        return acked

    def _sample_rtt(self, slot: int, now_ns: int) -> int | None:
        """The round trip of what caused an acknowledgement; None if there were copies, or this host stood still."""
        flight = self.flight
        if flight.tries[slot] or flight.sent_ns[slot] < flight.resumed_ns:
            return None
        rtt_ns = now_ns - flight.late_ns - flight.sent_ns[slot]
        self._rtt.update(rtt_ns)
        path = flight.paths[slot]
        assert path is not None
        if path.plane.wanted:  # what was under way when the plane went down would bring its delay back
            self._rule.rtt_sample(path.plane.number, rtt_ns)
        return rtt_ns

    def receive_nack(self, now_ns: int, reason: int, psn24: int, entropy: int) -> None:
        """A NACK: send the packet again at once if it was trimmed, a round trip later if the peer lacked something."""
        flight = self.flight
        index = expand(psn24, flight.una) - flight.una
        if not 0 <= index < flight.nxt - flight.una:
            return  # about nothing that is under way: old, or forged
        self.nacks += 1
        if reason == NackReason.UNEXP_EVENT:
            guilty = flight.messages[(flight.una + index) & flight.mask]
            self._fail(now_ns, CompletionStatus.REMOTE_OPERATION_ERROR, "NACK with reason UNEXP_EVENT", guilty)
            return
        if (refused := flight.refused(index, entropy)) is None:
            return
        path, size = refused
        self.retry.heard(now_ns)
        wait_ns = self._base_rtt_ns
        if (cause := TRIM_CAUSES.get(reason)) is not None:
            self.trims += 1
            self._signal(path, cause, now_ns)
            for hearer in self._hearers.trimmed:
                hearer.on_packet_trimmed(now_ns, path, size, reason == NackReason.TRIMMED_LASTHOP)
            self.cc.on_trim(now_ns, size, flight.inflight_bytes)
            wait_ns = self.retry.wait_after_trim_ns(flight.tries[(flight.una + index) & flight.mask], wait_ns)
        else:
            for hearer in self._hearers.withdrawn:
                hearer.on_packet_withdrawn(now_ns, path, size)
        if wait_ns:
            self.retry.hold_ns = now_ns + wait_ns
            self._agenda.arm(self.retry.hold_ns)
        self._agenda.wake()

    def receive_ack(self, now_ns: int, syndrome: int, msn24: int, psn24: int) -> None:
        """A transport acknowledgement: confirms writes, in order; a negative one ends the QP."""
        flight = self.flight
        if (status := NAK_STATUS.get(syndrome)) is not None:
            self._refused(now_ns, syndrome, status, msn24, psn24)
            return
        if syndrome >> 5:
            self._log.count("ack_syndrome")
            return
        count = (psn24 - flight.una + 1) & PSN_MASK
        if flight.nxt - flight.una < count < PSN_HALF:
            self._log.count("ack_of_unsent")  # forged, or of a life of this QP before it was reset
            return
        if 0 < count <= flight.nxt - flight.una and (fresh := ((1 << count) - 1) & ~flight.acked):
            una, counted = flight.una, fresh & ~flight.lost
            acked = self._take_acked(fresh, now_ns)
            self._hearers.tell_acked(flight, una, fresh, counted, -1, None, False, now_ns)
            self.cc.on_ack(now_ns, acked, None, False, flight.inflight_bytes)
        if self._confirmations.confirm(msn24):
            self.retry.heard(now_ns)
        self._agenda.wake()

    def _refused(self, now_ns: int, syndrome: int, status: CompletionStatus, msn24: int, psn24: int) -> None:
        """A NAK ends the QP if it is about a PSN that was sent, or that a packet sent would have followed."""
        if self.flight.may_be_refused(psn24, self._first_psn):
            guilty = self._confirmations.refuse(msn24, expand(psn24, self.flight.nxt - 1))
            self._fail(now_ns, status, f"NAK with syndrome {syndrome:#x}", guilty)

    # --- losses and probes -------------------------------------------------------------------------------------

    def _signal(self, path: EvPath | None, cause: EvCause, now_ns: int) -> None:
        if path is not None and self._selection.heeds:
            if cause is EvCause.ECN or cause is EvCause.TRIM:
                self.skips += 1
            self._evs.signal(path, cause, now_ns)

    def _arrived_late(self, path: EvPath, now_ns: int) -> None:
        """A packet that was taken for lost on this path has arrived after all."""
        self.spurious += 1
        self._repair.late += 1
        self._signal(path, EvCause.LATE_ACK, now_ns)

    def _lose(self, index: int, now_ns: int, *, proved: bool) -> None:
        """Take a packet for lost; `proved` if one sent later is known to have arrived."""
        path, size, sent_ns = self.flight.lose(index, proved=proved)
        self._repair.lost(self.flight.una + index, sent_ns + self.flight.late_ns, now_ns)
        for hearer in self._hearers.lost:
            hearer.on_packet_lost(now_ns, path, size, proved)
        if proved:
            self.cc.on_loss(now_ns, size, self.flight.inflight_bytes)
        if path.plane.wanted and self._selection.heeds:  # a port that is known to be down explains the loss
            self._evs.lose(path, sent_ns, now_ns, proved=proved)

    def probe(self, path: EvPath, now_ns: int) -> None:
        """Send a reliability probe on this EV."""
        self._probes.send(path, self.flight.una, now_ns)

    def _probe_answered(self, now_ns: int, probe_id: int, entropy: int, marked: int) -> EvPath | None:
        """Returns the EV that the answer's path mark may rest or take out; None: the mark is heeded already, or old."""
        if (probe := self._probes.answered(probe_id, entropy)) is None:
            return None
        path, sent_ns = probe
        own_ns = sent_ns - self.flight.late_ns
        if own_ns >= self.flight.resumed_ns:
            self._rtt.update(now_ns - sent_ns)
        self._rule.newest_ns = max(self._rule.newest_ns, own_ns)
        self.retry.alive(now_ns)
        for hearer in self._hearers.answered:
            hearer.on_probe_answered(now_ns, path, now_ns - sent_ns, marked != PathMark.NONE)
        if sent_ns < path.left_ns:
            return None
        if path.state is BAD and marked != PathMark.ALWAYS_SKIP:
            self._evs.probe_answered(path, own_ns, marked != PathMark.NONE, now_ns)
            self._agenda.arm(self._evs.next_probe_ns())
            return None
        path.streak = 0
        return path

    # --- timer -------------------------------------------------------------------------------------------------

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """This host did not run for `late_ns`, until now: that time counts for nothing that was under way."""
        self.flight.host_was_late(late_ns, now_ns)
        self.retry.host_was_late(late_ns, now_ns)
        self._probes.host_was_late(late_ns, now_ns)
        self.cc.host_was_late(late_ns, now_ns)

    def handle_timer(self, now_ns: int) -> int:
        """Probe after too long a silence, retransmit all when even that brought nothing; returns when to come again."""
        if not self._work.pending:
            return NEVER
        retry, flight = self.retry, self.flight
        if retry.fresh:
            retry.restart(now_ns)
        if now_ns >= retry.hold_ns and flight.lost:
            self._agenda.wake()
        if flight.una == flight.nxt and not self._confirmations.waiting and self._evs.live:
            return NEVER  # nothing is out: the next packet sets the timers
        if now_ns >= retry.retry_due_ns:
            self._timeout(now_ns)
            if not self._work.pending:
                return NEVER
        if now_ns >= retry.ask_due_ns:
            if self._waits_here(now_ns):
                retry.waited(now_ns)
            else:
                self._ask(now_ns)
        due_ns = min(retry.retry_due_ns, retry.ask_due_ns)
        return min(due_ns, retry.hold_ns) if retry.hold_ns > now_ns else due_ns

    def _waits_here(self, now_ns: int) -> bool:
        """Whether only this host holds back the next packet, which brings news: for a port, or after a refusal."""
        if now_ns < self.retry.hold_ns and self.flight.lost and not self.flight.inflight_bytes:
            return bool(self._evs.live)
        return self._agenda.active and bool(self._evs.live) and not self.retry.held and self._has_more

    @property
    def _has_more(self) -> bool:
        """Whether there is anything left to send, or to send again."""
        return self.flight.lost > 0 or self._current is not None or len(self._queue) > 0

    def _ask(self, now_ns: int) -> None:
        """Probe as far as the host's budget goes, first on another plane than that of the packet that is missing."""
        count = self._asking.take(self.retry.probes, now_ns, last=self.retry.held or not self._has_more)
        if not count:
            self.retry.put_off(self._asking.next_ns(now_ns))
            return
        for path in next_pair(self._selection, self._evs, self.flight.oldest_path)[:count]:
            self.probe(path, now_ns)
        self.retry.asked(now_ns)

    def _timeout(self, now_ns: int) -> None:
        self.timeouts += 1
        if self.retry.expired(now_ns):
            self._fail(now_ns, CompletionStatus.RETRY_EXCEEDED, f"no answer after {self.retry.retries - 1} retries")
            return
        before = self.flight.inflight_bytes
        for index in self.flight.waiting():
            self._lose(index, now_ns, proved=False)
        self.cc.on_timeout(now_ns, before - self.flight.inflight_bytes)
        for hearer in self._hearers.timeout:
            hearer.on_retransmission_timeout(now_ns)
        self._rule.log.clear()
        self._agenda.arm(self._evs.probe_soon(now_ns))
        self._agenda.wake()
