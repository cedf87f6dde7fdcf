"""Direct control: an engine of this process ends up as by P4Runtime, and forwards by it, retransmissions first."""

import pytest

from controller.direct import DirectControl
from controller.entries import TableEntry
from controller.pipelines import compiled_pipelines
from controller.tables import CONTROL, TRIMMABLE, TRIMMABLE_RETRANSMIT, tables
from p4c.entries import Exact
from switch.engine import PRIORITIES, PortConfig, QueueConfig
from switch.p4rt.batch import BatchError
from switch.reference import ReferenceEngine
from tests.helpers.p4.frames import dscp_of, frame
from tests.helpers.p4.node import DSCP
from tests.helpers.p4.programs import ENGINES, engine
from topo.address import neighbour_usid, switch_usid, usid_address
from topo.graph import PortRef, link_at, peer, port_queues, ports
from topo.node import Host
from topo.path import hops, path_da, paths
from topo.planfile import load_plan


@pytest.fixture(scope="module")
def plan():
    return load_plan("tiny")


def controlled(plan, pipelines, name):
    switch = plan.switch_node(name)
    engine = ReferenceEngine(seed=1)
    for ref in ports(plan, switch):
        engine.configure_port(ref.port, PortConfig(), 0)
    control = DirectControl(engine, pipelines[switch.role])
    return switch, engine, control


def test_an_installed_switch_forwards_as_the_plan_says_and_a_second_install_writes_nothing(plan, pipelines):
    switch, engine, control = controlled(plan, pipelines, "p0l0")
    wanted = tables(plan, switch, virtual_time=True)
    assert control.install(wanted) == len(wanted)
    assert control.install(wanted) == 0
    assert control.store.entry_count() == sum(1 for e in wanted if type(e).__name__ in ("TableEntry", "GroupEntry"))
    path = next(iter(paths(plan, Host(0), Host(2))))
    hop = hops(plan, path)[0]
    frame = bytes.fromhex(PortRef(switch, 1).mac.replace(":", "")) + bytes(6) + b"\x86\xdd"
    frame += bytes([0x60, 0, 0, 0, 0, 20, 59, 64]) + bytes(16) + path_da(plan, path).packed + bytes(20)
    engine.receive(1, frame, 0)
    (sent,) = engine.advance(10**9)
    assert sent.port == hop.port_out
    assert sent.frame[38:54] == hop.da_out.packed
    assert sent.frame[:6] == bytes.fromhex(peer(plan, PortRef(switch, hop.port_out)).mac.replace(":", ""))


def test_only_what_changes_is_written_and_what_is_gone_is_deleted(plan, pipelines):
    plan = plan.single_plane()
    switch, _, control = controlled(plan, pipelines, "p0l0")
    control.install(tables(plan, switch))
    assert control.install(tables(plan, switch, dead_links=[("p0s0", "p0l1")])) == 1
    assert control.install(tables(plan, switch)) == 1
    spine, _, control = controlled(plan, pipelines, "p0s0")
    control.install(tables(plan, spine))
    entries = control.store.entry_count()
    assert control.install(tables(plan, spine, dead_links=[("p0s0", "p0l1")])) == 1
    assert control.store.entry_count() == entries - 1


def test_what_the_switch_would_refuse_is_refused(plan, pipelines):
    _, _, control = controlled(plan, pipelines, "p0l0")
    match = (("egress_port", Exact(600)),)
    with pytest.raises(BatchError, match=r"egress_port .*0x0258 needs 10 bits, but the width is bit<9>"):
        control.install([TableEntry("host_facing", match, "mark_last_hop", (1,))])


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
