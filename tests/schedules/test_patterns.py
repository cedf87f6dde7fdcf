"""Connection matrices that the lab writes are read again as they were meant."""

import pytest

from schedules import patterns
from schedules.errors import ScheduleError
from schedules.matrix import MatrixReader
from schedules.patterns import MatrixConnection, Pattern


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
