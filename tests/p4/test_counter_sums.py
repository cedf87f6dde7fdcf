"""Once idle, every packet received is accounted for: sent, dropped by the program, or dropped by a queue."""

import random
from collections.abc import Sequence

import pytest

from p4c.entries import Exact, Lpm
from switch.engine import PRIORITIES, PortConfig, QueueConfig
from tests.helpers.p4.frames import IN_MACS, frame
from tests.helpers.p4.node import (
    DROP_REASONS,
    DSCP,
    LAST_HOP,
    NO_TRIM,
    RETRANSMIT,
    ROCE,
    TRIMMABLE,
    TRIMMED,
    Node,
    destination,
)
from tests.helpers.p4.programs import ENGINES, PROGRAMS, compiled, engine

PORTS = (1, 2, 3)
RATE_BPS = 10_000_000
CLASSES = range(7)
QUEUES = (QueueConfig(depth_packets=12), *(QueueConfig(depth_packets=40) for _ in range(PRIORITIES - 1)))


def busy_node(program: str, kind: str) -> Node:
    """Shallow queues, low limits and a narrow share, so that every reason to drop occurs."""
    node = Node(engine(kind), compiled(program).program)
    node.wire(*PORTS, config=PortConfig(rate_bps=RATE_BPS, queues=QUEUES))
    node.add("my_sid", (Lpm(0xFCBBBBBB0001 << 80, 48),), "end_un")
    node.add("ipv6_route", (Lpm(0xFCBBBBBB << 96, 32),), "drop_unknown_usid")
    node.add("ipv6_route", (Lpm(0x20010DB9 << 96, 32),), "set_next_hop", 99)
    for port in PORTS:
        node.limit(port, TRIMMABLE, "trim_beyond", 6)
        node.limit(port, RETRANSMIT, "trim_beyond", 9)
        node.limit(port, NO_TRIM, "drop_beyond", 10)
        node.share(port, 1000, burst=4)
        for traffic_class in (TRIMMABLE, ROCE):
            node.add("ecn_profile", (Exact(port), Exact(traffic_class)), "mark_between", 2, 6)
    if program == "leaf":
        node.add("host_facing", (Exact(3),), "mark_last_hop", DSCP[LAST_HOP])
    return node


def some_frame(dice: random.Random) -> bytes:
    kind = dice.random()
    dscp = DSCP[dice.choice(CLASSES)]
    if kind < 0.02:
        return IN_MACS[: dice.randrange(1, 13)]
    if kind < 0.04:
        return IN_MACS + b"\x08\x06" + dice.randbytes(28)
    if kind < 0.06:
        return frame(destination(2), dscp=dscp, hop_limit=dice.randrange(2))
    others = ["fcbb:bbbb:1::", "fcbb:bbbb:1:5::", "fcbb:bbbb:9::", "2001:db9::1", "2001:dba::1"]
    to = dice.choice(others) if kind < 0.12 else destination(dice.choice(PORTS))
    return frame(to, dscp=dscp, ecn=dice.randrange(4), size=dice.randrange(54, 1500))


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_sums_agree_once_idle(program: str, kind: str) -> None:
    node = busy_node(program, kind)
    dice = random.Random(11)
    arrived = 3000
    for step in range(arrived):
        node.receive(dice.choice(PORTS), some_frame(dice))
        if dice.random() < 0.1:
            node.run(dice.randrange(3_000_000))
        if step % 500 == 250:  # a port goes down with packets waiting, and comes back
            node.port(2, PortConfig(up=False, rate_bps=RATE_BPS, queues=QUEUES))
        if step % 500 == 300:
            node.port(2, PortConfig(rate_bps=RATE_BPS, queues=QUEUES))
    node.drain()

    def total(name: str, traffic_classes: Sequence[int] = range(8)) -> int:
        return sum(node.counter(name, port, c) for port in PORTS for c in traffic_classes)

    ports = [node.engine.port_counters(port, node.now_ns) for port in PORTS]
    refused = arrived - sum(p.rx_packets for p in ports)  # at a port that was down: never seen by the program
    dropped = {name: total(name) for name in DROP_REASONS}
    queues = sum(p.drop_queue_full + p.drop_port_down + p.drop_wiped for p in ports) - refused
    assert all(count > 0 for count in dropped.values()), dropped
    assert sum(p.drop_queue_full for p in ports) > 0
    assert total("trimmed") > 0
    assert total("ecn_marked") > 0
    assert total("received") == arrived - refused
    assert total("received") == total("sent") + sum(dropped.values()) + queues
    assert total("sent") == sum(p.tx_packets for p in ports)
    # Control and baseline data leave as they came; whoever is trimmed arrives in the trimmed classes.
    trimmed_in = total("received", (TRIMMED, LAST_HOP)) + total("trimmed")
    trimmed_out = total("sent", (TRIMMED, LAST_HOP)) + sum(total(name, (TRIMMED, LAST_HOP)) for name in DROP_REASONS)
    assert 0 <= trimmed_in - trimmed_out <= queues
