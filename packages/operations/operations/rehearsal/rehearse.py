"""Runs of a change on many seeds in virtual time, and what they say: how often the job notices, at which step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import inf
from pathlib import Path as FilePath
from random import Random
from typing import NamedTuple

from common.seeds import Purpose, derive
from judging import Run
from judging.measures import goodput, steps
from operations.rehearsal.change import ACTIONS, ChangeStep, Planned
from running import Choices, RunSpec
from running.document import spec_of, written
from running.runner import make_run
from running.transport_choice import transport
from scenarios import Phase, PlainScenario, Setting, TimedFault, training_loop
from studies.farm import Engine, Inline, Job, folder
from studies.sweeping import PairedDifference, Share, difference, share
from topo import Plan, Switch
from topo.fault import VERBS, Fault, arrival, avoidance, conditions, make_fault
from topo.graph import links
from topo.path import Path, paths

NAME = "rehearsal"
WARMUP_S, REFERENCE_S, HEAL_S = 1.5, 6.0, 1.0
FLAP_S = (0.3, 1.5)
MODELLED = (
    "This answers for the model: the same transport and P4 programs in virtual time, at the plan's rates, one training"
    " job, and cables that flap at random. It leaves out people, optics that fail slowly, control planes, firmware,"
    " power, and jobs that share the fabric."
)


REAL = (
    "This answers for real links on this machine: the pauses of the machine are in it. It leaves out people, optics"
    " that fail slowly, control planes, firmware, power, and jobs that share the fabric."
)


@dataclass(frozen=True, slots=True)
class RehearsedRun:
    """One run. `slowdown` is the longest training step against the reference; `step` the change's step before it."""

    seed: int
    noticed: bool
    slowdown: float
    goodput_kept: float
    errors: int
    step: int | None
    background: tuple[TimedFault, ...]
    flaps: int
    folder: FilePath | None = field(default=None, compare=False)
    """Of a run on real links, which cannot be made again."""
    usual_ms: float = 0.0
    """A training step of the reference."""
    lost_steps: float = 0.0
    """The time that the steps of the change took beyond the usual, in usual steps."""


@dataclass(frozen=True, slots=True)
class RehearsalResult:
    """All runs of one change. `outage_s` is how long some pair of hosts has no path by the change alone."""

    planned: Planned
    outcomes: Sequence[RehearsedRun]
    hunted: Sequence[RehearsedRun]
    noticed: Share
    outage_s: float

    @property
    def answers_for(self) -> str:
        """The world of the runs, and what it leaves out."""
        return REAL if self.outcomes and self.outcomes[0].folder else MODELLED

    @property
    def worst(self) -> RehearsedRun:
        """The run in which the job lost most, hunted ones included."""
        return max((*self.outcomes, *self.hunted), key=lambda run: (run.noticed, run.slowdown, -run.goodput_kept))

    @property
    def verdict(self) -> str:
        """`safe`, `not safe`, or `unknown` while the interval leaves it open."""
        if self.outage_s > 0 or self.noticed.low > self.planned.safe:
            return "not safe"
        return "safe" if self.noticed.high <= self.planned.safe else "unknown"

    def by_step(self) -> list[int]:
        """How many runs noticed at each step."""
        return [sum(run.noticed and run.step == n for run in self.outcomes) for n in range(len(self.planned.steps))]


def background(planned: Planned, seed: int, flaps: int) -> tuple[TimedFault, ...]:
    """The cables that flap beside the change in the run of a seed, but for those that the change touches itself."""
    rng = Random(derive(seed, Purpose.BACKGROUND))
    cables = [f"{link.a.node}-{link.b.node}" for link in links(planned.plan) if isinstance(link.a.node, Switch)]
    chosen = rng.sample(cables, min(flaps, len(cables)))
    touched = {  # in canonical spelling: a step may name a cable from its upper end
        make_fault(planned.plan, ACTIONS[step.action], step.target, step.value).target for step in planned.steps
    }
    faults = []
    for cable in chosen:
        for_s = round(rng.uniform(*FLAP_S), 3)
        at_s = round(rng.uniform(0.0, max(0.0, planned.seconds - for_s)), 3)
        if cable not in touched:
            faults.append(TimedFault(at_s, "link-down", cable, for_s))
    return tuple(faults)


