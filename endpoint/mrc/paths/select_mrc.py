"""MRC's path selection: the plane first, in equal shares, then the next EV of that plane's rotation."""

from random import Random

from mypy_extensions import mypyc_attr

from endpoint.mrc.parameter import Values
from endpoint.mrc.paths.ev_set import EvPath, EvSet, PlaneEvs
from endpoint.mrc.paths.selection import Selection
from endpoint.mrc.paths.shuffling import shuffle


@mypyc_attr(allow_interpreted_subclasses=True)
class MrcSelection(Selection):
    """Each round takes every live plane once, in a new random order. A plane whose port cannot send yet is moved back
    within its round, so shares never differ by more than one packet."""

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self._evs = evs
        self._bits = rng.getrandbits
        self._order: list[PlaneEvs] = []
        self._at = 0
        self._version = -1

    def next(self, usable: int) -> EvPath | None:
        order, at = self._order, self._at
        if at >= len(order) or self._version != self._evs.version:
            order = self._order = self._evs.live.copy()
            if not order:
                return None
            shuffle(order, self._bits)
            self._version = self._evs.version
            at = 0
        plane = order[at]
        if not plane.bit & usable:
            for later in range(at + 1, len(order)):
                if order[later].bit & usable:
                    order[at], order[later] = order[later], plane
                    plane = order[at]
                    break
            else:
                self._at = at
                return None
        self._at = at + 1
        return plane.take()
