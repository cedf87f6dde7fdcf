"""Connection matrices in the grammar of htsim's reader, the meaning of triggers, and lines that are refused."""

from itertools import chain, repeat

import pytest

from schedules import operation
from schedules.errors import ScheduleError
from schedules.matrix import SIGNAL_BYTES, MatrixReader
from schedules.schedule import Schedule


def read(*lines: str) -> Schedule:
    return MatrixReader("f.cm").read(lines)


def test_a_connection_is_a_send_and_a_receive_with_its_line():
    matrix = read("# one flow", "Nodes 16", "Connections 1", "", "0->13 id 1 start 0 size 2000000 prio 3")
    assert (matrix.ranks, matrix.messages, matrix.bytes) == (16, 1, 2_000_000)
    sender, receiver = matrix.part(0), matrix.part(13)
    assert (list(sender.kind), list(sender.peer), list(sender.line)) == ([operation.SEND], [13], [5])
    assert (list(receiver.kind), list(receiver.peer), list(receiver.amount)) == ([operation.RECV], [0], [2_000_000])
    assert not matrix.part(1).kind


def test_starts_are_picoseconds_and_may_be_decimal():
    matrix = read("Nodes 2", "Connections 2", "0->1 start 1500000 size 1", "1->0 start 2500000.0 size 1")
    waits = [matrix.part(rank).amount[list(matrix.part(rank).kind).index(operation.WAIT)] for rank in (0, 1)]
    assert waits == [1500, 2500]


def test_several_messages_of_one_flow_may_have_a_bare_msg():
    matrix = read("Nodes 2", "Connections 2", "0->1 id 1 msg start 0 size 10", "0->1 id 1 msg 4 start 0 size 20")
    assert list(matrix.part(1).message) == [0, 1]


def test_a_trigger_on_one_node_is_a_dependency_and_no_message():
    matrix = read(
        "Nodes 3", "Connections 2", "Triggers 1", "0->1 id 1 start 0 size 5 send_done_trigger 1",
        "0->2 id 2 trigger 1 size 6", "trigger id 1 oneshot",
    )  # fmt: skip
    part = matrix.part(0)
    assert list(part.need) == [0, 1]
    assert list(part.next[part.next_at[0] : part.next_at[1]]) == [1]
    assert int((matrix.kind == operation.SEND).sum()) == 2


def test_a_barrier_over_three_nodes_is_carried_by_messages():
    matrix = read(
        "Nodes 3", "Connections 4", "Triggers 1",
        "0->1 id 1 start 0 size 50 send_done_trigger 7",
        "1->2 id 2 start 0 size 50 recv_done_trigger 7",
        "0->2 id 3 trigger 7 size 60",
        "1->0 id 4 trigger 7 size 70",
        "trigger id 7 barrier count 2",
    )  # fmt: skip
    signals = matrix.line[(matrix.kind == operation.SEND) & (matrix.amount == SIGNAL_BYTES)]
    assert list(signals) == [0, 0]  # from node 2, which has the second connection whole, and to node 1
    assert matrix.messages == 4


def test_a_multishot_trigger_starts_one_connection_each_time():
    matrix = read(
        "Nodes 4", "Connections 4", "Triggers 1",
        "0->1 id 1 start 0 size 5 send_done_trigger 1",
        "0->2 id 2 start 0 size 5 send_done_trigger 1",
        "0->3 id 3 trigger 1 size 5",
        "0->1 id 4 trigger 1 size 5",
        "trigger id 1 multishot",
    )  # fmt: skip
    part = matrix.part(0)
    turn = list(part.kind).index(operation.TURN)
    assert part.need[turn] == 2
    assert list(part.next[part.next_at[turn] : part.next_at[turn + 1]]) == [2, 3]


