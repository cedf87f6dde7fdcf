"""Oblivious spraying: a random EV for every packet, whatever the network says. Denied EVs stay out."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from endpoint.mrc.parameter import Values
from endpoint.mrc.paths.ev_set import EvPath, EvSet
from endpoint.mrc.paths.selection import Selection


class ObliviousSelection(Selection):
    """Every EV of every live plane is equally likely; a packet whose port cannot send yet waits for it."""

    heeds_signals: ClassVar[bool] = False

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self._evs = evs
        self._random = rng.random
        self._waiting: EvPath | None = None

    def next(self, usable: int) -> EvPath | None:
        path = self._waiting
        if path is None or not path.plane.wanted or not path.active:
            live = self._evs.live
            if not live:
                return None
            plane = live[int(self._random() * len(live))]
            path = plane.active[int(self._random() * len(plane.active))]
        if path.port.bit & usable:
            self._waiting = None
            return path
        self._waiting = path
        return None
