"""GOAL programs in the grammar of LogGOPSim's reader, and lines that are refused."""

from itertools import chain, repeat

import pytest

from schedules import operation
from schedules.errors import ScheduleError
from schedules.goal import GoalReader
from schedules.schedule import Schedule

# The broadcast tree over four ranks that LogGOPSim's manual draws, with comments and every attribute.
TREE = """
// a binomial tree
num_ranks 4

rank 0 {
l1: send 1b to 1 tag 0 cpu 0 nic 0
l2: send 1b to 2 tag 0 /* to the
other half */
}
rank 1 {
l1: recv 1b from 0 tag 0
l2: send 1b to 3 tag 0
l2 requires l1
}
rank 2 {
recv 1b from 0
}
rank 3 {
got: recv 1b from 1
work: calc 250 cpu 1
after: calc 50 cpu 1
work irequires got
after requires work
}
"""


def read(text: str) -> Schedule:
    return GoalReader("f.goal").read(text.splitlines())


def test_a_program_becomes_operations_with_their_lines():
    tree = read(TREE)
    assert (tree.ranks, tree.messages, tree.bytes, tree.most_bytes()) == (4, 3, 3, 2)
    part = tree.part(3)
    assert list(part.kind) == [operation.RECV, operation.CALC, operation.CALC]
    assert list(part.amount) == [1, 250, 50]
    assert list(part.processor) == [0, 1, 1]
    assert list(part.need) == [0, 1, 1]
    assert list(part.next[part.next_at[1] : part.next_at[2]]) == [2]
    assert list(part.start[part.start_at[0] : part.start_at[1]]) == [1]
    assert part.line[0] == TREE.splitlines().index("got: recv 1b from 1") + 1


def test_messages_match_by_tag_in_order_in_any_order_of_blocks():
    text = """num_ranks 2
rank 1 {
a: recv 3b from 0 tag 7
b: recv 1b from 0
c: recv 2b from 0
}
rank 0 {
x: send 1b to 1
y: send 2b to 1
z: send 3b to 1 tag 7
}"""
    schedule = read(text)
    assert list(schedule.part(0).message) == [0, 1, 2]
    assert list(schedule.part(1).message) == [2, 0, 1]


def test_tags_of_eleven_digits_are_told_apart_in_all_of_their_bits():
    """As ATLAHS's generator writes them: processor, message and communicator, each with leading zeros."""
    first, second = "05000300001", f"{5_000_300_001 - (1 << 32):011}"  # equal in 32 bits
    text = f"""num_ranks 2
rank 0 {{
send 1b to 1 tag {first} cpu 5 nic 0
send 2b to 1 tag {second} cpu 5 nic 0
}}
rank 1 {{
recv 2b from 0 tag {second} cpu 5 nic 0
recv 1b from 0 tag {first} cpu 5 nic 0
}}"""
    assert list(read(text).part(1).message) == [1, 0]


def test_a_size_may_need_more_than_32_bits_after_others_that_do_not():
    text = "num_ranks 2\nrank 0 {\nsend 7b to 1\nsend 5000000000b to 1\n}\n"
    schedule = read(text + "rank 1 {\nrecv 7b from 0\nrecv 5000000000b from 0\n}")
    assert list(schedule.part(0).amount) == [7, 5_000_000_000]
    assert schedule.bytes == schedule.most_bytes() == 5_000_000_007


def test_the_longest_chain_counts_each_message_with_its_bytes_and_delay():
    # 1,000,000 bytes at 100 Gb/s are 80 µs, each message 5 µs; the calculation follows both.
    text = """num_ranks 3
rank 0 {
send 1000000b to 1
}
rank 1 {
a: recv 1000000b from 0
b: send 1000000b to 2
b requires a
}
rank 2 {
a: recv 1000000b from 1
c: calc 30000
c requires a
}"""
    assert read(text).chain_ns == 85_000 + 85_000 + 30_000