HEAD = ["Nodes 4", "Connections 1"]
TRIGGERED = ["Nodes 4", "Connections 2", "Triggers 1", "0->1 id 1 start 0 size 5 send_done_trigger 1"]
BAD = [
    (["0->1 start 0 size 5"], 1, "'Nodes N' must come above the first connection"),
    ([], 0, "the file must have 'Nodes N'"),
    (["Nodes"], 1, "a header must be 'Nodes N'"),
    (["Nodes 4", "Nodes 5"], 2, "a header must come once, and Nodes comes again"),
    (["Nodes 4x"], 1, "Nodes must be a whole number from 1"),
    ([*HEAD, "0-1 start 0 size 5"], 3, "a line must be 'SRC->DST …'"),
    ([*HEAD, "0->x start 0 size 5"], 3, "a connection must begin with SRC->DST"),
    ([*HEAD, "0->4 start 0 size 5"], 3, "a node must be a whole number from 0 to 3 (got '4')"),
    ([*HEAD, "2->2 start 0 size 5"], 3, "a connection must have two ends"),
    ([*HEAD, "0->1 start 0"], 3, "a connection must have a size"),
    ([*HEAD, "0->1 start 0 size 0"], 3, "size 0 is a flow without end in htsim, and the lab has none"),
    ([*HEAD, "0->1 size 5"], 3, "a connection must have either start or trigger"),
    ([*HEAD, "0->1 start 0 trigger 1 size 5"], 3, "a connection must have either start or trigger"),
    ([*HEAD, "0->1 start -3 size 5"], 3, "start must be a number of picoseconds"),
    ([*HEAD, "0->1 id 0 start 0 size 5"], 3, "id must be a whole number from 1"),
    ([*HEAD, "0->1 begin 0 size 5"], 3, "an attribute of a connection must be one of id, start"),
    ([*HEAD, "0->1 start 0 size 5 size 6"], 3, "size is given twice"),
    ([*HEAD, "0->1 start 0 size"], 3, "size must have a value"),
    (["Nodes 4", "Connections 2", "0->1 start 0 size 5"], 3, "it says 2, and 1 follow"),
    ([*HEAD, "failure switch_type TOR switch_id 0 link_id 1"], 3, "add a fault by --fault"),
    ([*TRIGGERED, "0->2 id 2 trigger 1 size 5", "trigger id 1"], 6, "a trigger must have an id and one of oneshot"),
    ([*TRIGGERED, "0->2 id 2 trigger 1 size 5", "trigger id 1 barrier"], 6, "a barrier must have a count"),
    (
        [*TRIGGERED, "0->2 id 2 trigger 1 size 5", "trigger id 1 barrier count 2"],
        6,
        "a barrier of 2 must be set off by",
    ),
    ([*TRIGGERED, "0->2 id 2 trigger 2 size 5", "trigger id 1 oneshot"], 5, "trigger 2 must be declared by a line"),
    (["Nodes 4", *HEAD[1:], "Triggers 1", "0->1 id 1 trigger 1 size 5", "trigger id 1 oneshot"], 5, "set off by 0"),
]


@pytest.mark.parametrize(("lines", "line", "rule"), BAD)
def test_a_bad_line_is_refused_with_file_line_and_rule(lines, line, rule):
    with pytest.raises(ScheduleError) as refused:
        read(*lines)
    assert str(refused.value).startswith(f"f.cm:{line}: " if line else "f.cm: ")
    assert rule in str(refused.value)


def test_triggers_in_a_circle_are_refused():
    with pytest.raises(ScheduleError, match=r"f\.cm:4: an operation must not wait for itself: this send of rank 0"):
        read(
            "Nodes 2", "Connections 2", "Triggers 2", "0->1 id 1 trigger 1 size 5 send_done_trigger 2",
            "0->1 id 2 trigger 2 size 5 send_done_trigger 1", "trigger id 1 oneshot", "trigger id 2 oneshot",
        )  # fmt: skip


def test_lines_are_read_as_they_are_needed():
    endless = chain(["Nodes 4", "Connections 9", "0->1 start 0 size 1", "oops"], repeat("0->1 start 0 size 1"))
    with pytest.raises(ScheduleError, match=r"f\.cm:4: a line must be"):
        MatrixReader("f.cm").read(endless)
