"""Collectives as coroutines over flat tensors. The ranks alone decide the order of every sum, never the arrivals.

Large reductions go around a ring, small ones up and down a binomial tree, whichever takes less time by the NIC's own
figures: a ring has more turns, a tree moves more bytes per turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from mrclab.mesh.link import Tag
from mrclab.mesh.mesh import Arrival, Mesh, Sink, Step

Tensor = Any
Reduce = Callable[[Tensor, Tensor], None]
"""(into, part): add a part to what is there, in place."""


@dataclass(frozen=True, slots=True)
class Team:
    """The ranks of a process group: `ranks` are their numbers in the whole job, `rank` is this one's place there.

    `round_trip_s` and `bytes_per_s` are the first rank's, so that all choose alike.
    """

    mesh: Mesh
    number: int
    rank: int
    ranks: tuple[int, ...]
    round_trip_s: float
    bytes_per_s: float

    @property
    def size(self) -> int:
        return len(self.ranks)

    def send(self, to: int, sequence: int, part: int, data: Tensor) -> Step:
        """A flat tensor to a rank of the team."""
        raw = as_bytes(data)

        def fill(offset: int, place: memoryview) -> None:
            torch.frombuffer(place, dtype=torch.uint8).copy_(raw[offset : offset + len(place)])

        return self.mesh.send(self.ranks[to], Tag(self.number, sequence, part), len(raw), fill)

    def expect(self, source: int, sequence: int, part: int, data: Tensor, reduce: Reduce | None = None) -> Arrival:
        """A flat tensor from a rank of the team, copied into `data` or combined with it."""
        tag = Tag(self.number, sequence, part)
        total = data.numel() * data.element_size()
        return self.mesh.expect(self.ranks[source], tag, total, copying(data) if reduce is None else into(data, reduce))

    def wait(self, source: int, arrival: Arrival) -> Step:
        return self.mesh.wait(self.ranks[source], arrival)

    def turn(
        self, to: int, data: Tensor, source: int, place: Tensor, *, at: tuple[int, int], reduce: Reduce | None
    ) -> Step:
        """Send to one rank and receive from another at the same time; `at` is (sequence, part)."""
        arrival = self.expect(source, *at, place, reduce)
        yield from self.send(to, *at, data)
        yield from self.wait(source, arrival)

    def prefers_tree(self, size_bytes: int) -> bool:
        """Whether an all-reduce of so many bytes is quicker by a tree than by a ring."""
        half_s, bytes_s = self.round_trip_s / 2, size_bytes / self.bytes_per_s
        depth = (self.size - 1).bit_length()
        turns = 2 * (self.size - 1)
        return 2 * depth * (bytes_s + half_s) < turns * (bytes_s / self.size + half_s)


def as_bytes(data: Tensor) -> Tensor:
    return data.reshape(-1).view(torch.uint8)


def copying(data: Tensor) -> Sink:
    raw = as_bytes(data)

    def sink(offset: int, chunk: memoryview) -> None:
        raw[offset : offset + len(chunk)].copy_(torch.frombuffer(chunk, dtype=torch.uint8))

    return sink


def into(data: Tensor, reduce: Reduce) -> Sink:
    item = data.element_size()

    def sink(offset: int, chunk: memoryview) -> None:
        first, count = offset // item, len(chunk) // item
        reduce(data[first : first + count], torch.frombuffer(chunk, dtype=data.dtype))

    return sink


def pieces(data: Tensor, count: int) -> list[Tensor]:
    """The tensor in `count` pieces whose lengths differ by at most one."""
    ends = [data.numel() * number // count for number in range(count + 1)]
    return [data[first:last] for first, last in pairwise(ends)]


# --- one coroutine per collective ------------------------------------------------------------------------------------


def all_reduce(team: Team, sequence: int, data: Tensor, reduce: Reduce) -> Step:
    """In place."""
    if team.size == 1 or not data.numel():
        return
    if team.prefers_tree(data.numel() * data.element_size()):
        yield from tree_reduce(team, sequence, data, 0, reduce)
        yield from broadcast(team, sequence, data, 0)
    else:
        parts = pieces(data, team.size)
        yield from ring_reduce(team, sequence, parts, reduce)
        yield from ring_gather(team, sequence, parts, part=team.size)


def ring_reduce(team: Team, sequence: int, parts: Sequence[Tensor], reduce: Reduce) -> Step:
    """Afterwards rank r's piece r holds the whole sum, and the other pieces hold partial ones.

    The sum of piece r begins at rank r + 1 and goes around the ring in the order of ranks.
    """
    size, rank = team.size, team.rank
    for step in range(size - 1):
        out, come = (rank - 1 - step) % size, (rank - 2 - step) % size
        left, right = (rank - 1) % size, (rank + 1) % size
        yield from team.turn(right, parts[out], left, parts[come], at=(sequence, step), reduce=reduce)


def ring_gather(team: Team, sequence: int, parts: Sequence[Tensor], part: int = 0) -> Step:
    """Each rank r hands its piece r around; afterwards every rank has all."""
    size, rank = team.size, team.rank
    for step in range(size - 1):
        out, come = (rank - step) % size, (rank - 1 - step) % size
        left, right = (rank - 1) % size, (rank + 1) % size
        yield from team.turn(right, parts[out], left, parts[come], at=(sequence, part + step), reduce=None)


def tree_reduce(team: Team, sequence: int, data: Tensor, root: int, reduce: Reduce) -> Step:
    """The sum over all ranks ends up in the root's `data`; those of the others hold partial sums."""
    place = (team.rank - root) % team.size
    bit = 1
    while bit < team.size:
        if place & bit:
            yield from team.send((place - bit + root) % team.size, sequence, bit, data)
            return
        if place + bit < team.size:
            source = (place + bit + root) % team.size
            yield from team.wait(source, team.expect(source, sequence, bit, data, reduce))
        bit *= 2


