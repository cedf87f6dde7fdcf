"""Single path: one random EV for the QP's life. Only a dead port or a controller makes it choose another."""

from random import Random
from typing import ClassVar

from mypy_extensions import mypyc_attr

from endpoint.mrc.parameter import Values
from endpoint.mrc.paths.ev_set import EvPath, EvSet
from endpoint.mrc.paths.selection import Selection


@mypyc_attr(allow_interpreted_subclasses=True)
class SinglePathSelection(Selection):
    heeds_signals: ClassVar[bool] = False

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self._evs = evs
        self._rng = rng
        self._path: EvPath | None = None

    def next(self, usable: int) -> EvPath | None:
        path = self._path
        if path is None or not path.plane.wanted or not path.active:
            live = self._evs.live
            if not live:
                return None
            path = self._path = self._rng.choice(self._rng.choice(live).active)
        return path if path.port.bit & usable else None