def spec(planned: Planned, seed: int, flaps: int, world: str = "simulated") -> RunSpec:
    """One run of the change."""
    faults = (*(step.fault for step in planned.steps), *background(planned, seed, flaps))
    setting = Setting(planned.plan, "mrc", seed, {}, pace=planned.plan.pace)
    phases = (
        Phase("warmup", WARMUP_S),
        Phase("reference", REFERENCE_S),
        Phase("faults", planned.seconds),
        Phase("heal", HEAL_S),
    )
    scenario = PlainScenario(
        name=NAME,
        title=planned.name,
        description="A change that is rehearsed.",
        workloads=(training_loop(setting),),
        timeline=faults,
        phases=phases,
        sample_switches=True,
    )
    return RunSpec(scenario.scenario(planned.plan.name), Choices(transport("mrc"), planned.plan, seed, world=world))


class Seen(NamedTuple):
    """An effect on the job in a run. `at_s` is when the longest step ended, in the change; None: no step was longer."""

    seed: int
    slowdown: float
    at_s: float | None
    goodput_kept: float
    errors: int
    folder: str  # of a run that was kept
    usual_ms: float = 0.0
    lost_steps: float = 0.0


def rehearsed(
    planned: Planned,
    seeds: Sequence[int],
    tries: int = 0,
    tell: Callable[[RehearsedRun], None] = lambda outcome: None,
    real: FilePath | None = None,
    engine: Engine[Job, Seen] | None = None,
) -> RehearsalResult:
    """The change on all seeds, and `tries` more runs with more flapping cables, of which only the worst counts.

    With a folder `real` all runs are made on real links, and kept there. `engine` makes the runs; without one, this
    process does. ValueError for a change that cannot be run.
    """
    farm = engine or Inline(done)
    flaps = dict.fromkeys(seeds, planned.flaps)
    flaps |= {HUNT_SEEDS + number: planned.flaps + HUNT_FLAPS for number in range(tries)}
    world, keep = ("simulated", "") if real is None else ("emulated", str(real))
    for seed, count in flaps.items():
        farm.submit(
            Job(str(seed), written(spec(planned, seed, count, world)), f"seed {seed} of {planned.name}", keep=keep)
        )
    runs: dict[int, RehearsedRun] = {}
    for seed in flaps:  # told in this order, whichever ends first
        while seed not in runs:
            finished = farm.next()
            runs[finished.seed] = outcome(planned, finished, flaps[finished.seed])
        tell(runs[seed])
    outcomes, hunted = [runs[seed] for seed in seeds], [runs[seed] for seed in flaps if seed >= HUNT_SEEDS]
    noticed = share(sum(run.noticed for run in outcomes), len(outcomes))
    return RehearsalResult(planned, outcomes, hunted, noticed, outage_s(planned))


def done(scratch: str, job: Job) -> Seen:
    """The run, in any process."""
    if job.keep:
        kept = make_run(spec_of(job.run), FilePath(job.keep))
        return seen(job.seed, kept)._replace(folder=str(kept))
    with folder(scratch) as own:
        return seen(job.seed, make_run(spec_of(job.run), FilePath(own)))


HUNT_SEEDS, HUNT_FLAPS = 1_000_000, 3
"""The first seed of a hunt, and the cables that flap in it beside the usual ones."""


