"""Choices of paths whose ports cannot send yet."""

from collections import deque
from typing import Final

from endpoint.mrc.paths.ev_set import EvPath

PARKED_MAX: Final = 16
"""Choices that wait for one port; more of them are forgotten, and count as not made."""


class Parked:
    """A packet that drew a path with a busy port leaves that choice here and draws again, so that one busy port does
    not hold up the others. Each choice is taken when its port is free, the oldest first."""

    def __init__(self) -> None:
        self._by_port: dict[int, deque[EvPath]] = {}

    def park(self, path: EvPath) -> None:
        """Keep this choice until its port is free."""
        queue = self._by_port.get(path.port.bit)
        if queue is None:
            queue = self._by_port[path.port.bit] = deque()
        if len(queue) < PARKED_MAX:
            queue.append(path)

    def take(self, usable: int) -> EvPath | None:
        """The oldest choice of a port among `usable` whose EV is still in rotation; None if there is none."""
        for bit, queue in self._by_port.items():
            if bit & usable:
                while queue:
                    path = queue.popleft()
                    if path.plane.wanted and path.active:
                        return path
        return None
