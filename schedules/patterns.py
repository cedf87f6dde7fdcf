"""Connection matrices, written: patterns of connections that begin together, and the messages of a run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from common.seeds import SEED_MAX, Purpose, derive
from schedules.builder import RANKS_MAX
from schedules.errors import ScheduleError
from schedules.matrix import PS_PER_NS

__all__ = ["KINDS", "MatrixConnection", "Pattern", "lines"]

SIZE_MAX = (1 << 31) - 1
"""htsim reads a size as a signed integer of 32 bits."""
CONNECTIONS_MAX = 1 << 24


class MatrixConnection(NamedTuple):
    """One line of a matrix."""

    source: int
    target: int
    start_ns: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """The options of a pattern: `size` bytes per connection. Permutations are drawn from the seed."""

    nodes: int
    size: int = 2_000_000
    seed: int = 1

    def check(self) -> None:
        """ScheduleError for a number out of its range."""
        for name, value, low, high in (
            ("ranks", self.nodes, 2, RANKS_MAX),
            ("size", self.size, 1, SIZE_MAX),
            ("seed", self.seed, 0, SEED_MAX),
        ):
            if not low <= value <= high:
                raise ScheduleError(f"--{name} must be between {low} and {high} (got {value})")


def permutation(what: Pattern) -> list[MatrixConnection]:
    """Every node sends to one other and receives from one: a single circle, so no node sends to itself."""
    order = list(range(what.nodes))
    random.Random(derive(what.seed, Purpose.PATTERN)).shuffle(order)
    return [
        MatrixConnection(source, target, 0, what.size)
        for source, target in zip(order, order[1:] + order[:1], strict=True)
    ]


def incast(what: Pattern) -> list[MatrixConnection]:
    """All other nodes send to node 0."""
    return [MatrixConnection(source, 0, 0, what.size) for source in range(1, what.nodes)]


def all_to_all(what: Pattern) -> list[MatrixConnection]:
    """Every node sends to every other, beginning with its neighbour."""
    if what.nodes * (what.nodes - 1) > CONNECTIONS_MAX:
        raise ScheduleError(f"--ranks must give at most {CONNECTIONS_MAX} connections (got {what.nodes} nodes)")
    return [
        MatrixConnection(source, (source + distance) % what.nodes, 0, what.size)
        for distance in range(1, what.nodes)
        for source in range(what.nodes)
    ]


KINDS: dict[str, Callable[[Pattern], list[MatrixConnection]]] = {
    "permutation": permutation,
    "incast": incast,
    "all_to_all": all_to_all,
}
"""The patterns that can be written as a connection matrix, by name."""


def lines(nodes: int, connections: Iterable[MatrixConnection]) -> Iterator[str]:
    """The lines of a matrix, connections in order of their starts. ScheduleError for sizes that htsim does not read."""
    ordered = sorted(connections, key=lambda link: link.start_ns)
    yield f"Nodes {nodes}"
    yield f"Connections {len(ordered)}"
    for ident, link in enumerate(ordered, 1):
        if not 1 <= link.bytes <= SIZE_MAX:
            raise ScheduleError(f"a connection must have 1 to {SIZE_MAX} bytes (got {link.bytes})")
        yield f"{link.source}->{link.target} id {ident} start {link.start_ns * PS_PER_NS} size {link.bytes}"
