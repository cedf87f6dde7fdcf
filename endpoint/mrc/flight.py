"""The window of PSNs that one requester has under way, and the state of the packet behind each PSN.

PSNs are counted without wrap. `una` is the oldest not acknowledged, `nxt` the next new one; bit i of `acked` and
`lost` is PSN una + i. What is known of a packet lies in rings indexed by PSN; nothing is allocated per packet but its
entry in the log of the reorder rule.

Times of sending are by a clock that stands still while the host does: `late_ns` behind the network's.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from endpoint.mrc.loss.loss_detection import LossDetection, PacketWindow
from endpoint.mrc.paths.ev_set import EvPath
from endpoint.nic.config import NEVER
from endpoint.nic.message import Message
from endpoint.nic.rtt import RttEstimator
from endpoint.nic.wire import MPR_UNIT, PSN_HALF, expand

Ring = TypeVar("Ring", bound="list[Any]")


PASSES_BYTES: Final = 512
"""Of payload. A smaller packet proves nothing of those before it on its EV: where a trimmed packet is as long, a switch
may have sent it whole through the priority queue."""


class Blame:
    """A packet was last taken for lost on `path`, where it was sent at `sent_ns`. `proved`: by the loss rule, not by
    the timer, from whose judgement the rule learns nothing. `overtaken`: the SACK that told of it as missing told of a
    later packet of the EV as well."""

    def __init__(self, path: EvPath, sent_ns: int, proved: bool, overtaken: bool = False) -> None:
        self.path = path
        self.sent_ns = sent_ns
        self.proved = proved
        self.overtaken = overtaken


class Flight(PacketWindow):
    """`psn` is the first to send, `window` how many PSNs the peer grants, `granted` how many of them now if it says so
    as it goes (the dynamic MPR). Sizes are payload bytes. The rings are made when `make_room` is called first.

    `on_late(path, now_ns)` is told of a packet that was taken for lost on that path and has arrived after all,
    `on_placed(message)` of a write of which every packet is acknowledged.
    """

    def __init__(
        self,
        psn: int,
        window: int,
        rule: LossDetection,
        rtt: RttEstimator,
        on_late: Callable[[EvPath, int], None],
        on_placed: Callable[[Message], None],
        granted: int | None = None,
    ) -> None:
        super().__init__(psn, 1)
        self.window = window
        self.granted = NEVER if granted is None else psn + granted
        """With the dynamic MPR, the first PSN that the peer has not granted."""
        self.rule = rule
        self._rtt = rtt
        self._on_late = on_late
        self._on_placed = on_placed
        self.inflight_bytes = 0
        self.messages: list[Message | None] = [None]
        """The message that a packet is of, until the packet is acknowledged."""
        self.blamed: list[Blame | None] = []
        """A ring as the others; empty until a packet is first taken for lost."""
        self.copies_prove = True
        """Whether a copy that arrives proves the loss of what was sent before: not where copies overtake data."""
        self.late_ns = 0
        """How long this host has not run, in all; what is under way counts as sent so much later."""
        self.resumed_ns = 0
        """When this host last ran again after a stall: packets sent before say nothing about the network's times."""

    @property
    def edge(self) -> int:
        """The first PSN that may not be sent yet. One unit from `una` on is always granted: there is no smaller MPR."""
        return self.una + min(self._allowed, self.mask + 1)

    @property
    def _allowed(self) -> int:
        """How many PSNs may be under way, were there room."""
        return min(self.window, max(self.granted - self.una, MPR_UNIT))

    @property
    def oldest_ns(self) -> int:
        """When the first packet that is not acknowledged was sent, later by this host's stalls since then. NEVER: all
        packets are acknowledged."""
        return NEVER if self.una == self.nxt else self.sent_ns[self.una & self.mask] + self.late_ns

    @property
    def oldest_path(self) -> EvPath | None:
        """The path of the first packet that is not acknowledged."""
        return self.paths[self.una & self.mask]

    def make_room(self) -> None:
        """Make room for all that may be under way. A queue pair that only receives never needs any."""
        self.grow(self._allowed)

    def grow(self, window: int) -> None:
        """Make room for `window` PSNs; what is known of the packets under way and of the last ones stays."""
        old, size = self.mask, 1 << (window - 1).bit_length()
        if size <= old + 1:
            return
        kept = range(self.nxt - old - 1, self.nxt)
        self.mask = size - 1
        self.sent_ns = _moved(self.sent_ns, [0] * size, kept)
        self.sizes = _moved(self.sizes, [0] * size, kept)
        self.tries = _moved(self.tries, [0] * size, kept)
        self.paths = _moved(self.paths, [None] * size, kept)
        self.messages = _moved(self.messages, [None] * size, kept)
        if self.blamed:
            self.blamed = _moved(self.blamed, [None] * size, kept)

    def blame_of(self, slot: int) -> Blame | None:
        """The transmission of this slot's packet that was last taken for lost."""
        return self.blamed[slot] if self.blamed else None

    def acquit(self, slot: int) -> None:
        """Nothing is to blame for the packet on this slot."""
        if self.blamed:
            self.blamed[slot] = None

    def depart(self, message: Message, size: int, path: EvPath, sent_ns: int) -> None:
        """The next new packet, of `size` bytes of this message, leaves by this path."""
        psn = self.nxt
        slot = psn & self.mask
        self.nxt = psn + 1
        self.messages[slot] = message
        if self.sizes[slot] != size:  # a number that is there already costs less than another
            self.sizes[slot] = size
        if self.tries[slot]:
            self.tries[slot] = 0
        self.acquit(slot)
        self.paths[slot] = path
        self.sent_ns[slot] = sent_ns
        self.rule.log.append((psn, sent_ns))
        self.inflight_bytes += size

    def grant(self, edge: int) -> None:
        """The peer takes PSNs below `edge`. A grant is not taken back, so a smaller MPR holds from where the larger one
        ended, and SACKs may arrive in any order."""
        if edge > self.granted:
            self.granted = edge
            self.make_room()

    def may_be_refused(self, psn24: int, first_psn: int) -> bool:
        """Whether a NAK can be about this PSN: one that was sent, or that a packet sent would have followed.

        Acceptance comes before placement, so that a SACK may have reported the packet before the NAK refused it; and
        any PSN that 24 bits can still name may be told of. Everything else is forged.
        """
        return max(first_psn - 1, self.nxt - PSN_HALF) <= expand(psn24, self.nxt - 1) < self.nxt

    def reported(self, count: int, sack_offset: int, bitmap: int) -> int:
        """The packets that a SACK says have arrived, as bits from `una`: the first `count`, and those of its bitmap."""
        reported = (1 << count) - 1 if count > 0 else 0
        if bitmap:
            shift = count - 1 + sack_offset
            reported |= bitmap << shift if shift >= 0 else bitmap >> -shift
            reported &= (1 << (self.nxt - self.una)) - 1
        return reported

    def take_acked(self, fresh: int, now_ns: int) -> int:
        """Account for newly acknowledged PSNs (bits from `una`); returns their bytes."""
        una, mask, lost = self.una, self.mask, self.lost
        sizes, tries, sent_ns, messages, paths = self.sizes, self.tries, self.sent_ns, self.messages, self.paths
        self.acked |= fresh
        rule = self.rule
        newest_ns, copies_prove = rule.newest_ns, self.copies_prove
        total = freed = 0
        while fresh:
            low = fresh & -fresh
            fresh ^= low
            psn = una + low.bit_length() - 1
            slot = psn & mask
            size = sizes[slot]
            total += size
            if low & lost:
                lost ^= low
                self.late(slot, now_ns)
            else:
                freed += size
                sent = sent_ns[slot]
                if tries[slot] and sent >= self.resumed_ns:
                    if now_ns - self.late_ns - sent < self._rtt.min_ns * 3 // 4:
                        self.late(slot, now_ns)
                        sent = -1  # too soon to be the answer to the copy
                    elif (blame := self.blame_of(slot)) is not None and blame.proved:
                        rule.true_loss()
                if sent > newest_ns and (copies_prove or not tries[slot]):
                    newest_ns = sent
                path = paths[slot]
                if path is not None and sent >= 0:
                    if psn > path.passed_psn and not tries[slot] and size >= PASSES_BYTES:
                        path.passed_psn = psn
                    if sent > path.alive_ns:
                        path.alive_ns = sent
                    if path.suspicion:
                        path.suspicion -= 1
                    if path.plane.suspicion:
                        path.plane.suspicion -= 1
            message = messages[slot]
            if message is not None:
                message.unacked -= 1
                if not message.unacked:
                    self._on_placed(message)
                messages[slot] = None
        rule.newest_ns = newest_ns
        self.lost = lost
        self.inflight_bytes -= freed
        holes = ~self.acked
        count = (holes & -holes).bit_length() - 1
        if count:
            self.acked >>= count
            self.lost >>= count
            self.una = una + count
        return total

    def look(self, reported: int, start: int, first: int) -> None:
        """Keep what a SACK says has and has not arrived. `reported` are bits from `first`, which was `una` before this
        SACK; the SACK's bitmap begins at bit `start`."""
        if not self.acked:  # as where nothing was lost and nothing overtook another packet
            self.missing = 0
            return
        moved = self.una - first
        self.shown = shown = reported >> moved
        told = (1 << shown.bit_length()) - 1
        if start > moved:
            told = told >> start - moved << start - moved
        self.missing = told & ~(shown | self.acked | self.lost)

    def late(self, slot: int, now_ns: int) -> None:
        """The packet on this slot was taken for lost and has arrived: its path or its report was slow."""
        blame = self.blame_of(slot)
        if blame is not None:
            self.acquit(slot)
            if blame.proved:
                self.rule.late_arrival()
            if blame.overtaken:
                self.in_order = False
            self._on_late(blame.path, now_ns)

    def original(self, index: int, entropy: int, now_ns: int) -> EvPath | None:
        """PSN una + index, newly acknowledged, came by this EV: where its copy went another way, that is the original.

        Then what is known to have arrived was sent when the original was, by its path; the copy's path is returned.
        """
        slot = (self.una + index) & self.mask
        blame = self.blame_of(slot)
        copy = self.paths[slot]
        if blame is None or blame.path.ev != entropy or not self.tries[slot] or copy is blame.path:
            return None
        self.paths[slot], self.sent_ns[slot] = blame.path, blame.sent_ns
        self._originals_time(blame, now_ns)
        self.late(slot, now_ns)
        return copy

    def duplicate(self, index: int, entropy: int, now_ns: int) -> None:
        """A duplicate of PSN una + index came by this EV: perhaps the original, and then its path was only slow.

        If the copy went the same way, the original may as well have come in time and its answer been lost.
        """
        slot = (self.una + index) & self.mask
        blame = self.blame_of(slot)
        if blame is not None and blame.path.ev == entropy and self.tries[slot]:
            if self.paths[slot] is not blame.path:
                self._originals_time(blame, now_ns)
            elif blame.overtaken:
                return  # the copy: a later SACK, which told of it as well, was heard first
            self.late(slot, now_ns)

    def _originals_time(self, blame: Blame, now_ns: int) -> None:
        """The transmission that was taken for lost has just arrived: how long it was under way."""
        if blame.path.plane.wanted and blame.sent_ns >= self.resumed_ns:
            self.rule.late_rtt(blame.path.plane.number, now_ns - self.late_ns - blame.sent_ns)

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """This host did not run for `late_ns`, until now: what is under way counts as sent so much later."""
        self.late_ns += late_ns
        own_ns = self.resumed_ns = now_ns - self.late_ns
        log = self.rule.log
        if not len(log) or log[-1][1] <= own_ns:  # as always where a host that does not run sends nothing
            return
        self.sent_ns = [min(sent_ns, own_ns) for sent_ns in self.sent_ns]
        for path in self.paths:
            if path is not None:
                path.alive_ns = min(path.alive_ns, own_ns)
        self.rule.none_sent_after(own_ns)

    def lose(self, index: int, *, proved: bool) -> tuple[EvPath, int, int]:
        """Take a packet for lost, by the fault of its path; returns the path, the size and when it was sent. `proved`:
        by the reorder rule."""
        slot = (self.una + index) & self.mask
        path, size = self.paths[slot], self.sizes[slot]
        assert path is not None  # it was sent
        self.lost |= 1 << index
        self.inflight_bytes -= size
        sent_ns = self.sent_ns[slot]
        if not self.blamed:
            self.blamed = [None] * (self.mask + 1)
        passed = path.passed_psn - self.una
        told = self.missing >> index & 1 and passed > index and self.shown >> passed & 1  # both by the latest SACK
        overtaken = proved and not self.tries[slot] and bool(told)
        self.blamed[slot] = Blame(path, sent_ns, proved, overtaken)
        return path, size, sent_ns

    def refused(self, index: int, entropy: int) -> tuple[EvPath, int] | None:
        """A NACK came for the copy on this EV: the packet is to be sent again, and its path is not to blame.

        None if the packet has arrived meanwhile, or the NACK is about a copy that has been replaced.
        """
        slot = (self.una + index) & self.mask
        path, size = self.paths[slot], self.sizes[slot]
        if (self.acked | self.lost) >> index & 1 or path is None or path.ev != entropy:
            return None
        self.lost |= 1 << index
        self.inflight_bytes -= size
        self.acquit(slot)
        self.rule.prune(self)  # NACKs bring nothing that a loss rule could judge by
        return path, size

    def returned(self, index: int, entropy: int) -> tuple[EvPath, int, int] | None:
        """A switch has sent the copy on this EV back, whose path is to blame: path, size and when it was sent.

        None as of `refused`.
        """
        slot = (self.una + index) & self.mask
        if (refused := self.refused(index, entropy)) is None:
            return None
        path, size = refused
        if not self.blamed:
            self.blamed = [None] * (self.mask + 1)
        self.blamed[slot] = Blame(path, self.sent_ns[slot], proved=False)
        return path, size, self.sent_ns[slot] + self.late_ns

    def waiting(self) -> list[int]:
        """Packets that are neither acknowledged nor taken for lost, as offsets from `una`."""
        bits = ~(self.acked | self.lost) & ((1 << (self.nxt - self.una)) - 1)
        indices: list[int] = []
        while bits:
            low = bits & -bits
            bits ^= low
            indices.append(low.bit_length() - 1)
        return indices


def _moved(old: Ring, new: Ring, psns: range) -> Ring:
    """The entries of a ring in a larger one."""
    for psn in psns:
        new[psn & len(new) - 1] = old[psn & len(old) - 1]
    return new


class Repair:
    """One requester's, at most one at a time. Times are ns; `packets` is 0 while nothing is being repaired."""

    def __init__(self) -> None:
        self._last_psn = -1
        self.packets = 0
        """Packets taken for lost in this repair, and how many of them had only been slow."""
        self.late = 0
        self.sent_ns = 0
        """When the first of them had been sent, and when it was taken for lost."""
        self.noticed_ns = 0

    def lost(self, psn: int, sent_ns: int, now_ns: int) -> None:
        """A packet is taken for lost."""
        if not self.packets:
            self.late, self.sent_ns, self.noticed_ns = 0, sent_ns, now_ns
        self.packets += 1
        self._last_psn = max(self._last_psn, psn)

    def ended(self, una: int) -> bool:
        """Whether all that was lost has arrived, now that everything before `una` has."""
        return bool(self.packets) and una > self._last_psn
