"""Loss detection: from what is acknowledged, which packets are lost, and when the peer is asked.

An algorithm is one file, and one line of names (`endpoint.mrc.algorithms`).
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from endpoint.mrc.parameter import Parameter, Values
from endpoint.mrc.paths.ev_set import EvPath
from endpoint.mrc.paths.signals import Signals


class PacketWindow:
    """PSNs without wrap: `una` is the oldest not acknowledged, `nxt` the next new one; bit i of `acked` and `lost` is
    PSN una + i. The rings `sent_ns`, `sizes`, `tries` and `paths` are indexed by PSN & `mask`."""

    def __init__(self, psn: int, size: int) -> None:
        self.una = self.nxt = psn
        self.acked = 0
        self.lost = 0
        self.mask = size - 1
        self.sent_ns = [0] * size
        self.sizes = [0] * size
        self.tries = [0] * size
        self.paths: list[EvPath | None] = [None] * size
        self.shown = self.missing = 0
        """The packets that the latest SACK says have arrived, and those below them of which it says that they have not,
        as bits from `una`. Packets that a SACK has no room for are in neither."""
        self.in_order = True
        """Whether no packet has been seen to overtake another of its EV."""


ROOM: Final = 16
"""Entries that a new log has room for; a power of two, as every ring's."""


class SentLog:
    """(PSN, time sent) of every transmission, oldest first: a deque of pairs. A rule takes out what it has judged."""

    def __init__(self) -> None:
        self._psns = [0] * ROOM
        self._sent_ns = [0] * ROOM
        self._mask = ROOM - 1
        self._first = self._count = 0
        """The place of the oldest, and how many there are."""

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> tuple[int, int]:
        """Entry 0 is the oldest, -1 the newest. Raises `IndexError`."""
        if not -self._count <= place < self._count:
            raise IndexError(f"the log has {self._count} transmissions, and no entry {place}")
        at = self._first + (place if place >= 0 else self._count + place) & self._mask
        return self._psns[at], self._sent_ns[at]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter([self[place] for place in range(self._count)])

    def append(self, entry: tuple[int, int]) -> None:
        if self._count > self._mask:
            self._grow()
        at = self._first + self._count & self._mask
        self._psns[at] = entry[0]
        self._sent_ns[at] = entry[1]
        self._count += 1

    def extend(self, entries: Iterable[tuple[int, int]]) -> None:
        for entry in entries:
            self.append(entry)

    def popleft(self) -> tuple[int, int]:
        """Take the oldest out. Raises `IndexError` if there is none."""
        oldest = self[0]
        self._first = self._first + 1 & self._mask
        self._count -= 1
        return oldest

    def clear(self) -> None:
        self._first = self._count = 0

    def _grow(self) -> None:
        """Twice the room; the ring is full."""
        first = self._first
        room = [0] * (self._mask + 1)
        self._psns = [*self._psns[first:], *self._psns[:first], *room]
        self._sent_ns = [*self._sent_ns[first:], *self._sent_ns[:first], *room]
        self._first, self._mask = 0, 2 * self._mask + 1


@mypyc_attr(allow_interpreted_subclasses=True)
class LossDetection(Signals):
    """One queue pair's loss rule. Times are ns by the flight's clock, which stands still while the host does.

    The retransmission timer stays as it is: packets that no rule proves lost are sent again after the ACK timeout.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, base_rtt_ns: int, jitter_ns: int, values: Values) -> None:
        self.window_ns = base_rtt_ns + jitter_ns
        """How long the oldest packet may be out, and nothing be heard, before probes ask for it."""
        self.patience_ns = 0
        """How much longer than it must this NIC waits (`be_patient`)."""
        self.slowest_ns = 0
        """Largest recent round trip of the slowest plane; 0: no sample yet."""
        self.longest_ns = 0
        """The longest round trip to expect, of any plane; 0: no sample yet."""
        self.log = SentLog()
        """(PSN, time sent) of every transmission, oldest first. A rule takes out what it has judged."""
        self.newest_ns = -1
        """When the latest packet or probe that is known to have arrived was sent."""

    def be_patient(self, patience_ns: int) -> None:
        """Wait so much longer than the rule must (setting `loss_patience_ns`)."""
        self.patience_ns = patience_ns
        self.window_ns += patience_ns

    def overdue(self, flight: PacketWindow, window_bytes: int) -> list[int]:
        """The packets that are lost now, as offsets from `flight.una`. Asked after each acknowledgement.

        Bit i of `flight.acked` and `flight.lost` is PSN una + i; rings such as `flight.sent_ns` are indexed by
        PSN & `flight.mask`. `window_bytes` is the congestion window.
        """
        raise NotImplementedError

    def rtt_sample(self, plane: int, rtt_ns: int) -> None:
        """A round trip over `plane`, of a packet that was sent once."""

    def late_rtt(self, plane: int, rtt_ns: int) -> None:
        """A packet taken for lost has just arrived over `plane`, `rtt_ns` after it was sent."""

    def late_arrival(self) -> None:
        """A packet taken for lost by this rule has arrived some time ago."""

    def true_loss(self) -> None:
        """A packet taken for lost by this rule was lost: its copy has been acknowledged."""

    def forget_plane(self, plane: int) -> None:
        """The plane is down: its delay says nothing any more."""

    def prune(self, flight: PacketWindow) -> None:
        """Drop log entries of packets that are not under way any more, once there are many."""
        log, sent_ns, mask = self.log, flight.sent_ns, flight.mask
        if len(log) <= 4 * (mask + 1):
            return
        kept = [entry for entry in log if entry[0] >= flight.una and sent_ns[entry[0] & mask] == entry[1]]
        log.clear()
        log.extend(kept)

    def none_sent_after(self, latest_ns: int) -> None:
        """The flight's clock was set back to `latest_ns`: packets sent later count as sent then."""
        moved = [(psn, min(sent_ns, latest_ns)) for psn, sent_ns in self.log]
        self.log.clear()
        self.log.extend(moved)
        self.newest_ns = min(self.newest_ns, latest_ns)
