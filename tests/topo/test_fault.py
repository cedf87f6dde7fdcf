"""Faults as values: verbs, targets and numbers, what is refused by name, and what a set of them means for a fabric."""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cli.commands.lab import fault_json
from topo.emulation.lab import Lab
from topo.fault import (
    VERBS,
    ActiveFaults,
    CarrierChange,
    DenialChange,
    Fault,
    FaultError,
    PortChange,
    Provisioning,
    RoutingChange,
    SwitchChange,
    arrival,
    conditions,
    dead_links,
    healthy,
    make_fault,
    port_states,
    switch_state,
    targets as targets_of,
)
from topo.fault.active_faults import MemoryRecord, RefusedFaultError, changes
from topo.fault.meaning import carriers_off, denied_evs
from topo.graph import PortRef, peer, ports
from topo.node import Host, leaf, spine
from topo.path import evs, path_of_ev, paths
from topo.planfile import load_plan

LAB = load_plan("lab")
UP = PortRef(leaf(1, 0), 5)  # p1l0 towards p1s2
DOWN = peer(LAB, UP)


def test_a_link_fault_touches_both_ends_and_a_one_way_fault_the_transmitter():
    assert set(port_states(LAB, [make_fault(LAB, "link-down", "p1l0-p1s2")])) == {UP, DOWN}
    assert set(port_states(LAB, [make_fault(LAB, "link-down", "p1s2–p1l0")])) == {UP, DOWN}
    assert set(port_states(LAB, [make_fault(LAB, "blackhole", "p1l0>p1s2")])) == {UP}
    assert set(port_states(LAB, [make_fault(LAB, "blackhole", "p1s2>p1l0")])) == {DOWN}


def test_each_number_lands_in_its_unit_and_losses_compound_to_a_total_one():
    states = port_states(
        LAB,
        [
            make_fault(LAB, "loss", "p1l0>p1s2", 20, seed=7),
            make_fault(LAB, "delay", "p1l0>p1s2", 2.5),
            make_fault(LAB, "rate", "p1l0>p1s2", 1.5),
        ],
    )
    loss: Any = pytest.approx(0.2)
    expected = replace(healthy(LAB, UP), loss=loss, delay_ns=2_500_000, rate_bps=1_500_000, loss_seed=7)
    assert states == {UP: expected}
    losses = [make_fault(LAB, "loss", "p1l0>p1s2", 50), make_fault(LAB, "loss", "p1l0-p1s2", 50)]
    assert port_states(LAB, losses)[UP].loss == pytest.approx(0.75)
    assert port_states(LAB, [*losses, make_fault(LAB, "blackhole", "p1l0-p1s2")])[UP].loss == 1.0


def seeded(verb: str, seed: int) -> Fault:
    spec = VERBS[verb]
    target = {"link": "p1s2-p1l0", "nic port": "h5.p2", "nic": "h5", "switch": "p1s2"}[spec.target]
    if spec.one_way:
        target = "p1s2>p1l0"
    return make_fault(LAB, verb, target, spec.argument.high / 2 if spec.argument else None, seed)


@pytest.mark.parametrize("verb", VERBS)
def test_seeds_tell_two_faults_apart_exactly_where_something_is_drawn_by_chance(verb):
    one, other = seeded(verb, 1), seeded(verb, 2)
    assert (one != other) == VERBS[verb].chance == (port_states(LAB, [one]) != port_states(LAB, [other]))


def test_a_dark_port_or_transceiver_takes_the_carrier_of_both_ends_of_its_ports_and_of_no_other():
    states = port_states(LAB, [make_fault(LAB, "port-down", "h5.p2")])
    assert {str(ref): state.up for ref, state in states.items()} == {"h5:3": False, "p2l2:2": False}
    states = port_states(LAB, [make_fault(LAB, "optics-down", "h5")])
    assert {str(ref): state.up for ref, state in states.items()} == {
        f"{place}": False for plane in range(4) for place in (f"h5:{plane + 1}", f"p{plane}l2:2")
    }
    dark = carriers_off(LAB, [make_fault(LAB, "optics-down", "h5")])
    assert {str(ref) for ref in dark} == {"h5:1", "h5:2", "h5:3", "h5:4"}
    assert list(targets_of(LAB, "optics-down")) == [f"h{index}" for index in range(8)]