def outage_s(planned: Planned) -> float:
    """For how long, at least, some pair of hosts has no path, by the change's own steps.

    A reboot is over at once in virtual time, and still leaves no path for a moment: it counts for REBOOT_S.
    """
    plan = planned.plan
    spans = [_span(planned, step) for step in planned.steps]
    pairs = [list(paths(plan, *pair)) for pair in combinations(plan.hosts(), 2)]
    edges = sorted({edge for begin_s, end_s, _ in spans for edge in (begin_s, end_s)})
    total_s = 0.0
    for begin_s, end_s in pairwise(edges):
        active = [fault for start_s, stop_s, fault in spans if start_s <= begin_s < stop_s]
        if active and any(not any(usable(plan, active, path) for path in ways) for ways in pairs):
            total_s += end_s - begin_s
    return round(total_s, 6)


def usable(plan: Plan, active: Sequence[Fault], path: Path) -> bool:
    """Whether packets get along a path, and NICs may send there."""
    denied = avoidance(plan, active)
    return not (denied and denied(path)) and arrival(conditions(plan, active, path)) > 0


def _span(planned: Planned, step: ChangeStep) -> tuple[float, float, Fault]:
    timed = step.fault
    fault = make_fault(planned.plan, timed.verb, timed.target, timed.value, timed.seed)
    if not VERBS[timed.verb].lasting:
        crashed = make_fault(planned.plan, "switch-crash", timed.target)
        return timed.at_s, timed.at_s + REBOOT_S, crashed
    end_s = planned.seconds if timed.for_s is None else timed.at_s + timed.for_s
    return timed.at_s, end_s, fault


REBOOT_S = 0.001


def seen(seed: int, folder: FilePath) -> Seen:
    """The job's view of the run in this folder."""
    run = Run.open(folder)
    reference, during = run.phases["reference"], run.phases["faults"]
    every = steps.steps(run)
    usual = steps.times(steps.of_phase(every, reference))
    slowest, at_s, usual_ms, lost = 1.0, None, 0.0, 0.0
    if usual is not None:
        ends = [(step.total_ns, (step.end_ns - during.start_ns) / 1e9) for step in steps.of_phase(every, during)]
        usual_ms, stalled_ns = usual.median_ns / 1e6, steps.stalled_ns(every, during)
        beyond_ns = sum(took_ns - usual.median_ns for took_ns, _ in ends) + max(0, stalled_ns - usual.median_ns)
        lost = max(0.0, beyond_ns / usual.median_ns)
        for took_ns, end_s in [*ends, (stalled_ns, inf)]:
            if took_ns / usual.median_ns > slowest:
                slowest, at_s = took_ns / usual.median_ns, end_s
    before_bps = goodput.of_phase(run, reference)
    kept = (goodput.of_phase(run, during) or 0.0) / before_bps if before_bps else 0.0
    errors = sum(1 for line in run.kind("qp") if line.get("new") == "error")
    return Seen(seed, slowest, at_s, kept, errors, "", usual_ms, lost)


def outcome(planned: Planned, run: Seen, flaps: int) -> RehearsedRun:
    """The run's evidence about the change."""
    allowed, step = planned.noticed, None if run.at_s is None else _step_at(planned, run.at_s)
    noticed = run.slowdown > allowed.step_time or run.goodput_kept < allowed.goodput or run.errors > 0
    noticed |= allowed.step_ms is not None and run.slowdown * run.usual_ms > allowed.step_ms
    noticed |= allowed.tokens is not None and run.lost_steps * planned.tokens_per_step > allowed.tokens
    beside = background(planned, run.seed, flaps)
    kept = FilePath(run.folder) if run.folder else None
    shown = (run.slowdown, run.goodput_kept, run.errors, step, beside, flaps, kept, run.usual_ms, run.lost_steps)
    return RehearsedRun(run.seed, noticed, *shown)


def _step_at(planned: Planned, at_s: float) -> int | None:
    """The step of the change that began last before an instant."""
    begun = [n for n, step in enumerate(planned.steps) if step.at_s <= at_s]
    return max(begun, key=lambda n: planned.steps[n].at_s) if begun else None


def compared(first: RehearsalResult, second: RehearsalResult) -> PairedDifference | None:
    """How much longer the longest training step is in the second change, on the same seeds."""
    before, after = ({run.seed: run.slowdown for run in side.outcomes} for side in (first, second))
    return difference(before, after)
