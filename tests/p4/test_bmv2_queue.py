"""Trimming, ECN and healing on a real `simple_switch_grpc`: the clock is the wall's and egress runs in its own threads.

Queues are paced so slowly (but for the overload) that a busy machine cannot change what must be seen; the exact figures
are the virtual-time tests' business. BMv2's receive ring holds some thirty frames: bursts wait until it has taken them.
"""

import re
import shutil
import time
from collections.abc import Callable, Iterator

import pytest

from tests.helpers.p4.bmv2 import Bmv2
from tests.helpers.p4.frames import dscp_of, frame
from tests.helpers.p4.node import DROP_REASONS, DSCP, TRIMMABLE, TRIMMED, Node, destination
from tests.helpers.p4.programs import COMPILERS, compiled

pytestmark = [
    pytest.mark.root,
    pytest.mark.bmv2,
    pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH"),
]

IN, OUT = 1, 2
SIZE, TRIM_SIZE = 1100, 128
PATIENCE_US = 500_000
TIMEOUT_S = 20
RECEIVE_BURST = 10
CLASSES = range(7)


@pytest.fixture(scope="module", params=COMPILERS)
def shared(request: pytest.FixtureRequest) -> Iterator[Bmv2]:
    artefacts = compiled("leaf", request.param)
    with Bmv2(artefacts.json, artefacts.p4info) as switch:
        yield switch


@pytest.fixture
def node(shared: Bmv2) -> Iterator[Node]:
    """A freshly loaded leaf with unlimited queue rates."""
    made = Node(shared, compiled("leaf").program)
    made.wire(IN, OUT)
    yield made
    shared.cli(f"set_queue_rate 0 {OUT}", f"set_queue_depth 64 {OUT}")
    shared.wires.collect(lambda _: False, 0.1)


def burst(node: Node, count: int, traffic_class: int = TRIMMABLE, ecn: int = 0) -> None:
    whole = frame(destination(OUT), dscp=DSCP[traffic_class], ecn=ecn, size=SIZE)
    taken = node.counter("received", IN, traffic_class)
    for sent in range(1, count + 1):
        node.engine.receive(IN, whole, 0)
        if sent % RECEIVE_BURST == 0 or sent == count:
            eventually(lambda sent=sent: node.counter("received", IN, traffic_class) == taken + sent)


def arrivals(node: Node, count: int) -> list[bytes]:
    """The next `count` frames out of OUT; a queue that loses some makes this fail."""
    found = node.engine.wires.collect(lambda got: len(got) >= count, TIMEOUT_S)
    assert [port for port, _ in found] == [OUT] * count
    return [sent for _, sent in found]


def account(node: Node) -> int:
    text = node.engine.cli(f"register_read queue_account {OUT * 8}")
    found = re.search(r"queue_account\[\d+\]= *(\d+)", text)
    assert found is not None
    return int(found[1]) & 0xFFFF


def eventually(condition: Callable[[], bool], pause_s: float = 0.02) -> None:
    until = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(pause_s)


def assert_idle_port_forwards_whole(node: Node) -> None:
    for _ in range(5):
        burst(node, 1)
        assert [dscp_of(sent) for sent in arrivals(node, 1)] == [DSCP[TRIMMABLE]]


