"""A host that does not run for moments at a time, as a resident of virtual time."""

from __future__ import annotations

from collections.abc import Sequence

from endpoint import HostNic, VirtualHost
from switch import TimedFrame


class LateHost:
    """Wraps a host of virtual time. From `begin_ns` on, every `every_ns`, the host stands still for `late_ns`.

    Frames that arrive meanwhile wait; timers run late. Afterwards the NIC is told, as an agent tells its NIC when the
    kernel has not run it.
    """

    def __init__(self, virtual: VirtualHost, nic: HostNic, begin_ns: int, every_ns: int, late_ns: int) -> None:
        """ValueError unless the pauses have room between them."""
        if not 0 < late_ns < every_ns:
            raise ValueError(f"late_ns must be above 0 and below every_ns = {every_ns} (got {late_ns})")
        self._virtual = virtual
        self._nic = nic
        self._next_ns = begin_ns
        self._every_ns, self._late_ns = every_ns, late_ns
        self._waiting: list[TimedFrame] = []

    @property
    def due_ns(self) -> int | None:
        """When the host acts next: never inside of a pause."""
        due_ns, end_ns = self._virtual.due_ns, self._next_ns + self._late_ns
        if self._waiting:
            return end_ns
        if due_ns is None or due_ns < self._next_ns or due_ns >= end_ns:
            return due_ns
        return end_ns

    def live(self, arrivals: Sequence[TimedFrame], horizon_ns: int) -> list[TimedFrame]:
        """Act up to `horizon_ns`, but for the pauses in between."""
        frames = list(arrivals)
        sent: list[TimedFrame] = []
        while True:
            begin_ns, end_ns = self._next_ns, self._next_ns + self._late_ns
            before = [frame for frame in frames if frame[0] < begin_ns]
            if horizon_ns <= begin_ns:
                return sent + self._virtual.live(before, horizon_ns)
            if before or not self._waiting:
                sent += self._virtual.live(before, begin_ns)
            self._waiting += [frame for frame in frames if begin_ns <= frame[0] < end_ns]
            frames = [frame for frame in frames if frame[0] >= end_ns]
            if horizon_ns <= end_ns:
                return sent
            sent += self._wake(end_ns)

    def _wake(self, end_ns: int) -> list[TimedFrame]:
        """Run again: frames that have waited arrive at once, and timers that are overdue fire now."""
        self._next_ns += self._every_ns
        waiting, self._waiting = self._waiting, []
        if self._virtual.due_ns is not None:
            self._virtual.due_ns = max(self._virtual.due_ns, end_ns)
        self._nic.host_was_late(self._late_ns, end_ns)
        return self._virtual.live([(end_ns, host, port, frame) for _, host, port, frame in waiting], end_ns + 1)
