"""Files: endings, what is no text, matrices read again, and what a long one takes and gives, sorted in batches."""

import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from common.terminal import progress
from running import long_files
from running.long_files import watch
from schedules import edges, patterns, reading
from schedules.builder import numbered
from schedules.errors import ScheduleError
from schedules.goal import GoalReader
from schedules.lines import FILE_BYTES_MAX
from schedules.matrix import MatrixReader
from schedules.patterns import MatrixConnection, Pattern
from schedules.reading import digest_of, read, shared
from schedules.schedule import Schedule


def test_a_file_is_read_by_its_ending(tmp_path: Path):
    file = tmp_path / "a.cm"
    file.write_bytes(b"\xef\xbb\xbfNodes 2\r\nConnections 1\r\n0->1 start 0 size 5\r\n")
    assert read(file).messages == 1
    with pytest.raises(ScheduleError, match=r"must end in \.cm or \.goal"):
        read(tmp_path / "a.txt")


def test_what_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(ScheduleError, match=r"gone\.cm: no such file"):
        read(tmp_path / "gone.cm")
    (tmp_path / "b.goal").write_bytes(b"num_ranks 2\nrank 0 {\n\xff\xfe")
    with pytest.raises(ScheduleError, match=r"b\.goal:\d: the file must be UTF-8 text"):
        read(tmp_path / "b.goal")
    (tmp_path / "c.cm").write_text("Nodes 2\n" + "x" * 70_000)
    with pytest.raises(ScheduleError, match=r"c\.cm:2: a line must have fewer than 65536 characters"):
        read(tmp_path / "c.cm")


@pytest.mark.parametrize("name", ["long.cm", "long.goal"])
def test_a_file_above_the_limit_is_refused_unread(name: str, tmp_path: Path):
    with (tmp_path / name).open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    for reader in (read, digest_of):
        with pytest.raises(ScheduleError, match=rf"{name}: must have at most 8589934592 bytes \(got 8589934593\)$"):
            reader(tmp_path / name)


def test_a_long_file_is_told_of_before_it_is_read_or_refused(tmp_path: Path, monkeypatch, capsys):
    """By what `benchmarks.workload_files` measured at most: 2.5 bytes of memory and 0.3 µs per byte of the file."""
    file = tmp_path / "long.cm"
    file.write_text("Nodes 2\nConnections 1\n0->1 start 0 size 5\n")
    with file.open("ab") as end:
        end.write((b"#" * 60_000 + b"\n") * 540)
    monkeypatch.setattr(reading, "_watch", watch)
    monkeypatch.setattr(long_files, "available_memory", lambda: 10**9)
    monkeypatch.setattr(progress, "LINE_S", 0.0)
    read(file)
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "mrclab: long.cm (32 MB) takes about 0.1 GB of memory and 0 min to read"
    assert any(re.fullmatch(r"mrclab: 1\d of 30 MB of long.cm read, about \d+ s left", line) for line in lines)
    monkeypatch.setattr(long_files, "available_memory", lambda: 10**7)
    with pytest.raises(ScheduleError, match=r"long.cm: this file of 0.0 GB takes about 0.1 GB .*; 0.0 GB are to spare"):
        read(file)


def test_a_file_that_changes_during_a_run_is_refused(tmp_path: Path):
    file = tmp_path / "a.cm"
    file.write_text("Nodes 2\nConnections 1\n0->1 start 0 size 5\n")
    before = digest_of(file)
    assert shared(file, before) is shared(file, before)
    file.write_text("Nodes 2\nConnections 1\n0->1 start 0 size 6\n")
    shared.cache_clear()
    with pytest.raises(ScheduleError, match="must stay as it is during a run"):
        shared(file, before)


def test_a_long_file_takes_the_memory_of_columns_and_not_of_objects(tmp_path: Path):
    count = 10_000
    file = tmp_path / "long.cm"
    with file.open("w") as out:
        out.write(f"Nodes 1000\nConnections {count}\n")
        out.writelines(f"{n % 999}->{n % 999 + 1} id {n + 1} start 0 size {n + 1}\n" for n in range(count))
    tracemalloc.start()
    assert read(file).messages == count
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 2 * count * 80  # an operation as a Python object with seven fields takes more than 500


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


def test_a_permutation_has_every_node_once_at_either_end():
    drawn = patterns.permutation(Pattern(50, seed=3))
    assert {one.source for one in drawn} == {one.target for one in drawn} == set(range(50))
    assert all(one.source != one.target for one in drawn)
    assert drawn == patterns.permutation(Pattern(50, seed=3)) != patterns.permutation(Pattern(50, seed=4))


@pytest.mark.parametrize(("kind", "count"), [("permutation", 9), ("incast", 8), ("all_to_all", 72)])
def test_a_pattern_is_read_back(kind, count):
    connections = patterns.KINDS[kind](Pattern(9, size=1234))
    matrix = MatrixReader(f"{kind}.cm").read(patterns.lines(9, connections))
    assert (matrix.ranks, matrix.messages, matrix.bytes) == (9, count, count * 1234)
    assert len({(one.source, one.target) for one in connections}) == count


def test_connections_are_written_in_order_of_their_starts_in_picoseconds():
    text = list(patterns.lines(3, [MatrixConnection(0, 1, 2_500, 7), MatrixConnection(2, 0, 0, 9)]))
    assert text == ["Nodes 3", "Connections 2", "2->0 id 1 start 0 size 9", "0->1 id 2 start 2500000 size 7"]


def test_what_htsim_would_not_read_is_refused():
    with pytest.raises(ScheduleError, match="1 to 2147483647 bytes"):
        list(patterns.lines(2, [MatrixConnection(0, 1, 0, 1 << 31)]))
    with pytest.raises(ScheduleError, match="--ranks must be between 2 and 131072"):
        Pattern(1).check()
    with pytest.raises(ScheduleError, match="at most 16777216 connections"):
        patterns.all_to_all(Pattern(10_000))
