"""Schedules over a network in memory that delays and reorders whole messages: dependencies, triggers, processors."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from common.client import ControlError
from endpoint.group import WorkloadGroup
from tests.helpers.workload_fake import FakeClient, FakeNet


def run(text: str, ranks: int, suffix: str = ".goal", seed: int = 3, **options: Any) -> FakeNet:
    net = FakeNet(seed=seed, hosts=max(2, ranks))
    clients = {host: FakeClient(net, host) for host in net.hosts}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "job").with_suffix(suffix)
        file.write_text(text)
        group = WorkloadGroup(
            clients, name="w", kind="schedule", ranks=[f"h{rank}" for rank in range(ranks)],
            options={"file": str(file), **options},
        )  # fmt: skip
    group.start(at_ns=net.now_ns + 1_000_000)
    results = group.wait(timeout_s=5)
    assert {status["state"] for status in results.values()} == {"finished"}, results
    assert {status["result"]["bytes_wrong"] for status in results.values()} == {0}
    return net


def sent(net: FakeNet) -> dict[int, dict[str, Any]]:
    """By line of the file the journal's line of the message that was sent."""
    return {line["line"]: line for line in net.lines if line["kind"] == "message" and line["state"] == "sent"}


def received(net: FakeNet) -> dict[tuple[str, str, int], int]:
    lines = [line for line in net.lines if line["kind"] == "message" and line["state"] == "received"]
    return {(line["peer"], line["node"], line["message"]): line["end_ns"] for line in lines}


def began(net: FakeNet) -> int:
    return min(int(line["t_ns"]) for line in net.lines if line["kind"] == "workload" and line["state"] == "start")


RELAY = """num_ranks 3
rank 0 {
send 5000b to 1
}
rank 1 {
a: recv 5000b from 0
b: calc 7000000
c: send 300b to 2
b requires a
c requires b
}
rank 2 {
recv 300b from 1
}"""


@pytest.mark.parametrize("options", [{}, {"segment": 512, "depth": 2}, {"segment": 700, "depth": 3, "qps": 4}])
def test_a_message_waits_for_what_it_requires_however_it_is_cut_into_writes(options):
    net = run(RELAY, 3, **options)
    arrived_ns = received(net)["h0", "h1", 0]
    assert sent(net)[8]["start_ns"] == arrived_ns + 7_000_000
    assert sum(line["bytes"] for line in sent(net).values()) == 5300


def test_time_scale_stretches_calculations_and_starts():
    net = run(RELAY, 3, time_scale=10.0)
    assert sent(net)[8]["start_ns"] == received(net)["h0", "h1", 0] + 70_000_000
    late = "Nodes 2\nConnections 1\n0->1 start 2000000 size 10\n"
    net = run(late, 2, ".cm", time_scale=10.0)
    assert sent(net)[3]["start_ns"] == began(net) + 20_000


def test_calculations_share_a_processor_one_after_the_other_and_overlap_on_two():
    text = """num_ranks 2
rank 0 {
a: calc 1000 cpu 9
b: calc 2000 cpu 0
c: send 1b to 1 cpu 9
d: send 2b to 1
c requires a
d requires b
}
rank 1 {
recv 1b from 0
recv 2b from 0
}"""
    for processor, ready_ns in (("1", (1000, 2000)), ("0", (3000, 3000))):
        net = run(text.replace("cpu 9", f"cpu {processor}"), 2)
        # A send takes the processor too, so on one both wait behind both calculations.
        assert tuple(sent(net)[line]["start_ns"] - began(net) for line in (5, 6)) == ready_ns


def test_a_dependency_on_a_start_does_not_wait_for_the_end():
    text = "num_ranks 2\nrank 0 {\na: calc 5000 cpu 1\nb: send 1b to 1\nb irequires a\n}\nrank 1 {\nrecv 1b from 0\n}"
    net = run(text, 2)
    assert sent(net)[4]["start_ns"] == began(net)


def test_ranks_without_operations_end_at_once():
    net = run("Nodes 5\nConnections 1\n0->3 start 0 size 9\n", 5, ".cm")
    ends = [line for line in net.lines if line["kind"] == "workload" and line["state"] == "stop"]
    assert len(ends) == 5


