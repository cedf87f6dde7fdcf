"""Faults mean the same in both worlds: what is in force, what is refused and in which words, what is taken back.

The simulated world goes through many examples in virtual time; the emulated one through a few, on real links with real
agents.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from controller.entries import TableEntry
from controller.tables import tables
from endpoint import call
from running.directory import RunDirectory
from running.transport_choice import transport
from running.worlds.emulated import EmulatedWorld
from running.worlds.simulated import SimulatedWorld
from running.worlds.virtual_time import NIC_FIELDS
from running.worlds.world import World
from tests.topo.topologies.shapes import SMALL
from topo.emulation import state
from topo.emulation.embedded import EmbeddedDriver, wire_delay_ns
from topo.fault import VERBS, ActiveFaults, Fault, Verb, healthy, make_fault, port_states, switch_state, targets
from topo.fault.meaning import denied_evs
from topo.graph import PortRef, device_id, port_towards, ports
from topo.node import Host
from topo.plan import Plan
from topo.planfile import load_plan

TINY = load_plan("tiny")
H0 = next(iter(TINY.hosts()))
SWITCH_PORTS = [ref for switch in TINY.switches() for ref in ports(TINY, switch)]
OWN = {"h0": [("h2", 0xC000), ("h3", 0x1C001)], "h3": [("h0", 0x1C000)]}
"""What people and probers deny in these tests, some of it across switches that faults drain."""

Facts = dict[str, Any]


def simulated(folder: Path, plan: Plan = TINY) -> SimulatedWorld:
    return SimulatedWorld(plan, transport("mrc"), 1, RunDirectory.create(folder, "faults", 1), lambda event: None)


@pytest.fixture(scope="module")
def virtual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = simulated(tmp_path_factory.mktemp("virtual"))
    yield with_own(world)
    world.close()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if os.geteuid() != 0:
        pytest.skip("needs root: builds network namespaces")
    if state.read_record(state.ROOT) is not None:
        pytest.skip("a lab is running on this machine")
    directory = RunDirectory.create(tmp_path_factory.mktemp("real"), "faults", 1)
    world = EmulatedWorld(TINY, transport("mrc"), 1, directory, lambda event: None)
    yield with_own(world)
    world.close()


@pytest.fixture(params=["virtual", pytest.param("real", marks=pytest.mark.root)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    found: World = request.getfixturevalue(request.param)
    yield found
    for fault in reversed(found.active.faults()):
        found.active.undo(fault)


def with_own(world: World) -> World:
    for host, rows in OWN.items():
        call(world.clients[host], "denylist.set", denied=[{"host": name, "ev": ev} for name, ev in rows])
    return world


def denied(world: World, host: Host) -> set[tuple[str, int]]:
    return {(row["host"], row["ev"]) for row in call(world.clients[host.name], "denylist.get")["denied"]}


def plan_of(world: World) -> Plan:
    return world.plan if isinstance(world, SimulatedWorld) else TINY


def seen(world: World) -> Facts:
    """Every switch port, switch and denylist, as the world's own switches and NICs have them."""
    plan = plan_of(world)
    facts: Facts = {f"denied {host}": denied(world, host) for host in plan.hosts()}
    if isinstance(world, SimulatedWorld):
        for node, switch in world.fabric.switches.items():
            facts[f"state {node}"] = "running" if switch.running else "not running"
            for ref in ports(plan, node):
                engine: Any = switch.engine
                config = engine._ports[ref.port]
                facts[str(ref)] = {name: getattr(config, name) for name in PORT_FIELDS}
        return facts
    assert isinstance(world, EmulatedWorld)
    driver = world.lab.drivers["embedded"]
    assert isinstance(driver, EmbeddedDriver)
    states = {device["name"]: device["state"] for device in driver.client.call("devices")}
    facts |= {f"state {name}": "running" if said == "running" else "not running" for name, said in states.items()}
    for ref in SWITCH_PORTS:
        assert not isinstance(ref.node, Host)
        port = driver.client.call("port.get", device=device_id(TINY, ref.node), port=ref.port)
        facts[str(ref)] = {name: port[name] for name in PORT_FIELDS}
    return facts


PORT_FIELDS = tuple(healthy(TINY, PortRef(H0, 1)).__slots__)