def test_a_drained_port_is_denied_at_both_ends_and_told_on_its_paths_and_loses_nothing():
    drain = make_fault(LAB, "drain-port", "h0.p1")
    for host in LAB.hosts():
        denied = {(other, ev) for other, ev in denied_evs(LAB, host, [drain])}
        expected = {
            (other.name, ev)
            for other in LAB.hosts()
            if other != host and Host(0) in (host, other)
            for ev, path in evs(LAB, host, other)
            if path.plane == 1
        }
        assert denied == expected
        assert bool(denied)
    single = LAB.single_plane()
    assert denied_evs(single, Host(0), [make_fault(single, "drain-port", "h0.p0")]) == []
    by_plane = {path.plane: conditions(LAB, [drain], path) for path in paths(LAB, Host(0), Host(7))}
    (told,) = by_plane[1]
    assert str(told) == "h0>p1l0 is drained: NICs send nothing by it (fault: drain-port h0.p1)"
    assert arrival(by_plane[1]) == 1.0
    assert by_plane[0] == []


def test_a_crash_outranks_a_stop():
    stop, crash = make_fault(LAB, "switch-stop", "p1s2"), make_fault(LAB, "switch-crash", "p1s2")
    assert switch_state([], spine(1, 2)) == "running"
    assert switch_state([stop], spine(1, 2)) == "stopped"
    assert switch_state([crash, stop], spine(1, 2)) == "crashed"
    assert switch_state([crash, stop], spine(1, 3)) == "running"
    assert switch_state([make_fault(LAB, "switch-reboot", "p1s2")], spine(1, 2)) == "crashed"


@pytest.mark.parametrize("name", ["p1s2", "p0l1"])
def test_draining_denies_exactly_the_paths_across_the_switch(name):
    drain = make_fault(LAB, "drain", name)
    for host in LAB.hosts():
        denied = denied_evs(LAB, host, [drain])
        assert len(set(denied)) == len(denied)
        for other, ev in denied:
            assert name in [switch.name for switch in path_of_ev(LAB, host, LAB.host(other), ev).switches]
    # h0 sits under leaf 0: six of its seven peers are across spines, two of them under leaf 1.
    expected = 6 if name == "p1s2" else 2 * 4
    assert len(denied_evs(LAB, Host(0), [drain])) == expected
    single = LAB.single_plane()
    assert denied_evs(single, Host(0), [make_fault(single, "drain", "p0s1")]) == []


def test_draining_a_leaf_denies_every_ev_between_two_hosts_under_it():
    """Under one leaf a plane has one path and as many EVs as spines; all of them cross the leaf."""
    local = [(ev, path.plane) for ev, path in evs(LAB, Host(2), Host(3))]
    denied = [ev for name, ev in denied_evs(LAB, Host(2), [make_fault(LAB, "drain", "p0l1")]) if name == "h3"]
    assert denied == [ev for ev, plane in local if plane == 0]
    assert len(denied) == 4


names = st.sampled_from(["p0l0", "p1s2", "h3", "h3.p2", "p9l0", "h99", "", "-", "p0l0p0s0"])
targets = st.text(max_size=12) | st.tuples(names, st.sampled_from("->–. "), names).map("".join)


@given(st.sampled_from(sorted(VERBS)) | st.text(max_size=8), targets, st.none() | st.floats(), st.integers())
def test_any_words_are_a_fault_or_refused_as_one(verb, target, value, seed):
    try:
        made = make_fault(LAB, verb, target, value, seed)
    except FaultError:
        return  # anything else fails the test
    assert make_fault(LAB, made.verb, made.target, made.value, made.seed) == made
    port_states(LAB, [made])


@pytest.mark.parametrize(
    ("verb", "target", "value", "words"),
    [
        ("explode", "p0l0-p0s0", None, ["no fault 'explode'", "link-down", "drain"]),
        ("loss", "p0l0-p0s0", None, ["loss: percent", "must be a number between 0 and 100 (got none)"]),
        ("loss", "p0l0-p0s0", 101, ["between 0 and 100 (got 101)"]),
        ("link-down", "p0l0-p0s0", 3, ["without a number (got 3)"]),
        ("link-down", "p0l0>p0s0", None, ["both directions", "p0l0-p0s0"]),
        ("link-down", "p0l0-p0l1", None, ["no link p0l0–p0l1", "p0s3"]),
        ("link-down", "p0l0", None, ["must be a link", "p0l0-p0s1"]),
        ("blackhole", "p0l0-p0s9", None, ["no p0s9", "p0s0 to p3s3"]),
        ("port-down", "h9.p0", None, ["no h9", "h0 to h7"]),
        ("port-down", "h1.p4", None, ["no port in plane 4", "0 to 3"]),
        ("port-down", "p0l0-p0s0", None, ["must be a NIC port", "h3.p2"]),
        ("optics-down", "h3.p2", None, ["must be a host", "h3.p2"]),
        ("optics-down", "h9", None, ["no h9", "h0 to h7"]),
        ("drain-port", "h3", None, ["must be a NIC port", "h3.p2"]),
        ("switch-stop", "h3", None, ["h3 is a host", "switch"]),
        ("delay", "h0>p0l0", 3, ["transmit side of h0", "p0l0>h0"]),
    ],
)
def test_a_wrong_fault_is_refused_by_name(verb, target, value, words):
    with pytest.raises(FaultError) as caught:
        make_fault(LAB, verb, target, value)
    for word in words:
        assert word in str(caught.value)


