"""Trimming in virtual time, exact to the packet: the account, the limits, the share, ECN and the counters."""

import random

import pytest

from p4c.entries import Exact
from switch.engine import PortConfig, QueueConfig
from tests.helpers.p4.frames import dscp_of, ecn_of, frame, payload_length_of
from tests.helpers.p4.node import CONTROL, DSCP, NO_TRIM, ROCE, TRIMMABLE, TRIMMED, Node, destination
from tests.helpers.p4.programs import ENGINES, PROGRAMS, compiled, engine

IN, OUT = 1, 2
SIZE = 1100
RATE_BPS = 8 * SIZE * 1000  # a packet a millisecond
PACKET_NS = 1_000_000
TRIM_SIZE = 128
INCAST_PACKETS = 150  # of the port's time


@pytest.fixture(params=[(p, k) for p in PROGRAMS for k in ENGINES], ids=lambda pair: "-".join(pair))
def node(request: pytest.FixtureRequest) -> Node:
    program, kind = request.param
    made = Node(engine(kind), compiled(program).program)
    made.wire(IN, OUT)
    made.port(OUT, PortConfig(rate_bps=RATE_BPS))
    return made


def burst(node: Node, count: int, traffic_class: int = TRIMMABLE, ecn: int = 0) -> None:
    for _ in range(count):
        node.receive(IN, frame(destination(OUT), dscp=DSCP[traffic_class], ecn=ecn, size=SIZE))


def classes_sent(node: Node) -> list[int]:
    return [dscp_of(sent.frame) for sent in node.drain()]


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 30])
def test_trimming_begins_exactly_at_the_threshold(node: Node, limit: int) -> None:
    node.limit(OUT, TRIMMABLE, "trim_beyond", limit)
    burst(node, 40)
    sent = classes_sent(node)
    whole = limit + 1 if limit else 0  # one in service, `limit` waiting
    assert sent.count(DSCP[TRIMMABLE]) == whole
    assert sent.count(DSCP[TRIMMED]) == 40 - whole


def test_below_line_rate_nothing_is_ever_trimmed(node: Node) -> None:
    node.limit(OUT, TRIMMABLE, "trim_beyond", 1)
    for _ in range(200):
        burst(node, 1)
        node.run(PACKET_NS)
    assert classes_sent(node) == [DSCP[TRIMMABLE]] * 200


def test_the_account_is_the_depth_of_the_queue_whatever_arrives(node: Node) -> None:
    node.limit(OUT, NO_TRIM, "drop_beyond", 24)
    node.limit(OUT, ROCE, "drop_beyond", 16)
    dice = random.Random(5)
    depths = set()
    for _ in range(400):
        burst(node, dice.randrange(8), dice.choice([NO_TRIM, ROCE]))
        assert node.account(OUT) == node.engine.port_counters(OUT, node.now_ns).queue_packets
        depths.add(node.account(OUT))
        node.run(dice.randrange(6 * PACKET_NS))
        assert node.account(OUT) == node.engine.port_counters(OUT, node.now_ns).queue_packets
    assert {0, 24} <= depths
    node.drain()
    assert node.account(OUT) == 0


def test_limits_are_per_class_and_no_trim_is_dropped_deeper(node: Node) -> None:
    node.limit(OUT, TRIMMABLE, "trim_beyond", 10)
    node.limit(OUT, NO_TRIM, "drop_beyond", 15)
    burst(node, 30)
    burst(node, 30, NO_TRIM)
    sent = classes_sent(node)
    assert sent.count(DSCP[TRIMMABLE]) == 11
    assert sent.count(DSCP[TRIMMED]) == 19
    assert sent.count(DSCP[NO_TRIM]) == 5
    assert node.counter("queue_limit_drops", OUT, NO_TRIM) == 25
    assert node.counter("trimmed", OUT, TRIMMABLE) == 19


def test_trimmed_and_control_packets_overtake_data(node: Node) -> None:
    node.limit(OUT, TRIMMABLE, "trim_beyond", 5)
    burst(node, 8)
    burst(node, 1, CONTROL)
    sent = classes_sent(node)
    data, trimmed, control = (DSCP[c] for c in (TRIMMABLE, TRIMMED, CONTROL))
    assert sent == [data, trimmed, trimmed, control, data, data, data, data, data]