def meant(world: World, faults: list[Fault]) -> Facts:
    """The same facts as the faults in force mean them."""
    plan = plan_of(world)
    own = OWN if plan is TINY else {}
    facts: Facts = {f"denied {h}": {*denied_evs(plan, h, faults), *own.get(h.name, [])} for h in plan.hosts()}
    for switch in plan.switches():
        facts[f"state {switch}"] = "running" if switch_state(faults, switch) == "running" else "not running"
    states = port_states(plan, faults)
    for ref in (ref for switch in plan.switches() for ref in ports(plan, switch)):
        port = states.get(ref) or healthy(plan, ref)
        facts[str(ref)] = {name: getattr(port, name) for name in PORT_FIELDS}
        if isinstance(world, EmulatedWorld):
            facts[str(ref)]["delay_ns"] = wire_delay_ns(TINY, ref, port.delay_ns)
    return facts


def links_that_fail(world: World) -> list[str]:
    """What the path probers of all hosts blame, by packets across every link."""
    for client in world.clients.values():
        call(client, "prober.start", interval_ns=2_000_000, window=20, deny=False)
    world.wait_until(world.now_ns() + 600_000_000)
    blamed = []
    for name, client in world.clients.items():
        blamed += [f"{name}: {link}" for link in call(client, "prober.map")["links"] if link["state"] != "ok"]
        call(client, "prober.stop")
    return blamed


@pytest.mark.parametrize("verb", [verb for verb in VERBS.values() if verb.impairs and verb.host_side])
def test_what_a_verb_does_to_a_nics_port_the_simulated_nic_can_have(verb: Verb) -> None:
    usual = healthy(TINY, PortRef(H0, 1))
    assert verb.impairs is not None
    changed = verb.impairs(usual, verb.argument.high if verb.argument else 0.0, 1)
    assert {name for name in PORT_FIELDS if getattr(changed, name) != getattr(usual, name)} <= set(NIC_FIELDS)


@st.composite
def injections(draw: st.DrawFn) -> tuple[str, str, float | None, int]:
    """Any verb, on any target that the plan has, with any number that it takes."""
    verb = VERBS[draw(st.sampled_from(sorted(VERBS)))]
    target = draw(st.sampled_from(sorted(targets(TINY, verb.name))))
    argument = verb.argument
    return (
        verb.name, target, draw(st.floats(argument.low, argument.high)) if argument else None, draw(st.integers(0, 9)),
    )  # fmt: skip


actions = st.lists(injections() | st.integers(0, 99), min_size=1, max_size=14)
"""A fault to inject, or the number (modulo how many there are) of one to undo."""