def broadcast(team: Team, sequence: int, data: Tensor, root: int) -> Step:
    """By a binomial tree."""
    place = (team.rank - root) % team.size
    bit = 1 << (team.size - 1).bit_length()
    while bit:
        if place % (2 * bit) == bit:
            source = (place - bit + root) % team.size
            yield from team.wait(source, team.expect(source, sequence, _DOWN | bit, data))
        elif place % (2 * bit) == 0 and place + bit < team.size:
            yield from team.send((place + bit + root) % team.size, sequence, _DOWN | bit, data)
        bit //= 2


_DOWN = 1 << 31  # parts of a broadcast, which may follow a reduction under the same sequence number


def exchange(team: Team, sequence: int, outgoing: Sequence[Tensor], incoming: Sequence[Tensor]) -> Step:
    """Each rank sends piece i to rank i and receives piece i from rank i; pieces may be empty, on both sides alike."""
    size, rank = team.size, team.rank
    incoming[rank].copy_(outgoing[rank])
    arrivals = [(other, team.expect(other, sequence, 0, incoming[other])) for other in range(size) if other != rank]
    for step in range(1, size):
        other = (rank + step) % size
        yield from team.send(other, sequence, 0, outgoing[other])
    for other, arrival in arrivals:
        yield from team.wait(other, arrival)


def gather(team: Team, sequence: int, data: Tensor, places: Sequence[Tensor] | None, root: int) -> Step:
    """`places` are the root's, one per rank; None elsewhere."""
    if places is None:
        yield from team.send(root, sequence, 0, data)
        return
    arrivals = [(other, team.expect(other, sequence, 0, place)) for other, place in enumerate(places) if other != root]
    places[root].copy_(data)
    for other, arrival in arrivals:
        yield from team.wait(other, arrival)


def scatter(team: Team, sequence: int, place: Tensor, parts: Sequence[Tensor] | None, root: int) -> Step:
    """`parts` are the root's, one per rank; None elsewhere."""
    if parts is None:
        yield from team.wait(root, team.expect(root, sequence, 0, place))
        return
    for other, piece in enumerate(parts):
        if other != root:
            yield from team.send(other, sequence, 0, piece)
    place.copy_(parts[root])


def send(team: Team, to: int, sequence: int, tag: int, data: Tensor) -> Step:
    return team.send(to, _POINT | sequence, tag, data)


def receive(team: Team, source: int, sequence: int, tag: int, place: Tensor) -> Step:
    yield from team.wait(source, team.expect(source, _POINT | sequence, tag, place))


_POINT = 1 << 63  # sequence numbers of messages between two ranks, which collectives do not count


def barrier(team: Team, sequence: int) -> Step:
    """Nobody passes before all have come."""
    token = torch.zeros(1, dtype=torch.uint8)
    yield from tree_reduce(team, sequence, token, 0, lambda place, part: None)
    yield from broadcast(team, sequence, token, 0)
