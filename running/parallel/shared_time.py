"""Virtual time that several processes share, in conservative turns.

A turn ends a cable's length after the earliest event of all: nothing that one process does in it can reach a switch of
another before its end. Then frames change hands. Switches stop at the end of a turn, and hosts a cable later: a frame
that is still to be brought reaches a leaf first. So fewer hosts are served twice for one cable's time. A turn's length
changes no result: events at one nanosecond are ordered by time, port and sending (`switch.fabric`), wherever a frame
comes from and whenever it is brought.
"""

from __future__ import annotations

from collections.abc import Callable

from running.parallel.communicator import Ranks, portable, raise_first
from running.worlds.virtual_time import VirtualTime
from switch.native import NEVER, FabricPart

Turn = tuple[int, int, Exception | None, bytes]
"""From each process to each other: its next event, the shortest way out of it, an exception, frames."""


class SharedTime(VirtualTime):
    """Every call that lets time pass is one of all processes."""

    def __init__(self, fabric: FabricPart, tick_ns: int, ranks: Ranks, beat: Callable[[], None]) -> None:
        """`beat` is called after every turn."""
        super().__init__(fabric, tick_ns)
        self._part = fabric
        self._ranks = ranks
        self._beat = beat
        self.turns = 0

    @property
    def next_ns(self) -> int | None:
        """The next instant at which anything happens in any process."""
        next_ns, _ = self._exchange(None)
        return None if next_ns == NEVER else next_ns

    def run_until(self, t_ns: int) -> None:
        end_ns, error = t_ns + 1, None
        while True:
            next_ns, between_ns = self._exchange(error)
            if next_ns >= end_ns:
                break
            error = self._turn(min(end_ns, next_ns + between_ns), end_ns)
            self._beat()
        super().run_until(t_ns)  # nothing is left to happen

    def _turn(self, turn_end_ns: int, end_ns: int) -> Exception | None:
        """One turn; hosts go on beyond its end, and not beyond `end_ns`. Returns what was raised in it."""
        self.turns += 1
        try:
            self._pass(turn_end_ns, end_ns)
        except Exception as error:
            return portable(error)
        return None

    def _exchange(self, error: Exception | None) -> tuple[int, int]:
        """Frames change hands. Returns the next event of all processes, and the shortest way between two."""
        own_ns = self._own_next_ns()
        next_ns = min(NEVER if own_ns is None else own_ns, self._part.departing_ns)
        between_ns = self._part.between_ns
        ranks = self._ranks
        told: list[Turn] = [
            (next_ns, between_ns, error, b"" if error or rank == ranks.rank else self._part.depart(rank + 1))
            for rank in range(ranks.count)
        ]
        heard: list[Turn] = ranks.comm.alltoall(told)
        raise_first([turn[2] for turn in heard])
        for rank, turn in enumerate(heard):
            if rank != ranks.rank and turn[3]:
                self._part.arrive(turn[3])
        return min(turn[0] for turn in heard), min(turn[1] for turn in heard)
