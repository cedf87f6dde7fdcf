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
