"""Direct control: an engine of this process ends up with what P4Runtime would give it, and forwards by it."""

import pytest

from controller.direct import DirectControl
from controller.entries import TableEntry
from controller.tables import tables
from p4c.entries import Exact
from switch.engine import PortConfig
from switch.p4rt.batch import BatchError
from switch.reference import ReferenceEngine
from topo.graph import PortRef, peer, ports
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