def test_a_trimmed_packet_says_how_long_it_now_is(node: Node) -> None:
    node.limit(OUT, TRIMMABLE, "trim_beyond", 0)
    for size in (TRIM_SIZE - 1, TRIM_SIZE, TRIM_SIZE + 1, 9000):
        whole = frame(destination(OUT), dscp=DSCP[TRIMMABLE], ecn=2, size=size)
        node.receive(IN, whole)
        (sent,) = node.drain()
        assert len(sent.frame) == min(size, TRIM_SIZE)
        assert payload_length_of(sent.frame) == len(sent.frame) - 54
        assert (dscp_of(sent.frame), ecn_of(sent.frame)) == (DSCP[TRIMMED], 2)
        assert sent.frame[54:] == whole[54 : len(sent.frame)]


# --- the account heals -------------------------------------------------------------------------------------------


def assert_idle_port_forwards_whole(node: Node) -> None:
    node.take()
    for _ in range(5):
        burst(node, 1)
        node.run(2 * PACKET_NS)
    assert [dscp_of(sent.frame) for sent in node.take()] == [DSCP[TRIMMABLE]] * 5


def test_after_a_port_was_down_the_account_heals(node: Node) -> None:
    node.limit(OUT, TRIMMABLE, "trim_beyond", 8, patience_us=10_000)
    node.port(OUT, PortConfig(up=False, rate_bps=RATE_BPS))
    burst(node, 40)
    assert node.account(OUT) == 8  # nobody settled it
    node.port(OUT, PortConfig(rate_bps=RATE_BPS))
    node.run(10_001_000)
    assert_idle_port_forwards_whole(node)


def test_without_patience_a_port_that_was_down_would_trim_for_ever(node: Node) -> None:
    """Why `patience_us` exists: all that comes is trimmed, so nothing is dequeued that could settle the account."""
    node.limit(OUT, TRIMMABLE, "trim_beyond", 8, patience_us=0xFFFF_FFFF)
    node.port(OUT, PortConfig(up=False, rate_bps=RATE_BPS))
    burst(node, 40)
    node.port(OUT, PortConfig(rate_bps=RATE_BPS))
    node.drain()
    burst(node, 1)
    assert classes_sent(node) == [DSCP[TRIMMED]]


def test_after_tail_drop_the_account_heals_at_the_next_dequeue(node: Node) -> None:
    queues = (QueueConfig(depth_packets=4), *(QueueConfig() for _ in range(7)))
    node.port(OUT, PortConfig(rate_bps=RATE_BPS, queues=queues))
    node.limit(OUT, TRIMMABLE, "trim_beyond", 8, patience_us=0xFFFF_FFFF)
    burst(node, 40)
    assert node.engine.port_counters(OUT, node.now_ns).drop_queue_full > 0
    node.drain()
    assert node.account(OUT) == 0
    assert_idle_port_forwards_whole(node)


def test_seeded_loss_does_not_disturb_the_account(node: Node) -> None:
    node.port(OUT, PortConfig(rate_bps=RATE_BPS, loss=0.5, loss_seed=3))
    node.limit(OUT, TRIMMABLE, "trim_beyond", 8, patience_us=0xFFFF_FFFF)
    for _ in range(20):
        burst(node, 10)
        node.run(5 * PACKET_NS)
    node.drain()
    assert node.engine.port_counters(OUT, node.now_ns).drop_loss > 50
    assert node.account(OUT) == 0
    node.port(OUT, PortConfig(rate_bps=RATE_BPS))
    assert_idle_port_forwards_whole(node)


def test_after_a_stop_that_wiped_the_queue_the_account_heals(node: Node) -> None:
    node.limit(OUT, TRIMMABLE, "trim_beyond", 8, patience_us=10_000)
    burst(node, 40)
    node.engine.set_running(False, node.now_ns)
    assert node.engine.port_counters(OUT, node.now_ns).drop_wiped > 0
    node.engine.set_running(True, node.now_ns)
    node.run(10_001_000)
    assert_idle_port_forwards_whole(node)


def test_after_a_reboot_the_account_starts_empty(node: Node) -> None:
    node.limit(OUT, TRIMMABLE, "trim_beyond", 8)
    burst(node, 40)
    node.engine.reset()
    node.engine.load(node.program)
    assert node.account(OUT) == 0
    node.drain()  # the one packet that was on the wire
    node.wire(IN, OUT)
    node.limit(OUT, TRIMMABLE, "trim_beyond", 8)
    assert_idle_port_forwards_whole(node)


