"""How far a run is: its own time, the wall time that is left, and its data packets per second."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

WINDOW_S = 10.0  # of wall time, over which packets per second are counted
EARLY = 0.01  # of a run: too little to say what is left


class Progress:
    """`length_s` of run time, in the run's kind of time."""

    def __init__(self, length_s: float, wall: Callable[[], float] = time.monotonic) -> None:
        self.length_s = length_s
        self._wall = wall
        self._began_s: float | None = None
        self._seen: deque[tuple[float, int]] = deque()

    def see(self, seconds: float | None, packets: int) -> None:
        """The run's clock, None before its first phase, and the data packets that were sent in all."""
        if seconds is None:
            return
        now_s = self._wall()
        if self._began_s is None:
            self._began_s = now_s
        self._seen.append((now_s, packets))
        while len(self._seen) > 2 and now_s - self._seen[0][0] > WINDOW_S:
            self._seen.popleft()

    def share(self, seconds: float | None) -> float:
        """Of the run that is over, 0 to 1."""
        return min((seconds or 0.0) / self.length_s, 1.0) if self.length_s else 0.0

    def left_s(self, seconds: float | None) -> float | None:
        """Wall time until the last phase ends, at the pace so far; None while it is unknown."""
        share = self.share(seconds)
        if self._began_s is None or share < EARLY:
            return None
        return (self._wall() - self._began_s) * (1 - share) / share

    @property
    def packets_a_second(self) -> float:
        """Of wall time, lately."""
        if len(self._seen) < 2 or self._seen[-1][0] <= self._seen[0][0]:
            return 0.0
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        return max(last - first, 0) / (last_s - first_s)

    def words(self, seconds: float | None) -> str:
        """The remaining time and the speed, as text beside a progress bar."""
        left_s = self.left_s(seconds)
        left = "" if left_s is None else f"{int(left_s) // 60}:{int(left_s) % 60:02} left  "
        return f"{left}{self.packets_a_second:,.0f} packets/s"
