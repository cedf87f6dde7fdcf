"""Runs of lab 10: the pair of figure 9a on the paper's cluster B, with a student's timeline and payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from course.box.box import BoxError
from course.exercise import StudentWork
from judging import Run
from paper import measuring
from paper.clock import Clock
from paper.cluster import B
from paper.figure import Measured
from paper.pair import pair
from running import Choices, RunSpec, prepare
from running.launch import made
from scenarios import TimedFault
from topo import Plan
from topo.fault import FaultError
from topo.plan import Packets

STEP_ROUND_TRIPS, LEAD_ROUND_TRIPS = 8, 24
SETTLE = 0.25
"""The first share of a step, in which windows settle."""
FAULTS_MAX = 32
Fault = tuple[float, str, str, float | None]
"""Step, verb, target, and the step in which it ends."""


def plan_of(payload: int) -> Plan:
    """Cluster B with so many bytes of payload in a packet."""
    return replace(B, packets=Packets(pmtu_bytes=payload))


def timeline(answer: object, steps: int, name: str) -> list[Fault]:
    """A student's timeline; a fault that lasts longer than the run has no end. BoxError says what an entry must be."""
    if not isinstance(answer, list) or len(answer) > FAULTS_MAX:
        raise BoxError(f"{name}: timeline must return a list of at most {FAULTS_MAX} faults (got {answer!r:.80})")
    found: list[Fault] = []
    for one in answer:
        at, verb, target, until = (*one, None)[:4] if isinstance(one, list) and len(one) in (3, 4) else (None,) * 4
        begins = type(at) in (int, float) and 0 <= at < steps
        ends = until is None or (begins and type(until) in (int, float) and until > at)
        if not begins or not isinstance(verb, str) or not isinstance(target, str) or not ends:
            raise BoxError(
                f"{name}: a fault must be (step, verb, target) or (step, verb, target, until) with a step from 0 to"
                f" {steps - 1}, such as (1, 'port-down', 'h0.p0') (got {one!r:.80})"
            )
        found.append((float(at), verb, target, None if until is None or until >= steps else float(until)))
    return found


def rates(work: StudentWork, name: str, payload: int, faults: Sequence[Fault], steps: int) -> list[float]:
    """Goodput of both directions together in each step, Gb/s. BoxError for faults that cannot be."""
    plan = plan_of(payload)
    clock = replace(Clock.round_trips(plan, STEP_ROUND_TRIPS), lead=LEAD_ROUND_TRIPS)
    timed: list[TimedFault] = []
    for at, verb, target, until in faults:
        if at < steps:
            timed.append(clock.fault(at, verb, target, until=None if until is None or until >= steps else until))
    part = pair(clock, steps, timed, lambda run: Measured({}), name=name)
    transport = replace(part.transport, payload="counted")
    choices = Choices(transport, plan, 1 + work.seed % 1000, world="simulated", short=True)
    spec = RunSpec(part.scenario("9a"), choices)
    try:
        prepare(spec)
    except (FaultError, ValueError) as error:
        raise BoxError(f"{work.path.name}: the timeline cannot be carried out: {error}") from None
    run = Run.open(made(spec, work.folder / "runs"))
    return [measuring.rate(run, clock, step + SETTLE, step + 1) for step in range(steps)]
