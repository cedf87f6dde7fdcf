"""A base of selections that know paths as numbers from 0 on, as policies of packet simulators do.

Such a policy decides alone which path is good: MRC's states of EVs stay out of it. A number whose plane is down,
or whose EV a controller denies, is drawn again.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from endpoint.mrc.parameter import Values
from endpoint.mrc.paths.ev_set import EvPath, EvSet
from endpoint.mrc.paths.selection import Selection

DRAWS_MAX = 4


@mypyc_attr(allow_interpreted_subclasses=True)
class EntropySelection(Selection):
    """`size` is the number of paths: a power of two, as the reference's policies need, unless there are fewer than two.
    A choice whose port cannot send yet waits for it, and the packet takes another (`Parked`)."""

    heeds_signals: ClassVar[bool] = False

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self.rng = rng
        table = [path for plane in evs.planes for path in plane.active]
        rng.shuffle(table)
        self.size = 1 << (len(table).bit_length() - 1)
        self.table = table[: self.size]
        self.numbers = {path.ev: number for number, path in enumerate(self.table)}
        self._parked = Parked()

    def choose(self) -> int:
        """The number of the next packet's path."""
        raise NotImplementedError

    def draw(self) -> int:
        """A random number of a path."""
        return self.rng.randrange(self.size)

    def next(self, usable: int) -> EvPath | None:
        path = self._parked.take(usable)
        if path is not None or not usable:
            return path
        usual = False
        for _ in range(DRAWS_MAX * self.size):
            path = self.table[self.choose()]
            if path.plane.wanted and path.active:
                if path.port.bit & usable:
                    return path
                self._parked.park(path)
                usual = True
        live = self.evs.live
        if usual or not live or not live[0].bit & usable:
            return None
        return live[0].active[0]


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
