"""Trimming and healing on `python -m switch serve` in real time: real links, faults through the control socket."""

import time
from collections.abc import Iterator

import pytest

from tests.helpers.p4.embedded import Embedded
from tests.helpers.p4.frames import dscp_of, frame
from tests.helpers.p4.node import DSCP, TRIMMABLE, TRIMMED, Node, destination
from tests.helpers.p4.programs import compiled
from tests.helpers.waiting import eventually

pytestmark = pytest.mark.root

IN, OUT = 1, 2
SIZE = 1100
RATE_BPS = 8 * SIZE * 100  # a hundred packets a second
LIMIT = 10
PATIENCE_US = 300_000
TIMEOUT_S = 20


@pytest.fixture(scope="module")
def switch() -> Iterator[Embedded]:
    artefacts = compiled("leaf")
    with Embedded(artefacts.json, artefacts.p4info) as running:
        yield running


@pytest.fixture
def node(switch: Embedded) -> Iterator[Node]:
    """A freshly loaded leaf whose port OUT is slow."""
    yield configured(switch)
    switch.control("port.set", port=OUT, up=True, rate_bps=0)


def configured(switch: Embedded) -> Node:
    made = Node(switch, compiled("leaf").program)
    made.wire(IN, OUT)
    made.limit(OUT, TRIMMABLE, "trim_beyond", LIMIT, PATIENCE_US)
    switch.control("port.set", port=OUT, rate_bps=RATE_BPS)
    return made


def burst(node: Node, count: int) -> None:
    for _ in range(count):
        node.engine.receive(IN, frame(destination(OUT), dscp=DSCP[TRIMMABLE], size=SIZE), 0)


def arrivals(node: Node, count: int) -> list[int]:
    found = node.engine.wires.collect(lambda got: len(got) >= count, TIMEOUT_S)
    assert len(found) == count
    return [dscp_of(sent) for _, sent in found]


def port_counters(node: Node, port: int = OUT) -> dict[str, int]:
    return dict(node.engine.control("counters")[str(port)])


def assert_idle_port_forwards_whole(node: Node) -> None:
    """After the patience of an account that nothing settles."""
    time.sleep(PATIENCE_US / 1e6)
    node.engine.wires.drain()
    for _ in range(3):
        burst(node, 1)
        assert arrivals(node, 1) == [DSCP[TRIMMABLE]]


def test_a_burst_beyond_the_limit_is_trimmed(node: Node) -> None:
    before, began = port_counters(node, IN)["rx_packets"], time.monotonic()
    burst(node, 60)
    eventually(lambda: port_counters(node, IN)["rx_packets"] == before + 60, "no such counters")
    left = RATE_BPS / (8 * SIZE) * (time.monotonic() - began)  # while the burst came in, which noise makes longer
    sent = arrivals(node, 60)
    assert sent.count(DSCP[TRIMMABLE]) + sent.count(DSCP[TRIMMED]) == 60
    assert LIMIT + 1 <= sent.count(DSCP[TRIMMABLE]) <= LIMIT + 2 + left
    assert_idle_port_forwards_whole(node)


def test_after_the_port_was_down_it_forwards_whole(node: Node) -> None:
    node.engine.control("port.set", port=OUT, up=False)
    burst(node, 40)
    eventually(lambda: port_counters(node)["drop_port_down"] >= 40, "no such counters")
    node.engine.control("port.set", port=OUT, up=True)
    assert_idle_port_forwards_whole(node)


def test_after_a_reboot_it_forwards_whole(node: Node) -> None:
    burst(node, 40)
    node.engine.control("device.crash")
    node.engine.control("device.start")
    node.engine.become_primary()  # a rebooted switch knows no controller
    assert_idle_port_forwards_whole(configured(node.engine))