BAD = [
    ("ranks 2", 1, "the file must begin with 'num_ranks N'"),
    ("", 0, "the file must begin with 'num_ranks N', and is empty"),
    ("num_ranks 0", 1, "num_ranks must be a whole number from 1"),
    ("num_ranks 2\nsend 1b to 0", 2, "a rank must begin with 'rank N {'"),
    ("num_ranks 2\nrank 2 {\n}", 2, "the rank must be a whole number from 0 to 1 (got '2')"),
    ("num_ranks 2\nrank 0 {\n}\nrank 0 {\n}", 4, "each rank must have one block"),
    ("num_ranks 2\nrank 0 {\nsend 1 to 1\n}", 3, "an operation must be '[LABEL:] calc NS"),
    ("num_ranks 2\nrank 0 {\nsend 1b to 2\n}", 3, "the rank must be a whole number from 0 to 1 (got '2')"),
    ("num_ranks 2\nrank 0 {\nsend 1b to 0\n}", 3, "a rank must send to another one"),
    ("num_ranks 2\nrank 0 {\nsend 1b from 1\n}", 3, "send goes 'to' a rank"),
    ("num_ranks 2\nrank 0 {\nrecv 1b from -1\n}", 3, "a recv must name its rank and tag"),
    ("num_ranks 2\nrank 0 {\ncalc -5\n}", 3, "calc must be a whole number from 0"),
    ("num_ranks 2\nrank 0 {\ncalc 5 cpu 256\n}", 3, "cpu must be a whole number from 0 to 255"),
    ("num_ranks 2\nrank 0 {\nsend 99999999999999b to 1\n}", 3, "send must be a whole number from 0 to"),
    ("num_ranks 2\nrank 0 {\na: calc 1\na: calc 2\n}", 4, "a label must be defined once in a rank"),
    ("num_ranks 2\nrank 0 {\na requires b\n}", 3, "a label must be defined above its use in its rank, and a is not"),
    ("num_ranks 2\nrank 0 {\na: calc 1", 2, "rank 0 must end with '}'"),
    ("num_ranks 2\nrank 0 {\nsend 1b to 1\n}", 3, "the send from rank 0 to rank 1 with tag 0 must have a recv there"),
    ("num_ranks 2\nrank 1 {\nrecv 1b from 0 tag 4\n}", 3, "the recv of rank 1 from rank 0 with tag 4 must have a send"),
    (
        "num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\nrecv 2b from 0\n}",
        6,
        "a recv must have the size of its send: it has 2 bytes, and the send in line 3 has 1",
    ),
    ("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}", 3, "must not wait for itself"),
    (
        "num_ranks 2\nrank 0 {\na: recv 1b from 1\nb: send 1b to 1\nb requires a\n}\n"
        "rank 1 {\na: recv 1b from 0\nb: send 1b to 0\nb requires a\n}",
        3,
        "an operation must not wait for itself: this recv of rank 0 is one of 4 that can never start",
    ),
]


@pytest.mark.parametrize(("text", "line", "rule"), BAD)
def test_a_bad_line_is_refused_with_file_line_and_rule(text, line, rule):
    with pytest.raises(ScheduleError) as refused:
        read(text)
    assert str(refused.value).startswith(f"f.goal:{line}: " if line else "f.goal: ")
    assert rule in str(refused.value)


def test_lines_are_read_as_they_are_needed():
    """A file without end whose fourth line is wrong: a reader that took the whole file first would not return."""
    endless = chain(["num_ranks 2", "rank 0 {", "calc 1", "oops"], repeat("calc 1"))
    with pytest.raises(ScheduleError, match=r"f\.goal:4: an operation must be"):
        GoalReader("f.goal").read(endless)


@pytest.mark.parametrize("count", [8, 9])
def test_a_chain_that_a_clock_cannot_count_is_refused(count):
    """Each calculation is as long as one may be; eight of them take 2^63 ns."""
    calculations = [f"c{number}: calc {1 << 60}" for number in range(count)]
    after = [f"c{number} requires c{number - 1}" for number in range(1, count)]
    rank_0, rank_1 = ["rank 0 {", "send 1b to 1", *calculations, *after, "}"], ["rank 1 {", "recv 1b from 0", "}"]
    with pytest.raises(ScheduleError, match=r"^f\.goal: operations that wait for each other must take at most 9223372"):
        read("\n".join(["num_ranks 2", *rank_0, *rank_1]))
