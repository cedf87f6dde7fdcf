"""The reference's bitmap policy: every path in turn, and a path is passed over as often as it has penalty points.

Source: the behaviour of `UecMpBitmap` in uet-htsim (github.com/ultraethernet/uet-htsim, htsim/sim/uec_mp.cpp); the
tests compare decisions with recorded ones.
"""

from random import Random
from typing import Final

from algorithms.entropies import EntropySelection
from endpoint.mrc import EvPath, EvSet, Values

PENALTY_MAX: Final = 15
MARK, TRIM, LOSS = 1, 4, PENALTY_MAX


class BitmapSelection(EntropySelection):
    """A mark costs a path one turn, a trim four, a loss fifteen; no path owes more than fifteen. Paths are counted
    through in an order that a random number turns around anew each round (exclusive or)."""

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self.penalties = [0] * self.size
        self._at = 0
        self._turn = self.draw()

    def choose(self) -> int:
        number = self._at ^ self._turn
        if self.penalties[number]:
            self.penalties[number] -= 1  # of the first path only: those passed over behind it owe as much as before
            for _ in range(self.size):
                self._step()
                number = self._at ^ self._turn
                if not self.penalties[number]:
                    break
        self._step()
        return number

    def _step(self) -> None:
        self._at += 1
        if self._at == self.size:
            self._at = 0
            self._turn = self.draw()

    def punish(self, path: EvPath, points: int) -> None:
        """Add points to a path's penalty."""
        number = self.numbers.get(path.ev)
        if number is not None:
            self.penalties[number] = min(self.penalties[number] + points, PENALTY_MAX)

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        if marked:
            self.punish(path, MARK)

    def on_packet_trimmed(self, now_ns: int, path: EvPath, size: int, last_hop: bool) -> None:
        self.punish(path, TRIM)

    def on_packet_lost(self, now_ns: int, path: EvPath, size: int, proved: bool) -> None:
        self.punish(path, LOSS)
