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

    def send(self, to: int, sequence: int, part: int, data: Tensor, after: Arrival | None = None) -> Step:
        """Send a flat tensor to a rank of the team; with `after`, parts that have arrived of that go on at once."""
        raw = as_bytes(data)

        def fill(offset: int, place: memoryview) -> None:
            torch.frombuffer(place, dtype=torch.uint8).copy_(raw[offset : offset + len(place)])

        return self.mesh.send(self.ranks[to], Tag(self.number, sequence, part), len(raw), fill, after)

    def expect(self, source: int, sequence: int, part: int, data: Tensor, reduce: Reduce | None = None) -> Arrival:
        """A flat tensor from a rank of the team, copied into `data` or combined with it."""
        tag = Tag(self.number, sequence, part)
        total = data.numel() * data.element_size()
        return self.mesh.expect(self.ranks[source], tag, total, copying(data) if reduce is None else into(data, reduce))

    def wait(self, arrival: Arrival) -> Step:
        return self.mesh.wait(arrival)

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
        steps = team.size - 1
        yield from ring(
            team, sequence, pieces(data, team.size), first=team.rank - 1, sums=steps, copies=steps, reduce=reduce
        )


def ring_reduce(team: Team, sequence: int, parts: Sequence[Tensor], reduce: Reduce) -> Step:
    """Afterwards rank r's piece r holds the whole sum, and the other pieces hold partial ones.

    The sum of piece r begins at rank r + 1 and goes around the ring in the order of ranks.
    """
    return ring(team, sequence, parts, first=team.rank - 1, sums=team.size - 1, copies=0, reduce=reduce)


def ring_gather(team: Team, sequence: int, parts: Sequence[Tensor]) -> Step:
    """Each rank r hands its piece r around; afterwards every rank has all."""
    return ring(team, sequence, parts, first=team.rank, sums=0, copies=team.size - 1)


def ring(
    team: Team,
    sequence: int,
    parts: Sequence[Tensor],
    *,
    first: int,
    sums: int,
    copies: int,
    reduce: Reduce | None = None,
) -> Step:
    """Each step sends one piece to the right and receives the one before it from the left: `first` is sent first.

    Pieces that arrive are added in the first `sums` steps, and copied in the `copies` after them. A piece goes on in
    the next step, chunk by chunk as it arrives. No copy comes before what it replaces was sent: a sum is only whole
    once it has been at every rank.
    """
    size = team.size
    left, right = (team.rank - 1) % size, (team.rank + 1) % size
    arrivals = [
        team.expect(left, sequence, step, parts[(first - 1 - step) % size], reduce if step < sums else None)
        for step in range(sums + copies)
    ]
    for step in range(sums + copies):
        after = arrivals[step - 1] if step else None
        yield from team.send(right, sequence, step, parts[(first - step) % size], after)
    for arrival in arrivals:
        yield from team.wait(arrival)


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
            yield from team.wait(team.expect(source, sequence, bit, data, reduce))
        bit *= 2


def broadcast(team: Team, sequence: int, data: Tensor, root: int) -> Step:
    """By a binomial tree."""
    place = (team.rank - root) % team.size
    bit = 1 << (team.size - 1).bit_length()
    arrival: Arrival | None = None
    while bit:
        if place % (2 * bit) == bit:
            source = (place - bit + root) % team.size
            arrival = team.expect(source, sequence, _DOWN | bit, data)
        elif place % (2 * bit) == 0 and place + bit < team.size:
            yield from team.send((place + bit + root) % team.size, sequence, _DOWN | bit, data, arrival)
        bit //= 2
    if arrival is not None:
        yield from team.wait(arrival)


_DOWN = 1 << 31  # parts of a broadcast, which may follow a reduction under the same sequence number


def exchange(team: Team, sequence: int, outgoing: Sequence[Tensor], incoming: Sequence[Tensor]) -> Step:
    """Each rank sends piece i to rank i and receives piece i from rank i; pieces may be empty, on both sides alike."""
    size, rank = team.size, team.rank
    incoming[rank].copy_(outgoing[rank])
    arrivals = [team.expect(other, sequence, 0, incoming[other]) for other in range(size) if other != rank]
    for step in range(1, size):
        other = (rank + step) % size
        yield from team.send(other, sequence, 0, outgoing[other])
    for arrival in arrivals:
        yield from team.wait(arrival)


def gather(team: Team, sequence: int, data: Tensor, places: Sequence[Tensor] | None, root: int) -> Step:
    """`places` are the root's, one per rank; None elsewhere."""
    if places is None:
        yield from team.send(root, sequence, 0, data)
        return
    arrivals = [team.expect(other, sequence, 0, place) for other, place in enumerate(places) if other != root]
    places[root].copy_(data)
    for arrival in arrivals:
        yield from team.wait(arrival)


def scatter(team: Team, sequence: int, place: Tensor, parts: Sequence[Tensor] | None, root: int) -> Step:
    """`parts` are the root's, one per rank; None elsewhere."""
    if parts is None:
        yield from team.wait(team.expect(root, sequence, 0, place))
        return
    for other, piece in enumerate(parts):
        if other != root:
            yield from team.send(other, sequence, 0, piece)
    place.copy_(parts[root])


def send(team: Team, to: int, sequence: int, tag: int, data: Tensor) -> Step:
    return team.send(to, _POINT | sequence, tag, data)


def receive(team: Team, source: int, sequence: int, tag: int, place: Tensor) -> Step:
    yield from team.wait(team.expect(source, _POINT | sequence, tag, place))


_POINT = 1 << 63  # sequence numbers of messages between two ranks, which collectives do not count


def barrier(team: Team, sequence: int) -> Step:
    """Nobody passes before all have come."""
    token = torch.zeros(1, dtype=torch.uint8)
    yield from tree_reduce(team, sequence, token, 0, lambda place, part: None)
    yield from broadcast(team, sequence, token, 0)
