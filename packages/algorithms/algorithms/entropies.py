"""A base of selections that know paths as numbers from 0 on, as policies of packet simulators do.

Such a policy decides alone which path is good: MRC's states of EVs stay out of it. A number whose plane is down,
or whose EV a controller denies, is drawn again.
"""

from random import Random
from typing import ClassVar

from endpoint.mrc import EvPath, EvSet, Parked, Selection, Values

DRAWS_MAX = 4


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