def test_a_barrier_starts_connections_of_other_nodes_after_the_last_of_its_own():
    lines = [
        "Nodes 4", "Connections 5", "Triggers 1",
        "0->1 id 1 start 0 size 9000 send_done_trigger 1",
        "1->2 id 2 start 0 size 90 recv_done_trigger 1",
        "2->3 id 3 start 30000000000 size 9 send_done_trigger 1",
        "3->0 id 4 trigger 1 size 7",
        "1->3 id 5 trigger 1 size 7",
        "trigger id 1 barrier count 3",
    ]  # fmt: skip
    net = run("\n".join(lines), 4, ".cm", segment=1000)
    fired_ns = max(sent(net)[4]["end_ns"], received(net)["h1", "h2", 0], sent(net)[6]["end_ns"])
    assert all(sent(net)[line]["start_ns"] > fired_ns for line in (7, 8))
    assert sent(net)[6]["start_ns"] == began(net) + 30_000_000
    assert set(sent(net)) == {4, 5, 6, 7, 8}  # messages that carry the trigger are not journalled


def test_a_multishot_trigger_keeps_two_connections_under_way():
    targets = [1, 2, 3, 1, 2, 3]
    lines = ["Nodes 4", f"Connections {len(targets)}", "Triggers 1"]
    for number, target in enumerate(targets):
        how = "start 0" if number < 2 else "trigger 1"
        lines.append(f"0->{target} id {number + 1} {how} size 2000 send_done_trigger 1")
    net = run("\n".join([*lines, "trigger id 1 multishot"]), 4, ".cm")
    own = sent(net)
    starts = [own[line]["start_ns"] for line in range(4, 10)]
    ends = sorted(line["end_ns"] for line in own.values())
    assert starts == sorted(starts)
    assert starts[2:] == ends[:4]


@st.composite
def programs(draw: Any) -> tuple[int, str, dict[int, list[int]], int]:
    """Ranks, a GOAL program without circles, per line of an operation the lines that it requires, and messages."""
    ranks = draw(st.integers(2, 4))
    blocks: list[list[tuple[str, list[int]]]] = [[] for _ in range(ranks)]
    messages = 0
    for _ in range(draw(st.integers(1, 25))):
        rank = draw(st.integers(0, ranks - 1))
        earlier = draw(st.lists(st.integers(0, max(0, len(blocks[rank]) - 1)), max_size=3, unique=True))
        needs = [number for number in earlier if number < len(blocks[rank])]
        if draw(st.booleans()):
            peer = draw(st.sampled_from([other for other in range(ranks) if other != rank]))
            size, tag = draw(st.integers(0, 3000)), draw(st.integers(0, 2))
            blocks[rank].append((f"send {size}b to {peer} tag {tag}", needs))
            blocks[peer].append((f"recv {size}b from {rank} tag {tag}", []))
            messages += 1
        else:
            blocks[rank].append((f"calc {draw(st.integers(0, 10**6))} cpu {draw(st.integers(0, 1))}", needs))
    lines = [f"num_ranks {ranks}"]
    required: dict[int, list[int]] = {}
    for rank, block in enumerate(blocks):
        lines.append(f"rank {rank} {{")
        first = len(lines) + 1
        lines += [f"l{number}: {text}" for number, (text, _) in enumerate(block)]
        for number, (_, needs) in enumerate(block):
            required[first + number] = [first + need for need in needs]
            lines += [f"l{number} requires l{need}" for need in needs]
        lines.append("}")
    return ranks, "\n".join(lines), required, messages


@settings(max_examples=40, deadline=None)
@given(programs(), st.integers(1, 3), st.integers(1, 4), st.sampled_from([64, 1000, 65_536]))
def test_every_program_without_circles_ends_with_every_message_verified_and_in_order(program, qps, depth, segment):
    ranks, text, required, messages = program
    net = run(text, ranks, qps=qps, depth=depth, segment=segment)
    own = sent(net)
    assert len(own) == len(received(net)) == messages
    for line, needs in required.items():
        if line in own:
            assert all(own[need]["end_ns"] <= own[line]["start_ns"] for need in needs if need in own)


BAD = [
    ({"file": "job.goal"}, "file must be an absolute path"),
    ({"file": "/nowhere/job.goal"}, "/nowhere/job.goal: no such file"),
    ({"depth": 0}, "depth is 0; it must be from 1 to 128"),
    ({"segment": 0}, "segment is 0; it must be from 1"),
]


@pytest.mark.parametrize(("options", "complaint"), BAD)
def test_options_that_cannot_be_are_refused(options, complaint):
    with pytest.raises(ControlError, match=complaint):
        run(RELAY, 3, **options)


def test_a_schedule_for_more_ranks_than_hosts_is_refused():
    with pytest.raises(ControlError, match=r"job\.goal has 3 ranks and was given 2 hosts"):
        run(RELAY, 2)
