"""Leaf and spine with a plan's own tables and queues, overloaded: both engines trim, mark and drop the same packets."""

import random
from dataclasses import astuple

import pytest

from controller import compiled_pipelines
from controller.direct import DirectControl
from controller.tables import tables
from p4c.model import load_program
from switch.engine import PRIORITIES, Engine, PortConfig, QueueConfig
from switch.stf.programs import make_engine
from topo.graph import port_queues, ports
from topo.node import Host
from topo.path import hops, paths
from topo.plan import Plan
from topo.planfile import load_plan

PACKETS = 400
PAYLOADS = (0, 20, 100, 1000, 4096)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load_plan("tiny")


def frame(rng: random.Random, plan: Plan, da: bytes) -> bytes:
    """Ethernet, IPv6 of a class that the plan knows (mostly), UDP and a payload; now and then damaged."""
    dscp = rng.choice((*astuple(plan.dscp), 63)) if rng.random() < 0.3 else plan.dscp.trimmable
    traffic_class = dscp << 2 | rng.choice((0, 1, 2, 3))
    payload = rng.randbytes(8 + rng.choice(PAYLOADS))
    word = 6 << 28 | traffic_class << 20 | rng.getrandbits(20)
    hop_limit = rng.choice((64, 64, 64, 2, 1, 0))
    header = word.to_bytes(4, "big") + len(payload).to_bytes(2, "big") + bytes([17, hop_limit]) + rng.randbytes(16)
    data = rng.randbytes(12) + b"\x86\xdd" + header + da + payload
    return data[: rng.randrange(len(data))] if rng.random() < 0.03 else data


def prepared(plan: Plan, name: str, engine_name: str) -> Engine:
    switch = plan.switch_node(name)
    engine = make_engine(engine_name, seed=7)
    queues = [QueueConfig()] * PRIORITIES
    for queue in port_queues(plan):
        queues[queue.priority] = QueueConfig(depth_packets=queue.depth_packets)
    for ref in ports(plan, switch):
        engine.configure_port(ref.port, PortConfig(rate_bps=50_000_000, delay_ns=1000, queues=tuple(queues)), 0)
    DirectControl(engine, compiled_pipelines()[switch.program]).install(tables(plan, switch, virtual_time=True))
    return engine


@pytest.mark.parametrize("name", ["p0l0", "p0s0"])
def test_an_overloaded_switch_trims_marks_and_drops_alike(plan: Plan, name: str) -> None:
    rng = random.Random(11)
    switch = plan.switch_node(name)
    inputs = [ref.port for ref in ports(plan, switch)]
    destinations = [
        hop.da_in.packed
        for destination in range(1, plan.host_count)
        for path in paths(plan, Host(0), Host(destination))
        for hop in hops(plan, path)
        if hop.switch == switch
    ]
    assert destinations
    engines = [prepared(plan, name, engine_name) for engine_name in ("reference", "native")]
    now_ns = 0
    outputs: list[list[tuple[object, ...]]] = [[], []]
    for _ in range(PACKETS):
        da = rng.choice(destinations) if rng.random() < 0.95 else rng.randbytes(16)
        data, port = frame(rng, plan, da), rng.choice(inputs)
        now_ns += rng.choice((0, 1000, 100_000))
        for engine, output in zip(engines, outputs, strict=True):
            engine.receive(port, data, now_ns)
            output += [astuple(sent) for sent in engine.advance(now_ns)]
    for engine, output in zip(engines, outputs, strict=True):
        output += [astuple(sent) for sent in engine.advance(now_ns + 10**10)]
    assert outputs[0] == outputs[1]
    for port in inputs:
        counts = [engine.port_counters(port, now_ns + 10**10) for engine in engines]
        assert counts[0] == counts[1]
    totals: dict[str, int] = {}
    for counter in load_program(compiled_pipelines()[switch.program].device_config).counters:
        values = [[engine.read_counter(counter.name, i) for i in range(counter.size)] for engine in engines]
        assert values[0] == values[1], counter.name
        totals[counter.name.rsplit(".", 1)[-1]] = sum(v.packets for v in values[0])
    # The load was one that matters.
    assert totals["trimmed"] > 20
    assert totals["ecn_marked"] > 5
    assert totals["hop_limit_drops"] > 5
