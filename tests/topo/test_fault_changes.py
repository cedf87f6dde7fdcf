"""What changes between two sets of faults, and the active faults that have a fabric carry them out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topo.fault import (
    VERBS,
    ActiveFaults,
    CarrierChange,
    DenialChange,
    PortChange,
    Provisioning,
    RoutingChange,
    SwitchChange,
    dead_links,
    healthy,
    make_fault,
    port_states,
    switch_state,
    targets,
)
from topo.fault.active_faults import MemoryRecord, RefusedFaultError, changes
from topo.fault.meaning import denied_evs
from topo.graph import PortRef, ports
from topo.node import Host, leaf, spine
from topo.planfile import load_plan

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
    target = draw(st.sampled_from(sorted(targets(TINY, verb.name))))
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
    for target in targets(TINY, verb):
        # The middle of the range: the ends of some are what the plan has anyway.
        number = (argument.low + argument.high) / 2 if argument else None
        assert changes(TINY, [], [make_fault(TINY, verb, target, number)])