def test_an_overloaded_queue_sends_the_rest_trimmed_and_loses_nothing(node: Node) -> None:
    """5,000 packets/s of 1,100 bytes into a queue of 2,000/s, never more of them ahead of BMv2 than its ring holds."""
    node.limit(OUT, TRIMMABLE, "trim_beyond", 30, PATIENCE_US)
    node.engine.cli(f"set_queue_depth 1000 {OUT}", f"set_queue_rate 2000 {OUT} 0")
    offered, per_s, ahead = 5000, 5000, 20
    whole_frame = frame(destination(OUT), dscp=DSCP[TRIMMABLE], size=SIZE)
    out: list[bytes] = []
    start = time.monotonic()
    for count in range(ahead, offered + 1, ahead):
        for _ in range(ahead):
            node.engine.receive(IN, whole_frame, 0)
        eventually(lambda count=count: node.counter("received", IN, TRIMMABLE) == count, pause_s=0)
        out += [s for _, s in node.engine.wires.drain()]
        time.sleep(max(0.0, start + count / per_s - time.monotonic()))
    elapsed_s = time.monotonic() - start
    if elapsed_s > 2:
        pytest.skip(f"the machine is too busy: BMv2 took {offered / elapsed_s:.0f} packets/s, which is no overload")
    out += arrivals(node, offered - len(out))
    whole = sum(dscp_of(s) == DSCP[TRIMMABLE] for s in out)
    trimmed = sum(dscp_of(s) == DSCP[TRIMMED] for s in out)
    print(f"{offered} in {elapsed_s:.2f} s: {whole} whole ({whole / elapsed_s:.0f}/s), {trimmed} trimmed")
    assert whole + trimmed == offered
    assert (
        0.7 * 2000 * elapsed_s < whole < 1.05 * 2000 * elapsed_s + 40
    )  # the queue's rate, and what it held at the end
    assert node.counter("trimmed", OUT, TRIMMABLE) == trimmed
    assert sum(node.counter("sent", OUT, c) for c in CLASSES) == offered
    assert all(node.counter(name, port, c) == 0 for name in DROP_REASONS for port in (IN, OUT) for c in CLASSES)
    eventually(lambda: account(node) == 0)
    assert_idle_port_forwards_whole(node)


def test_after_tail_drop_the_account_heals(node: Node) -> None:
    """The queue is shallower than the limit: the account counts packets that BMv2 drops without a word."""
    node.limit(OUT, TRIMMABLE, "trim_beyond", 20, PATIENCE_US)
    node.engine.cli(f"set_queue_rate 20 {OUT} 0", f"set_queue_depth 5 {OUT} 0")
    burst(node, 20)
    eventually(lambda: account(node) == 0)
    received = node.counter("received", IN, TRIMMABLE)
    sent = node.counter("sent", OUT, TRIMMABLE)
    assert received == 20
    assert 5 <= sent < 20
    node.engine.wires.collect(lambda got: len(got) >= sent, TIMEOUT_S)
    assert_idle_port_forwards_whole(node)


def test_an_account_that_nothing_settles_is_not_believed_for_long(node: Node) -> None:
    """No room for a single data packet: the account fills to its limit, nothing is dequeued, all else is trimmed."""
    node.limit(OUT, TRIMMABLE, "trim_beyond", 8, PATIENCE_US)
    node.engine.cli(f"set_queue_depth 0 {OUT} 0")
    burst(node, 20)
    assert {dscp_of(s) for s in arrivals(node, 12)} == {DSCP[TRIMMED]}
    assert account(node) == 8
    node.engine.cli(f"set_queue_depth 64 {OUT} 0")
    stale = time.monotonic() + PATIENCE_US / 1e6
    eventually(lambda: time.monotonic() > stale)
    assert account(node) == 8
    assert_idle_port_forwards_whole(node)


def test_after_the_link_was_down_an_idle_port_forwards_whole(node: Node) -> None:
    node.limit(OUT, TRIMMABLE, "trim_beyond", 8, PATIENCE_US)
    node.engine.cli(f"set_queue_rate 200 {OUT} 0")
    node.engine.namespace.run("ip", "link", "set", f"w{OUT}", "down")
    burst(node, 40)
    eventually(lambda: sum(node.counter("sent", OUT, c) for c in CLASSES) == 40)
    node.engine.namespace.run("ip", "link", "set", f"w{OUT}", "up")
    eventually(lambda: "state UP" in node.engine.namespace.run("ip", "link", "show", f"s{OUT}"))
    node.engine.wires.drain()
    assert_idle_port_forwards_whole(node)