def any_order(world: World, told: list[Any]) -> None:
    in_force: list[Fault] = []
    for action in told:
        if isinstance(action, int):
            if not in_force:
                continue
            world.active.undo(in_force.pop(action % len(in_force)))
        else:
            held = make_fault(TINY, *action) in in_force
            if held:
                with pytest.raises((ValueError, RuntimeError), match="is in force already; undo it first"):
                    world.active.inject(*action)
            fault = None if held else world.active.inject(*action)
            if fault is not None and VERBS[fault.verb].lasting:
                in_force.append(fault)
        assert world.active.faults() == in_force
        assert seen(world) == meant(world, in_force)
    while in_force:
        world.active.undo(in_force.pop(len(in_force) // 2))
        assert seen(world) == meant(world, in_force)
    assert world.verify() == 0


@given(told=actions)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_any_order_of_injecting_and_undoing_takes_back_only_its_own_in_virtual_time(virtual: World, told) -> None:
    try:
        any_order(virtual, told)
    finally:
        for fault in virtual.active.faults():
            virtual.active.undo(fault)


@pytest.mark.root
@given(told=actions)
@settings(max_examples=5, suppress_health_check=list(HealthCheck), derandomize=True)
def test_any_order_of_injecting_and_undoing_takes_back_only_its_own_on_real_links(real: World, told: list[Any]) -> None:
    try:
        any_order(real, told)
    finally:
        for fault in real.active.faults():
            real.active.undo(fault)


def test_after_every_verb_and_its_undoing_every_link_carries_probes(world: World) -> None:
    begun = []
    for verb in VERBS.values():
        target = sorted(targets(TINY, verb.name))[0]
        value = verb.argument.high if verb.argument else None
        fault = world.active.inject(verb.name, target, value)
        if verb.lasting:
            begun.append(fault)
    assert links_that_fail(world)
    for fault in begun:
        world.active.undo(fault)
    assert links_that_fail(world) == []
    assert world.verify() == 0


@pytest.mark.parametrize("name", SMALL)
def test_every_verb_does_what_it_means_on_each_kind_of_place_and_is_taken_back(name: str, tmp_path: Path) -> None:
    """On every topology: on cables of hosts, leaves, spines and cores, and on switches of each tier."""
    plan = SMALL[name]
    world = simulated(tmp_path, plan)
    try:
        for verb in VERBS.values():
            kinds = {re.sub(r"\d+", "", target): target for target in targets(plan, verb.name)}
            for target in kinds.values():
                fault = world.active.inject(verb.name, target, verb.argument.high if verb.argument else None)
                assert seen(world) == meant(world, [fault] if verb.lasting else [])
                if verb.lasting:
                    world.active.undo(fault)
                    assert seen(world) == meant(world, [])
        assert world.verify() == 0
    finally:
        world.close()


def test_a_drain_adds_to_what_others_deny_and_takes_back_only_its_own(world: World) -> None:
    before = denied(world, H0)
    assert before == set(OWN["h0"])
    drain = world.active.inject("drain", "p0s0")
    assert ("h2", 0xC000) in denied_evs(TINY, H0, [drain])  # both want this one denied
    assert denied(world, H0) == {*before, *denied_evs(TINY, H0, [drain])}
    cut = world.active.inject("link-down", "p1l0-p1s0")
    assert denied(world, H0) == {*before, *denied_evs(TINY, H0, [drain])}
    world.active.undo(drain)
    assert denied(world, H0) == before
    world.active.undo(cut)
    assert denied(world, H0) == before


def test_two_drains_that_share_paths_are_undone_in_either_order(world: World) -> None:
    leaf, spine = world.active.inject("drain", "p0l0"), world.active.inject("drain", "p0s0")
    world.active.undo(leaf)
    assert denied(world, H0) == {*OWN["h0"], *denied_evs(TINY, H0, [spine])}
    world.active.undo(spine)
    assert denied(world, H0) == set(OWN["h0"])


class Nothing:
    """A fabric on paper."""

    def refusal(self, change: object) -> None:
        return None

    def carry_out(self, change: object) -> None:
        pass


def refusals(place: ActiveFaults) -> list[str]:
    """What this place says to every kind of thing that cannot be."""
    said = []

    def note(act: Any, *words: Any) -> None:
        with pytest.raises((ValueError, RuntimeError)) as caught:
            act(*words)
        said.append(str(caught.value))

    held = place.inject("link-down", "p0l0-p0s0", None, 0)
    note(place.inject, "link-down", "p0s0-p0l0", None, 0)
    note(place.inject, "explode", "p0l0-p0s0", None, 0)
    note(place.inject, "loss", "p0l0-p0s0", 300.0, 0)
    note(place.inject, "switch-stop", "h0", None, 0)
    note(place.undo, Fault("switch-stop", "p1s1"))
    place.undo(held)
    note(place.undo, held)
    note(place.undo, place.inject("switch-reboot", "p1s1", None, 0))
    return said


def test_what_is_refused_is_refused_in_the_same_words_as_on_paper(world: World) -> None:
    said = refusals(world.active)
    assert said == refusals(ActiveFaults(TINY, Nothing()))
    assert said[0] == "link-down p0l0-p0s0 is in force already; undo it first"
    assert said[-1] == "switch-reboot p1s1 is not in force; faults in force: none"


@pytest.mark.parametrize("scales", [False, True])
def test_a_slower_port_keeps_its_queues_or_has_them_scaled(scales: bool, tmp_path: Path) -> None:
    """htsim gives a link at a quarter a quarter of the queue and of both ECN thresholds."""
    lab = load_plan("lab")
    plan = replace(lab, queues=replace(lab.queues, scale_with_rate=scales))
    leaf = plan.switch_node("p0l0")
    port = port_towards(plan, leaf, plan.switch_node("p0s0"))
    usual, slow = tables(plan, leaf, virtual_time=True), tables(plan, leaf, shares={port: 0.25}, virtual_time=True)
    world = simulated(tmp_path, plan)
    try:
        switch: Any = world.fabric.switches[leaf]
        fault = world.active.inject("rate", "p0l0>p0s0", plan.links.fabric_rate_bps / 4e6)
        assert switch._control.install(slow if scales else usual) == 0
        crash = world.active.inject("switch-crash", "p0l0")
        world.active.undo(crash)
        assert switch._control.install(slow if scales else usual) == switch.differences() == 0
        world.active.undo(fault)
        assert switch._control.install(usual) == 0
    finally:
        world.close()
    rows = ([entry for entry in entities if isinstance(entry, TableEntry)] for entities in (usual, slow))
    changed = [(old.args, new.args) for old, new in zip(*rows, strict=True) if old != new]
    assert [(old[0], new[0]) for old, new in changed] == [(47, 12), (16, 4), (16, 4), (47, 12)] + 4 * [(3, 1)]
    assert {new for old, new in changed if old == (3, 13)} == {(1, 3)}
