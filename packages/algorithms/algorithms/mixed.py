"""The reference's mixed policy: a path that just carried a packet well is taken again; where none is left, the bitmap.

Source: the behaviour of `UecMpMixed` in uet-htsim (github.com/ultraethernet/uet-htsim, htsim/sim/uec_mp.cpp); the
tests compare decisions with recorded ones.
"""

from collections import deque
from random import Random

from algorithms.bitmap import BitmapSelection
from endpoint.mrc import EvPath, EvSet, Values


class MixedSelection(BitmapSelection):
    """Each packet acknowledged without a mark gives its path back once, in the order of acknowledgements."""

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self._good: deque[int] = deque()

    def choose(self) -> int:
        return self._good.popleft() if self._good else super().choose()

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        number = self.numbers.get(path.ev)
        if marked:
            super().on_packet_acked(now_ns, path, size, rtt_ns, marked)
        elif number is not None:
            self._good.append(number)