def test_a_fault_that_a_switch_kind_cannot_do_is_refused_by_name():
    mixed = replace(LAB, switch_overrides={"p0s1": "linux"})
    with pytest.raises(FaultError, match=r"delay: p0s1 is a linux switch.*linux can do link-down, blackhole, loss"):
        make_fault(mixed, "delay", "p0l0-p0s1", 3)
    make_fault(mixed, "delay", "p0l0>p0s1", 3)
    bmv2 = replace(LAB, switch="bmv2")
    make_fault(bmv2, "rate", "p0l0-p0s1", 3)
    assert all(verb.kinds for verb in VERBS.values())


def test_routing_sees_dead_links_and_switches_but_no_grey_ones():
    plan = load_plan("tiny").single_plane()
    faults = [
        make_fault(plan, "link-down", "p0l0-p0s1"),
        make_fault(plan, "loss", "p0l1-p0s1", 20.0),
        make_fault(plan, "switch-crash", "p0s0"),
        make_fault(plan, "switch-crash", "p0l1"),
    ]
    assert {frozenset(link) for link in dead_links(plan, faults)} == {
        frozenset(pair) for pair in [("p0l0", "p0s1"), ("p0s0", "p0l0"), ("p0s0", "p0l1"), ("p0l1", "p0s1")]
    }


ROOT = Path(__file__).resolve().parents[2]
TABLE = "topo/fault/verb.py"
SCANNED = (
    "common", "controller", "endpoint", "switch", "topo", "cli/commands", "judging", "running",
    "scenarios/scenario.py", "running/worlds",
)  # fmt: skip
SPEAKING = {name for name in VERBS if "-" in name or name == "blackhole"}
"""Names that mean nothing but the verb; the others are also words of English and names of fields."""

# Where a plain word is a key of something else, with what it is there.
OTHER_MEANINGS = {
    ("topo/fault/condition.py", "loss"): "a key of a path's condition in JSON",
    ("running/view/lab_view.py", "loss"): "a port's share of lost packets in JSON",
    ("judging/jobs.py", "loss"): "what a training job minimises",
    ("judging/reports/plots.py", "loss"): "what a training job minimises",
    ("switch/reference/externs.py", "rate"): "a slot of a meter's bucket",
    ("endpoint/mrc/paths/ev_state.py", "loss"): "why a path's state changed",
    ("endpoint/mrc/algorithms.py", "loss"): "the setting that names a loss rule",
    ("endpoint/mrc/seams/guards.py", "loss"): "the setting that names a loss rule",
    ("endpoint/plugins.py", "loss"): "the setting that names a loss rule",
    ("running/options.py", "rate"): "the option of a run",
    ("cli/commands/seeds/sweep.py", "rate"): "the option of a run",
    ("cli/commands/seeds/contest.py", "rate"): "the option of a run",
    ("topo/show.py", "rate"): "the function that writes one",
}


def modules() -> Iterator[tuple[str, str]]:
    for place in SCANNED:
        for path in sorted((ROOT / place).rglob("*.py")) or [ROOT / place]:
            name = path.relative_to(ROOT).as_posix()
            if name != TABLE:
                yield name, path.read_text()


