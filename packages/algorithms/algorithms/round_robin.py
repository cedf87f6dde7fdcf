"""Round robin: planes in turn, and in each plane its EVs in turn. A plane whose port is busy is passed over.

Source: the textbook; the control group for random spraying.
"""

from random import Random

from endpoint.mrc import EvPath, EvSet, Selection, Values


class RoundRobinSelection(Selection):
    """EVs that MRC's states take out of rotation are left out; marks change nothing."""

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self._plane = 0
        self._turns: dict[int, int] = {}

    def next(self, usable: int) -> EvPath | None:
        live = self.evs.live
        for step in range(len(live)):
            plane = live[(self._plane + step) % len(live)]
            if plane.bit & usable:
                self._plane = (self._plane + step + 1) % len(live)
                turn = self._turns.get(plane.number, 0)
                self._turns[plane.number] = turn + 1
                return plane.active[turn % len(plane.active)]
        return None
