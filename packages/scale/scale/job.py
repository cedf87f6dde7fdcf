"""A job: the messages of each step, the same in every group of NICs.

Steps follow each other without a barrier: a rank goes on when it has received what it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

RING, ALL_TO_ALL, ALL_REDUCE = "ring", "all-to-all", "all-reduce"
KINDS = {
    RING: "each NIC sends to the next one of the whole job, --rounds times a step",
    ALL_TO_ALL: "in groups, each NIC sends to every other of its group",
    ALL_REDUCE: "in groups, a ring: each NIC sends a share of --bytes to the next one, 2 (group − 1) times a step",
}
STEPS_MAX, ROUNDS_MAX, GROUP_MAX = 1000, 1000, 1024
BYTES_MAX = 1 << 30


class ScaleError(ValueError):
    """A job that cannot be carried: the message names the thing, the rule and the choices."""


@dataclass(frozen=True, slots=True)
class Job:
    """`size_bytes` is a message's, and in an all-reduce a rank's buffer. `group` is 0 for the ring of all ranks."""

    kind: str
    size_bytes: int
    steps: int = 4
    group: int = 0
    rounds: int = 8

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ScaleError(f"the job must be one of {', '.join(KINDS)} (got {self.kind!r})")
        limits = {"bytes": (self.size_bytes, 1, BYTES_MAX), "steps": (self.steps, 1, STEPS_MAX)}
        if self.kind == RING:
            limits["rounds"] = self.rounds, 1, ROUNDS_MAX
        else:
            limits["group"] = self.group, 2, GROUP_MAX
        for name, (value, least, most) in limits.items():
            if not least <= value <= most:
                raise ScaleError(f"--{name} must be between {least} and {most} (got {value})")

    @property
    def rounds_per_step(self) -> int:
        """Messages that follow each other in a step, each after the receipt of the one before."""
        return {RING: self.rounds, ALL_TO_ALL: 1, ALL_REDUCE: 2 * (self.group - 1)}[self.kind]

    @property
    def message_bytes(self) -> int:
        """The bytes of one message."""
        return -(-self.size_bytes // self.group) if self.kind == ALL_REDUCE else self.size_bytes

    def peers(self, group: Sequence[int], place: int) -> list[tuple[int, int]]:
        """(to whom, from whom) of each message that the rank at a place of its group has in a round."""
        size = len(group)
        distances = range(1, size) if self.kind == ALL_TO_ALL else (1,)
        return [(group[(place + far) % size], group[(place - far) % size]) for far in distances]

    def goal(self, groups: Sequence[Sequence[int]]) -> Iterator[str]:
        """The lines of the GOAL program in which each of these groups runs the job; ranks are numbered from 0."""
        yield f"num_ranks {sum(map(len, groups))}"
        places = {rank: (group, place) for group in groups for place, rank in enumerate(group)}
        rounds, size = self.steps * self.rounds_per_step, self.message_bytes
        for rank in range(len(places)):
            yield f"rank {rank} {{"
            peers = self.peers(*places[rank])
            for number in range(rounds):
                for far, (target, source) in enumerate(peers):
                    yield f"s{number}x{far}: send {size}b to {target} tag {number}"
                    yield f"r{number}x{far}: recv {size}b from {source} tag {number}"
                    if number:
                        yield from (f"s{number}x{far} requires r{number - 1}x{other}" for other in range(len(peers)))
            yield "}"
