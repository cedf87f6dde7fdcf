"""Packets of lab 3: through the lab's P4 programs in reference interpreters that hold a student's rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random

from controller import DirectControl, compiled_pipelines
from course.box.box import BoxError
from course.labs.tables.rows import TableRow, others
from running.tracing import Explanation, Journey, data_frame, follow, outer_destination
from switch import PortConfig
from switch.p4rt import BatchError, P4RuntimeError
from switch.reference import ReferenceEngine, Trace
from topo import Host, Plan, Switch
from topo.fault import Fault
from topo.graph import ports
from topo.path import Path, paths

STEP_NS = 1_000_000_000  # between two packets through one switch: its queues are empty again


class StudentSwitches:
    """The switches of a plan with a student's rows beside the controller's own; an explainer for `follow`."""

    def __init__(self, plan: Plan, rows: Mapping[Switch, Sequence[TableRow]], name: str) -> None:
        self._plan, self._rows, self._name = plan, rows, name
        self._engines: dict[Switch, tuple[ReferenceEngine, Trace]] = {}
        self._now_ns = 0

    def _made(self, switch: Switch) -> tuple[ReferenceEngine, Trace]:
        """The engine of a switch, made when its first packet comes. BoxError for rows that it refuses."""
        if switch not in self._engines:
            trace = Trace()
            engine = ReferenceEngine(seed=0, trace=trace)
            own = [row.entity for row in self._rows[switch]]
            try:
                pipeline = compiled_pipelines()[switch.program]
                DirectControl(engine, pipeline).install([*others(self._plan, switch), *own])
            except (BatchError, P4RuntimeError) as error:
                raise BoxError(f"{self._name}: {switch} refuses the rows: {error}") from error
            for ref in ports(self._plan, switch):
                engine.configure_port(ref.port, PortConfig(), 0)
            self._engines[switch] = engine, trace
        return self._engines[switch]

    def faults(self) -> Sequence[Fault]:
        return ()

    def explain(self, switch: Switch, port: int, frame: bytes) -> Explanation:
        engine, trace = self._made(switch)
        trace.steps.clear()
        self._now_ns += STEP_NS
        engine.receive(port, frame, self._now_ns)
        sent = [(item.port, item.frame) for item in engine.advance(self._now_ns)]
        return Explanation([json.loads(step.json()) for step in trace.steps], trace.text(), sent)


def some_paths(plan: Plan, rng: Random, count: int) -> list[Path]:
    """Paths between drawn pairs of hosts, of two leaves and of one, that use every plane and spine."""
    hosts = list(plan.hosts())
    apart = [(a, b) for a in hosts for b in hosts if plan.leaf_of(a) != plan.leaf_of(b)]
    beside = [(a, b) for a in hosts for b in hosts if a != b and plan.leaf_of(a) == plan.leaf_of(b)]
    found = list(paths(plan, *rng.choice(apart)))
    every = [path for pairs in (apart, beside) for pair in rng.sample(pairs, 6) for path in paths(plan, *pair)]
    return found + rng.sample(every, max(0, min(len(every), count - len(found))))


def journey(plan: Plan, switches: StudentSwitches, path: Path) -> Journey:
    """A packet on a path."""
    return follow(plan, switches, path, data_frame(plan, path, 64))


def ended(journey: Journey, destination: Host) -> str:
    """Where a packet ended that has not arrived, in words."""
    if journey.reached is not None:
        return f"it reached {journey.reached} instead of {destination}"
    if not journey.hops:
        return "it never left"
    last = journey.hops[-1]
    if last.port_out is not None:
        return f"{last.switch} sent it to port {last.port_out}, which leads nowhere"
    return f"{last.switch} dropped it: no row of it leads on to {outer_destination(last.frame_in)}"
