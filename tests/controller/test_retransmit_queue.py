"""A queue of retransmissions: the plan's tables and queues on both engines, by the arithmetic of strict priorities.

IEEE 802.1Q, 8.6.8.1: a frame is selected from a queue only if all queues of higher priority are empty.
"""

import pytest

from controller.direct import DirectControl
from controller.pipelines import compiled_pipelines
from controller.tables import CONTROL, TRIMMABLE, TRIMMABLE_RETRANSMIT, tables
from switch.engine import PRIORITIES, PortConfig, QueueConfig
from tests.helpers.p4.frames import dscp_of, frame
from tests.helpers.p4.node import DSCP
from tests.helpers.p4.programs import ENGINES, engine
from topo.address import neighbour_usid, switch_usid, usid_address
from topo.graph import link_at, peer, port_queues, ports
from topo.node import Host
from topo.planfile import load_plan

DATA, COPY, SIGNAL, TRIMMED = (DSCP[kind] for kind in (TRIMMABLE, TRIMMABLE_RETRANSMIT, CONTROL, 3))
START_NS = 1_000_000_000


class Leaf:
    """A leaf of `tiny`, and its port to a spine with the rate and the queues of the plan."""

    def __init__(self, kind: str, priority: int) -> None:
        self.plan = plan = load_plan("tiny", {"queues.retransmit_priority": str(priority)})
        leaf = plan.switch_node("p0l0")
        self.engine = engine(kind)
        DirectControl(self.engine, compiled_pipelines()["leaf"]).install(tables(plan, leaf))
        limits = {queue.priority: queue.depth_packets for queue in port_queues(plan)}
        queues = tuple(QueueConfig(depth_packets=limits.get(number, 0)) for number in range(PRIORITIES))
        self.out = next(ref for ref in ports(plan, leaf) if not isinstance(peer(plan, ref).node, Host))
        for ref in ports(plan, leaf):
            rate_bps = link_at(plan, ref).rate_bps if ref == self.out else 0
            self.engine.configure_port(ref.port, PortConfig(rate_bps=rate_bps, queues=queues), START_NS)
        usids = [switch_usid(leaf), neighbour_usid(plan, peer(plan, self.out).node), 0x1001]
        self.to = usid_address(plan, usids).packed

    def receive(self, *dscps: int) -> None:
        for dscp in dscps:
            data = frame(self.to, dscp=dscp, size=1000)
            self.engine.receive(1, data, START_NS)

    @property
    def waiting(self) -> int:
        self.engine.advance(START_NS)
        return self.engine.port_counters(self.out.port, START_NS).queue_packets

    def sent(self) -> list[int]:
        return [dscp_of(one.frame) for one in self.engine.advance(START_NS + 100_000_000_000)]


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    ("priority", "order"),
    [
        (0, [DATA, SIGNAL, DATA, DATA, COPY, DATA, COPY]),  # as it came, behind the signal
        (1, [DATA, SIGNAL, COPY, COPY, DATA, DATA, DATA]),  # the first was being sent when the others came
        (6, [DATA, SIGNAL, COPY, COPY, DATA, DATA, DATA]),
    ],
)
def test_copies_go_before_data_and_behind_control_packets(kind: str, priority: int, order: list[int]) -> None:
    leaf = Leaf(kind, priority)
    leaf.receive(DATA, DATA, DATA, COPY, DATA, SIGNAL, COPY)
    assert leaf.waiting == 6
    assert leaf.sent() == order


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("priority", [0, 1])
def test_a_full_queue_of_data_trims_no_copy_of_another_queue(kind: str, priority: int) -> None:
    leaf = Leaf(kind, priority)
    limit = leaf.plan.threshold_packets(leaf.plan.queues.trim)
    leaf.receive(*[DATA] * (limit + 1))  # one is sent at once, `limit` wait: the next one is trimmed
    assert leaf.waiting == limit
    leaf.receive(DATA, COPY)
    assert leaf.waiting == limit + 2
    trims = 1 if priority else 2
    found = leaf.sent()
    assert (found.count(TRIMMED), found.count(COPY)) == (trims, 2 - trims)
    if priority:
        assert found.index(COPY) == 2  # behind the packet in service and the trimmed one


@pytest.mark.parametrize("kind", ENGINES)
def test_a_queue_of_copies_trims_at_the_depth_that_data_has(kind: str) -> None:
    leaf = Leaf(kind, 1)
    limit = leaf.plan.threshold_packets(leaf.plan.queues.trim)
    leaf.receive(*[COPY] * (limit + 4), *[DATA] * 3)
    found = leaf.sent()
    assert (found.count(COPY), found.count(TRIMMED), found.count(DATA)) == (limit + 1, 3, 3)
    assert found[-3:] == [DATA] * 3