def test_a_saturated_queue_is_never_taken_for_stale(node: Node) -> None:
    """Dequeues settle the account as long as there is something to dequeue, however short the patience."""
    node.limit(OUT, TRIMMABLE, "trim_beyond", 8, patience_us=2 * PACKET_NS // 1000)
    for _ in range(300):
        burst(node, 3)
        node.run(PACKET_NS)
        assert node.account(OUT) <= 8
        assert node.engine.port_counters(OUT, node.now_ns).queue_packets <= 9 + 3


# --- the share of trimmed packets ---------------------------------------------------------------------------------


def incast(node: Node, factor: int, duration_ns: int) -> tuple[int, int]:
    """Trimmable packets at `factor` times the line rate; bytes sent whole and trimmed in that time."""
    node.limit(OUT, TRIMMABLE, "trim_beyond", 10)
    for _ in range(duration_ns // PACKET_NS):
        for _ in range(factor):
            burst(node, 1)
            node.run(PACKET_NS // factor)
    sent = node.take()
    whole = sum(len(s.frame) for s in sent if dscp_of(s.frame) == DSCP[TRIMMABLE])
    return whole, sum(len(s.frame) for s in sent) - whole


def test_under_heavy_incast_data_still_moves(node: Node) -> None:
    """A 20-fold overload with a quarter of the port for trimmed packets leaves three quarters to data."""
    node.share(OUT, RATE_BPS // 4 // (8 * TRIM_SIZE))
    whole, trimmed = incast(node, factor=20, duration_ns=INCAST_PACKETS * PACKET_NS)
    capacity = INCAST_PACKETS * SIZE
    assert whole >= 0.72 * capacity
    assert 0.20 * capacity <= trimmed <= 0.27 * capacity
    assert node.counter("trimmed_share_drops", OUT, TRIMMED) > 0


def test_without_the_share_trimmed_packets_would_starve_data(node: Node) -> None:
    whole, trimmed = incast(node, factor=20, duration_ns=INCAST_PACKETS * PACKET_NS)
    assert whole <= 0.05 * INCAST_PACKETS * SIZE
    assert trimmed >= 0.9 * INCAST_PACKETS * SIZE


# --- ECN ------------------------------------------------------------------------------------------------------------


def marked_share(node: Node, depth: int, traffic_class: int = ROCE, packets: int = 1500) -> float:
    """The queue is held at `depth` packets left at dequeue; the share of what leaves that is marked."""
    node.limit(OUT, traffic_class, "drop_beyond", depth + 1)
    burst(node, depth + 2, traffic_class, ecn=2)
    for _ in range(packets):
        node.run(PACKET_NS)
        burst(node, 2, traffic_class, ecn=2)
    sent = node.take()[1:]
    return sum(ecn_of(s.frame) == 3 for s in sent) / len(sent)


@pytest.mark.parametrize(("depth", "expected"), [(5, 0), (10, 0), (20, 10 / 31), (30, 20 / 31), (40, 30 / 31), (45, 1)])
def test_marking_probability_rises_between_two_depths(node: Node, depth: int, expected: float) -> None:
    node.add("ecn_profile", (Exact(OUT), Exact(ROCE)), "mark_between", 10, 40)
    share = marked_share(node, depth)
    if expected in (0, 1):
        assert share == expected
    else:
        assert share == pytest.approx(expected, abs=0.045)  # 3.5 standard deviations of 1500 trials
    assert node.counter("ecn_marked", OUT, ROCE) == pytest.approx(share * 1500, abs=2)


def test_marking_is_per_port_and_class(node: Node) -> None:
    """A host-facing port as a plan has it: off for MRC's classes, on for the baseline's."""
    node.add("ecn_profile", (Exact(OUT), Exact(ROCE)), "mark_between", 0, 0)
    node.limit(OUT, TRIMMABLE, "trim_beyond", 50)
    node.limit(OUT, ROCE, "drop_beyond", 50)
    for _ in range(10):
        burst(node, 1, TRIMMABLE, ecn=1)
        burst(node, 1, ROCE, ecn=1)
    marks = {(dscp_of(s.frame), ecn_of(s.frame)) for s in node.drain()[:-1]}
    assert marks == {(DSCP[TRIMMABLE], 1), (DSCP[ROCE], 3)}


@pytest.mark.parametrize("ecn", [0, 3], ids=["not ECN-capable", "marked upstream"])
def test_packets_that_are_not_ecn_capable_or_marked_already_are_not_marked_here(node: Node, ecn: int) -> None:
    node.add("ecn_profile", (Exact(OUT), Exact(ROCE)), "mark_between", 0, 0)
    burst(node, 10, ROCE, ecn=ecn)
    assert {ecn_of(s.frame) for s in node.drain()} == {ecn}
    assert node.counter("ecn_marked", OUT, ROCE) == 0
