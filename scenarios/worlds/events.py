"""Virtual time: events in order of time, and of their making where times are equal."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any


class Events:
    """A queue of calls, each at its instant. `now_ns` is the instant of the call that runs."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._made = 0

    def at(self, t_ns: int, act: Callable[..., None], *arguments: Any) -> None:
        """Call `act(*arguments)` at `t_ns`, or now if that is past."""
        self._made += 1
        heapq.heappush(self._heap, (max(t_ns, self.now_ns), self._made, act, arguments))

    def run_until(self, t_ns: int) -> None:
        """Run everything up to and at `t_ns`, which is then the time."""
        while self._heap and self._heap[0][0] <= t_ns:
            self.step()
        self.now_ns = max(self.now_ns, t_ns)

    def step(self) -> bool:
        """Run the next call; False when there is none."""
        if not self._heap:
            return False
        self.now_ns, _, act, arguments = heapq.heappop(self._heap)
        act(*arguments)
        return True

    @property
    def next_ns(self) -> int | None:
        return self._heap[0][0] if self._heap else None


class Alarm:
    """One wake-up at a time for one sleeper. A wake-up that a nearer one has replaced is ignored; handling it would
    schedule a second."""

    def __init__(self, events: Events, act: Callable[[], None]) -> None:
        self._events = events
        self._act = act
        self._due_ns: int | None = None

    def set(self, due_ns: int | None) -> None:
        """Wake at `due_ns` unless an earlier wake-up is set already; None: nothing to wake for."""
        if due_ns is not None and (self._due_ns is None or due_ns < self._due_ns):
            self._due_ns = due_ns
            self._events.at(due_ns, self._ring, due_ns)

    def _ring(self, due_ns: int) -> None:
        if due_ns == self._due_ns:
            self._due_ns = None
            self._act()
