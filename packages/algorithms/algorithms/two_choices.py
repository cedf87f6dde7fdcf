"""Power of two choices: of two random EVs, the one with fewer bytes of this queue pair on their way.

Source: M. Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", IEEE Transactions on Parallel and
Distributed Systems 12 (2001).
"""

from random import Random

from endpoint.mrc import EvPath, EvSet, PlaneEvs, Selection, Values


class TwoChoicesSelection(Selection):
    """Both EVs are of planes whose ports can send now; EVs that MRC's states take out of rotation are left out."""

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self._random = rng.random
        self._under_way: dict[int, int] = {}

    def next(self, usable: int) -> EvPath | None:
        planes = [plane for plane in self.evs.live if plane.bit & usable]
        if not planes:
            return None
        first, other = self._any(planes), self._any(planes)
        return first if self._under_way.get(first.ev, 0) <= self._under_way.get(other.ev, 0) else other

    def _any(self, planes: list[PlaneEvs]) -> EvPath:
        active = planes[int(self._random() * len(planes))].active
        return active[int(self._random() * len(active))]

    def on_packet_sent(self, now_ns: int, path: EvPath, size: int) -> None:
        self._under_way[path.ev] = self._under_way.get(path.ev, 0) + size

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        self._gone(path, size)

    def on_packet_trimmed(self, now_ns: int, path: EvPath, size: int, last_hop: bool) -> None:
        self._gone(path, size)

    def on_packet_lost(self, now_ns: int, path: EvPath, size: int, proved: bool) -> None:
        self._gone(path, size)

    def on_packet_withdrawn(self, now_ns: int, path: EvPath, size: int) -> None:
        self._gone(path, size)

    def _gone(self, path: EvPath, size: int) -> None:
        self._under_way[path.ev] = max(0, self._under_way.get(path.ev, 0) - size)
