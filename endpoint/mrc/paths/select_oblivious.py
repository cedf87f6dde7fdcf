"""Oblivious spraying: a random EV for every packet, without regard to feedback. Denied EVs stay out."""

from random import Random
from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from endpoint.mrc.parameter import Values
from endpoint.mrc.paths.ev_set import EvPath, EvSet
from endpoint.mrc.paths.parked import Parked
from endpoint.mrc.paths.selection import Selection

DRAWS_MAX: Final = 64


@mypyc_attr(allow_interpreted_subclasses=True)
class ObliviousSelection(Selection):
    """Every EV of every live plane is equally likely; a choice whose port cannot send yet waits for it, and the
    packet takes another (`Parked`)."""

    heeds_signals: ClassVar[bool] = False

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self._evs = evs
        self._random = rng.random
        self._parked = Parked()

    def next(self, usable: int) -> EvPath | None:
        path = self._parked.take(usable)
        live = self._evs.live
        if path is not None or not usable or not live:
            return path
        for _ in range(DRAWS_MAX):
            plane = live[int(self._random() * len(live))]
            path = plane.active[int(self._random() * len(plane.active))]
            if path.port.bit & usable:
                return path
            self._parked.park(path)
        return None
