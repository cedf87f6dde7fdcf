"""Batches of columns: a file that is sorted in many batches gives the same schedule as in one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedules import edges
from schedules.builder import numbered
from schedules.errors import ScheduleError
from schedules.goal import GoalReader
from schedules.schedule import Schedule

RANKS = 4
MESSAGES = st.lists(
    st.tuples(st.integers(0, RANKS - 1), st.integers(1, RANKS - 1), st.integers(0, 2)), min_size=1, max_size=30
)


def program(messages: list[tuple[int, int, int]], receives: list[int]) -> list[str]:
    """A program whose receives stand in this order; every operation but the first of a rank requires the one above."""
    operations: list[list[str]] = [[] for _ in range(RANKS)]
    for source, distance, tag in messages:
        operations[source].append(f"send {tag + 1}b to {(source + distance) % RANKS} tag {tag}")
    for number in receives:
        source, distance, tag = messages[number]
        operations[(source + distance) % RANKS].append(f"recv {tag + 1}b from {source} tag {tag}")
    lines = [f"num_ranks {RANKS}"]
    for rank, own in enumerate(operations):
        lines.append(f"rank {rank} {{")
        for place, text in enumerate(own):
            lines.append(f"o{place}: {text}")
            if place and text.startswith("send"):
                lines.append(f"o{place} requires o{place - 1}")
        lines.append("}")
    return lines


def columns(schedule: Schedule) -> list[list[int]]:
    every = (schedule.kind, schedule.rank, schedule.peer, schedule.amount, schedule.line, schedule.need)
    return [list(column) for column in (*every, schedule.message, *schedule.successors, *schedule.starts)]


@given(MESSAGES, st.randoms(use_true_random=False), st.integers(1, 5))
def test_batches_change_nothing(messages, random, batch):
    receives = list(range(len(messages)))
    random.shuffle(receives)
    lines = program(messages, receives)
    whole = GoalReader("f.goal").read(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges, "BATCH", batch)
        parts = GoalReader("f.goal").read(lines)
        assert columns(parts) == columns(whole)
        assert [list(column) for column in parts.part(1)] == [list(column) for column in whole.part(1)]
        with pytest.raises(ScheduleError, match="must have a recv there, and has none"):
            GoalReader("f.goal").read(program(messages, receives[1:]))


@given(st.lists(st.integers(0, 6)), st.integers(1, 9))
def test_batches_hold_all_groups_once_and_few_entries(sizes, batch):
    start = np.concatenate(([0], np.cumsum(sizes))).astype(np.uint32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges, "BATCH", batch)
        found = list(edges.batches(start))
    assert [group for low, high in found for group in range(low, high)] == list(range(len(sizes)))
    assert all(sum(sizes[low:high]) <= batch or high == low + 1 for low, high in found)


@given(st.lists(st.integers(0, 3)))
def test_entries_with_one_key_are_numbered_in_their_order(keys):
    assert list(numbered(np.array(keys, dtype=np.int64))) == [keys[:place].count(key) for place, key in enumerate(keys)]
