"""The collectives of the lab as GOAL programs: the same messages, in the same order, waiting for the same things.

`endpoint/workloads/ring.py` and `collective.py` are the other way of saying so; a run of either gives the same packets.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from schedules.errors import ScheduleError

__all__ = ["KINDS", "CollectiveSchedule"]

ITEM_BYTES = 4
"""Collectives count in int32, so a rank's share is rounded up to whole ones."""
RANKS_MAX = 4096
SIZE_MAX = 1 << 32
ROUNDS_MAX = 10_000
COMPUTE_NS_MAX = 1 << 50
OPERATIONS_MAX = 100_000_000
"""More than an all-reduce of `RANKS_MAX` ranks has whose messages are whole shares."""
SHARES = {"all_reduce": 2, "all_gather": 1, "all_to_all": 1}
"""How many shares of the buffer a rank sends per other rank, by kind."""


@dataclass(frozen=True, slots=True)
class CollectiveSchedule:
    """The options of a collective. `size` is nccl-tests': the larger of a rank's send and receive buffers, in bytes.

    A message has at most `segment` bytes; each rank computes for `compute_ns` before each round.
    """

    ranks: int
    size: int = 1 << 20
    segment: int = 65_536
    rounds: int = 1
    compute_ns: int = 0

    def check(self, kind: str = "all_reduce") -> None:
        """ScheduleError for a number out of its range, or a program that is too long."""
        ranges = (
            ("ranks", self.ranks, 2, RANKS_MAX),
            ("size", self.size, ITEM_BYTES * max(1, self.ranks), SIZE_MAX),
            ("segment", self.segment, ITEM_BYTES, SIZE_MAX),
            ("rounds", self.rounds, 1, ROUNDS_MAX),
            ("compute", self.compute_ns, 0, COMPUTE_NS_MAX),
        )
        for name, value, low, high in ranges:
            if not low <= value <= high:
                raise ScheduleError(f"--{name} must be between {low} and {high} (got {value})")
        if self.segment % ITEM_BYTES:
            raise ScheduleError(f"--segment must be a multiple of {ITEM_BYTES} bytes (got {self.segment})")
        if (count := self.operations(kind)) > OPERATIONS_MAX:
            raise ScheduleError(f"the program must have at most {OPERATIONS_MAX} operations (this one has {count})")

    @property
    def share(self) -> int:
        """The bytes of a rank's share."""
        return -(-self.size // ITEM_BYTES // self.ranks) * ITEM_BYTES

    @property
    def cuts(self) -> int:
        """How many messages a share is cut into."""
        return -(-self.share // self.segment)

    def pieces(self) -> Iterator[int]:
        """The bytes of each message that a rank's share is cut into."""
        share = self.share
        return (min(self.segment, share - start) for start in range(0, share, self.segment))

    def operations(self, kind: str) -> int:
        """How many operations a program of this kind has."""
        messages = self.ranks * SHARES[kind] * (self.ranks - 1) * self.cuts
        calculations = self.ranks * (self.rounds * (self.compute_ns > 0) + self.rounds - 1)
        return self.rounds * 2 * messages + calculations


def all_reduce(what: CollectiveSchedule) -> Iterator[str]:
    """A ring all-reduce: reduce-scatter, then all-gather."""
    yield from program(what, lambda rank: ring(what, rank, 2 * (what.ranks - 1)))


def all_gather(what: CollectiveSchedule) -> Iterator[str]:
    """A ring all-gather."""
    yield from program(what, lambda rank: ring(what, rank, what.ranks - 1))


def all_to_all(what: CollectiveSchedule) -> Iterator[str]:
    """Every rank sends a share to each other rank, beginning with its neighbour."""
    yield from program(what, lambda rank: exchange(what, rank))


KINDS: dict[str, Callable[[CollectiveSchedule], Iterator[str]]] = {
    "all_reduce": all_reduce,
    "all_gather": all_gather,
    "all_to_all": all_to_all,
}
"""The collectives that can be written as a schedule, by name."""


def program(what: CollectiveSchedule, block: Callable[[int], Iterator[str]]) -> Iterator[str]:
    """The lines of a program whose ranks have these blocks."""
    yield f"num_ranks {what.ranks}"
    for rank in range(what.ranks):
        yield ""
        yield f"rank {rank} {{"
        yield from block(rank)
        yield "}"


def ring(what: CollectiveSchedule, rank: int, steps: int) -> Iterator[str]:
    """In each step a rank passes on what the step before brought."""
    right, left = (rank + 1) % what.ranks, (rank - 1) % what.ranks
    for number in range(what.rounds):
        begun = yield from computing(what, number)
        for step in range(steps):
            for piece, size in enumerate(what.pieces()):
                tag = (number * steps + step) * what.cuts + piece
                send, before = f"s{number}_{step}_{piece}", f"r{number}_{step - 1}_{piece}" if step else begun
                yield f"{send}: send {size}b to {right} tag {tag}"
                receive = f"r{number}_{step}_{piece}"
                yield f"{receive}: recv {size}b from {left} tag {tag}"
                yield from required(send, before)
                yield from required(receive, begun)  # what comes early from a neighbour waits for this rank's round
        ends = (
            f"{kind}{number}_{step}_{piece}" for step in range(steps) for piece in range(what.cuts) for kind in "sr"
        )
        yield from ending(what, number, ends)


def exchange(what: CollectiveSchedule, rank: int) -> Iterator[str]:
    """Receives first, in the order of ranks, because a NIC makes its queue pairs in the order of the file."""
    others = [other for other in range(what.ranks) if other != rank]
    targets = [(rank + distance) % what.ranks for distance in range(1, what.ranks)]
    for number in range(what.rounds):
        begun = yield from computing(what, number)
        for other in others:
            for piece, size in enumerate(what.pieces()):
                receive = f"r{number}_{other}_{piece}"
                yield f"{receive}: recv {size}b from {other} tag {number * what.cuts + piece}"
                yield from required(receive, begun)
        for piece, size in enumerate(what.pieces()):
            for other in targets:
                send = f"s{number}_{other}_{piece}"
                yield f"{send}: send {size}b to {other} tag {number * what.cuts + piece}"
                yield from required(send, begun)
        received = (f"r{number}_{other}_{piece}" for other in others for piece in range(what.cuts))
        sent = (f"s{number}_{other}_{piece}" for piece in range(what.cuts) for other in targets)
        yield from ending(what, number, chain(received, sent))


def computing(what: CollectiveSchedule, number: int) -> Generator[str, None, str]:
    """The calculation before a round. Its value is the label that the round's first sends require, "" for none."""
    before = f"e{number - 1}" if number else ""
    if not what.compute_ns:
        return before
    yield f"c{number}: calc {what.compute_ns}"
    yield from required(f"c{number}", before)
    return f"c{number}"


def ending(what: CollectiveSchedule, number: int, ends: Iterable[str]) -> Iterator[str]:
    """The end of a round, for which the next one waits."""
    if number + 1 < what.rounds:
        yield f"e{number}: calc 0"
        for end in ends:
            yield f"e{number} requires {end}"


def required(after: str, before: str) -> Iterator[str]:
    """A dependency, if there is one."""
    if before:
        yield f"{after} requires {before}"