def strings(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def comments(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def spelled(name: str, text: str) -> list[str]:
    """The verbs that a module spells: speaking names anywhere in strings and comments, the others as whole strings."""
    held = list(strings(text))
    everything = "\n".join([*held, *comments(text)])
    found = {verb for verb in SPEAKING if verb in everything}
    found |= {verb for verb in set(VERBS) - SPEAKING if verb in held and (name, verb) not in OTHER_MEANINGS}
    return sorted(found)


@pytest.mark.smoke
def test_no_verb_is_spelled_outside_the_table() -> None:
    some = re.compile("|".join([*SPEAKING, *(f"[\"']{verb}[\"']" for verb in set(VERBS) - SPEAKING)]))
    assert {name: found for name, text in modules() if some.search(text) and (found := spelled(name, text))} == {}


def test_every_exception_is_still_needed() -> None:
    places = {name for name, _ in OTHER_MEANINGS}
    held = {name: set(strings(text)) for name, text in modules() if name in places}
    assert [key for key in OTHER_MEANINGS if key[1] not in held.get(key[0], set())] == []


@pytest.mark.parametrize("verb", VERBS)
def test_a_fault_says_its_number_with_the_unit_and_whether_it_lasts(verb: str) -> None:
    argument = VERBS[verb].argument
    fault = Fault(verb, "p0l0-p0s0", None if argument is None else argument.low)
    told = json.loads(json.dumps(fault_json(fault)))
    assert (told["verb"], told["target"], told["lasting"]) == (verb, "p0l0-p0s0", VERBS[verb].lasting)
    expected = (None, None) if argument is None else (argument.low, argument.name)
    assert (told.get("value"), told.get("unit")) == expected


def words(*line: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "cli", *line]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)


@pytest.mark.root
def test_faults_injected_and_in_force_are_json_and_nothing_else_is_printed(private_run: None) -> None:
    lab = Lab.up(load_plan("tiny", {"switch": "linux"}))
    try:
        assert json.loads(words("fault", "--format", "json").stdout) == []
        made = words("fault", "loss", "p0l0>p0s0", "20", "--format", "json")
        assert made.stderr == ""
        loss = {"verb": "loss", "target": "p0l0>p0s0", "value": 20.0, "unit": "percent", "lasting": True}
        assert json.loads(made.stdout) == loss
        down = {"verb": "link-down", "target": "p1l0-p1s1", "lasting": True}
        assert json.loads(words("fault", "link-down", "p1l0", "p1s1", "--format", "json").stdout) == down
        assert json.loads(words("fault", "--format", "json").stdout) == [loss, down]
        refused = words("fault", "loss", "p0l0>p0s0", "200", "--format", "json")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "percent" in refused.stderr
    finally:
        lab.down()


TINY = load_plan("tiny")
CUT = make_fault(TINY, "link-down", "p0l0-p0s0")
CRASH = make_fault(TINY, "switch-crash", "p0s0")
LOSS = make_fault(TINY, "loss", "p0s0>p0l0", 20.0)
UPPER, LOWER = PortRef(spine(0, 0), 1), PortRef(leaf(0, 0), 3)


def test_a_switch_knows_that_its_port_is_down_before_the_cable_is_and_that_it_is_up_only_afterwards():
    down = [(type(change), getattr(change, "ref", None)) for change in changes(TINY, [], [CUT])[:4]]
    assert down == [(PortChange, LOWER), (PortChange, UPPER), (CarrierChange, LOWER), (CarrierChange, UPPER)]
    up = [(type(change), getattr(change, "ref", None)) for change in changes(TINY, [CUT], [])[:4]]
    assert up == [(CarrierChange, LOWER), (CarrierChange, UPPER), (PortChange, LOWER), (PortChange, UPPER)]


def test_a_switch_that_comes_back_from_a_crash_gets_its_ports_faults_before_its_tables():
    (start, port, tables, routing) = changes(TINY, [LOSS, CRASH], [LOSS])
    assert start == SwitchChange(spine(0, 0), "running", "crashed")
    assert isinstance(port, PortChange)
    assert (port.ref, port.before) == (UPPER, healthy(TINY, UPPER))
    assert port.state.loss == pytest.approx(0.2)
    assert tables == Provisioning(spine(0, 0))
    assert routing == RoutingChange(frozenset())


def test_a_switch_that_was_stopped_when_it_crashed_is_stopped_again_and_carrier_that_comes_back_says_so():
    stop = make_fault(TINY, "switch-stop", "p0s0")
    told = [change for change in changes(TINY, [stop, CRASH], [stop]) if not isinstance(change, RoutingChange)]
    assert told == [
        SwitchChange(spine(0, 0), "running", "crashed"),
        Provisioning(spine(0, 0)),
        SwitchChange(spine(0, 0), "stopped", "running"),
    ]
    healed = changes(TINY, [CUT, CRASH], [CRASH])
    states = {change.ref: change.node for change in healed if isinstance(change, CarrierChange)}
    assert states == {LOWER: "running", UPPER: "crashed"}


class Fabric:
    """A model of a world: it holds what changes made of it, and nothing else."""

    def __init__(self):
        self.ports = {ref: healthy(TINY, ref) for node in TINY.nodes() for ref in ports(TINY, node)}
        self.off = set()
        self.switches = dict.fromkeys(TINY.switches(), "running")
        self.with_tables = set(TINY.switches())
        self.denied: dict[Host, set[tuple[str, int]]] = {host: set() for host in TINY.hosts()}
        self.dead: frozenset[tuple[str, str]] = frozenset()
        self.broken = False

    def refusal(self, change):
        return None

    def carry_out(self, change):
        if self.broken:
            raise OSError("the world is gone")
        match change:
            case PortChange():
                self.ports[change.ref] = change.state
            case CarrierChange():
                (self.off.discard if change.on else self.off.add)(change.ref)
            case SwitchChange():
                assert self.switches[change.switch] == change.before
                self.switches[change.switch] = change.state
                if change.state == "crashed":
                    self.with_tables.discard(change.switch)
            case Provisioning():
                self.with_tables.add(change.switch)
            case DenialChange():
                self.denied[change.host] = (self.denied[change.host] - change.remove) | change.add
            case RoutingChange():
                self.dead = change.dead


@st.composite
def injections(draw):
    verb = VERBS[draw(st.sampled_from(sorted(VERBS)))]
    target = draw(st.sampled_from(sorted(targets_of(TINY, verb.name))))
    number = draw(st.floats(verb.argument.low, verb.argument.high)) if verb.argument else None
    return make_fault(TINY, verb.name, target, number, draw(st.integers(0, 3)))


@given(st.lists(injections() | st.integers(0, 99), max_size=20))
def test_after_any_changes_a_fabric_is_what_the_faults_in_force_mean(told):
    fabric = Fabric()
    active = ActiveFaults(TINY, fabric)
    for action in told:
        in_force = active.faults()
        if isinstance(action, int):
            if in_force:
                active.undo(in_force[action % len(in_force)])
        elif action not in in_force:
            active.inject(action.verb, action.target, action.value, action.seed)
        faults = active.faults()
        states = port_states(TINY, faults)
        assert fabric.ports == {ref: states.get(ref) or healthy(TINY, ref) for ref in fabric.ports}
        assert fabric.switches == {switch: switch_state(faults, switch) for switch in TINY.switches()}
        assert fabric.with_tables == {node for node, state in fabric.switches.items() if state != "crashed"}
        assert fabric.denied == {host: set(denied_evs(TINY, host, faults)) for host in TINY.hosts()}
        assert fabric.dead == dead_links(TINY, faults)
        backwards = port_states(TINY, faults[::-1])
        assert states.keys() == backwards.keys()
        assert all(states[ref].up == state.up for ref, state in backwards.items())
        assert all(states[ref].loss == pytest.approx(state.loss) for ref, state in backwards.items())
    active.heal()
    assert fabric.__dict__ == Fabric().__dict__


def test_a_refused_fault_is_not_on_record_and_one_that_breaks_off_half_way_is_and_can_be_undone():
    class Refusing(Fabric):
        def refusal(self, change):
            return "p0l0: not here" if isinstance(change, CarrierChange) else None

    fabric: Fabric = Refusing()
    active = ActiveFaults(TINY, fabric)
    with pytest.raises(RefusedFaultError, match=r"^link-down p0l0-p0s0: p0l0: not here$"):
        active.inject("link-down", "p0s0-p0l0")
    assert active.faults() == []
    assert fabric.__dict__ == Fabric().__dict__
    fabric = Fabric()
    active = ActiveFaults(TINY, fabric)
    fabric.broken = True
    with pytest.raises(OSError, match="the world is gone"):
        active.inject("link-down", "p0l0-p0s0")
    assert active.faults() == [CUT]
    fabric.broken = False
    active.undo(CUT)
    assert fabric.__dict__ == Fabric().__dict__


def test_beginnings_and_ends_are_told_and_a_verb_that_does_not_last_has_both():
    lines = []

    class Told(MemoryRecord):
        def tell(self, fault, state):
            lines.append(f"{fault} {state}")

    active = ActiveFaults(TINY, Fabric(), Told())
    active.undo(active.inject("link-down", "p0l0-p0s0"))
    active.inject("switch-reboot", "p0s0")
    assert lines == [
        "link-down p0l0-p0s0 begin", "link-down p0l0-p0s0 end", "switch-reboot p0s0 begin", "switch-reboot p0s0 end",
    ]  # fmt: skip
    assert active.faults() == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_targets_in_every_plan_and_changes_something(verb):
    argument = VERBS[verb].argument
    for target in targets_of(TINY, verb):
        # The middle of the range: the ends of some are what the plan has anyway.
        number = (argument.low + argument.high) / 2 if argument else None
        assert changes(TINY, [], [make_fault(TINY, verb, target, number)])
