"""Virtual time: the fabric and the hosts in turns, each for as long as the other cannot interfere.

The result is the same as if every instant were served by itself (`switch.fabric`). In a turn a host takes every frame
that reaches it, each at its own time. Control operations happen between turns, after all else of their instant.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Protocol

from switch import Fabric, TimedFrame


class Resident(Protocol):
    """A host, as virtual time sees one: something at the fabric's edge that takes and sends frames."""

    @property
    def due_ns(self) -> int | None:
        """When the host acts next if no frame reaches it."""

    def live(self, arrivals: Sequence[TimedFrame], horizon_ns: int) -> list[TimedFrame]:
        """Act up to `horizon_ns`; returns the frames that the host has handed to its ports."""


class AbsentResident:
    """A host of which nothing happens here."""

    due_ns: int | None = None

    def live(self, arrivals: Sequence[TimedFrame], horizon_ns: int) -> list[TimedFrame]:
        return []


ABSENT = AbsentResident()


class VirtualTime:
    """`now_ns` is the instant that has been reached: everything up to this instant, and at it, has happened."""

    def __init__(self, fabric: Fabric, tick_ns: int) -> None:
        """A caller that waits for something to happen looks once a `tick_ns`. A look ends a turn, so that ticks as
        short as turns would double their number."""
        self.now_ns = 0
        self._fabric = fabric
        self._tick_ns = max(tick_ns, 1)
        self._residents: Sequence[Resident] = ()
        self._before: Callable[[], None] = lambda: None
        self._alarms: list[tuple[int, int]] = []  # (time, number); stale when the resident's due_ns is another

    def settle(self, residents: Sequence[Resident], before: Callable[[], None] = lambda: None) -> None:
        """Take the hosts, in the order of their numbers in the fabric; `before` is called before time moves."""
        self._residents = residents
        self._before = before
        self._alarms.clear()
        for number in range(len(residents)):
            self.wake(number)

    def wake(self, number: int) -> None:
        """Note when a resident is due, after a call has changed it."""
        due_ns = self._residents[number].due_ns
        if due_ns is not None:
            heapq.heappush(self._alarms, (due_ns, number))

    @property
    def next_ns(self) -> int | None:
        """The next instant at which the fabric or a host acts."""
        return self._own_next_ns()

    def _own_next_ns(self) -> int | None:
        return min((t_ns for t_ns in (self._fabric.next_ns, self._alarm_ns()) if t_ns is not None), default=None)

    def run_until(self, t_ns: int) -> None:
        """Let time pass up to `t_ns`, and have everything at that instant happen too."""
        self._pass(t_ns + 1, t_ns + 1)
        self.now_ns = max(self.now_ns, t_ns)

    def _pass(self, end_ns: int, hosts_end_ns: int) -> None:
        """Have everything before `end_ns` happen, and what hosts do before `hosts_end_ns` (not less) as far as no
        switch can change it any more."""
        self._before()
        fabric = self._fabric
        while fabric.reached_ns < end_ns or not self._over(end_ns):
            horizon_ns = min(fabric.run(self._alarm_ns(), end_ns), hosts_end_ns)
            numbers = dict.fromkeys(fabric.gather(horizon_ns))
            numbers.update(dict.fromkeys(self._due(horizon_ns)))
            for number in numbers:  # one host after the other, so that its frames are still in caches
                resident = self._residents[number]
                before_ns = resident.due_ns
                frames = resident.live(fabric.collect(number), horizon_ns)
                if resident.due_ns != before_ns:
                    self.wake(number)
                if frames:
                    fabric.send(frames)
            self.now_ns = max(self.now_ns, horizon_ns - 1)  # for who watches; no host is asked for anything earlier

    def pass_until(self, happened: Callable[[], bool], limit_ns: int) -> bool:
        """Let time pass until something has happened, looking once a tick; False when it has not by `limit_ns`."""
        while not happened():
            if self.now_ns >= limit_ns:
                return False
            next_ns = self.next_ns
            tick_ns = limit_ns if next_ns is None else -(-next_ns // self._tick_ns) * self._tick_ns
            self.run_until(min(tick_ns, limit_ns))
        return True

    def _over(self, end_ns: int) -> bool:
        next_ns = self._own_next_ns()
        return next_ns is None or next_ns >= end_ns

    def _alarm_ns(self) -> int | None:
        alarms = self._alarms
        while alarms and self._residents[alarms[0][1]].due_ns != alarms[0][0]:
            heapq.heappop(alarms)
        return alarms[0][0] if alarms else None

    def _due(self, before_ns: int) -> list[int]:
        """The residents that are due before a time; each loses its alarm and gets a new one when it has acted."""
        numbers = []
        while (due_ns := self._alarm_ns()) is not None and due_ns < before_ns:
            numbers.append(heapq.heappop(self._alarms)[1])
        return numbers
