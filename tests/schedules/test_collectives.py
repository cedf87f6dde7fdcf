"""Collectives written as GOAL: their messages by the textbook's counts, their order, and what is refused."""

from itertools import islice

import pytest

from schedules import collectives, operation
from schedules.collectives import CollectiveSchedule
from schedules.errors import ScheduleError
from schedules.goal import GoalReader
from schedules.schedule import Schedule


def written(kind: str, **given: int) -> Schedule:
    what = CollectiveSchedule(**given)
    what.check(kind)
    return GoalReader(f"{kind}.goal").read(collectives.KINDS[kind](what))


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_each_rank_sends_what_the_algorithm_says(ranks):
    """Of n bytes a ring all-reduce sends 2 (n - 1) / n, an all-gather and an all-to-all (n - 1) / n."""
    size = 4 * ranks * 1000
    for kind, shares in (("all_reduce", 2 * (ranks - 1)), ("all_gather", ranks - 1), ("all_to_all", ranks - 1)):
        schedule = written(kind, ranks=ranks, size=size, segment=1024, rounds=3)
        assert schedule.most_bytes() == 3 * shares * size // ranks
        assert schedule.bytes == ranks * 3 * shares * size // ranks


def test_a_share_is_cut_into_segments_of_whole_numbers():
    assert list(CollectiveSchedule(ranks=3, size=1000, segment=256).pieces()) == [256, 80]  # 84 numbers of 4 bytes
    assert list(CollectiveSchedule(ranks=4, size=4096, segment=4096).pieces()) == [1024]
    for size in (4, 8, 12, 400, 404):
        what = CollectiveSchedule(ranks=1, size=size, segment=8)
        assert what.cuts == len(list(what.pieces()))


@pytest.mark.parametrize("kind", list(collectives.KINDS))
def test_a_program_is_written_as_it_is_made(kind):
    """A list of all messages of this one would take more memory than a machine has."""
    lines = list(islice(collectives.KINDS[kind](CollectiveSchedule(ranks=2, size=1 << 50, segment=4)), 5))
    assert lines[:3] == ["num_ranks 2", "", "rank 0 {"]
    assert "send 4b" in lines[3] or "recv 4b" in lines[3]


@pytest.mark.parametrize("kind", list(collectives.KINDS))
@pytest.mark.parametrize("compute_ns", [0, 5])
def test_operations_are_counted_for_every_kind(kind, compute_ns):
    what = CollectiveSchedule(ranks=3, size=1000, segment=256, rounds=2, compute_ns=compute_ns)
    assert what.operations(kind) == len(
        written(kind, ranks=3, size=1000, segment=256, rounds=2, compute_ns=compute_ns).kind
    )


@pytest.mark.parametrize("kind", list(collectives.KINDS))
def test_a_program_that_would_never_be_written_to_its_end_is_refused(kind):
    with pytest.raises(ScheduleError, match="the program must have at most 100000000 operations"):
        CollectiveSchedule(ranks=2, size=1 << 32, segment=4).check(kind)
    CollectiveSchedule(ranks=4096).check(kind)


def test_a_ring_takes_as_many_steps_as_it_has():
    """The longest chain of an all-reduce: 2 (n - 1) messages, one after the other, and the last acknowledgement."""
    ring = written("all_reduce", ranks=5, size=5 * 62_500, segment=65_536)
    message_ns = 5_000 + 62_500 * 8 // 100
    assert ring.chain_ns == 8 * message_ns + 5_000


def test_rounds_wait_for_each_other_and_for_calculations():
    one = written("all_to_all", ranks=3, size=12, rounds=1, compute_ns=7_000)
    three = written("all_to_all", ranks=3, size=12, rounds=3, compute_ns=7_000)
    assert one.chain_ns > 7_000
    assert three.chain_ns == 3 * one.chain_ns
    part = three.part(0)
    assert [part.amount[number] for number in range(len(part.kind)) if part.kind[number] == operation.CALC] == [
        7_000, 0, 7_000, 0, 7_000,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"ranks": 1}, "--ranks must be between 2 and 4096"),
        ({"ranks": 8, "size": 16}, "--size must be between 32"),
        ({"ranks": 8, "segment": 6}, "--segment must be a multiple of 4 bytes"),
        ({"ranks": 8, "rounds": 0}, "--rounds must be between 1"),
        ({"ranks": 8, "compute_ns": -1}, "--compute must be between 0"),
    ],
)
def test_impossible_collectives_are_refused(given, complaint):
    with pytest.raises(ScheduleError, match=complaint):
        CollectiveSchedule(**given).check()
