"""One run of a scenario: phases, workloads and faults on time, everything journalled, the world taken down.

`prepare` is the way from a spec to a runner: it refuses what this machine or these faults cannot do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import controller
from common import files, plain_file
from common.client import ControlTimeoutError
from common.journal import Journal
from common.terminal.source_names import shown
from endpoint import WorkloadGroup, call
from endpoint.nic import AlgorithmError
from judging import units
from running import estimate
from running.directory import SCENARIO, RunDirectory
from running.estimate import Estimate, switch_sample_s
from running.programs import Programs
from running.spec import RunSpec
from running.timeline import Moment, moments, noticed, rehearse
from running.worlds.simulated import SimulatedWorld, collecting
from running.worlds.world import World, WorldGoneError
from scenarios import Phase, Workload, library
from topo.fault import VERBS, Fault, dead_links, make_fault

LOOK_S, LOOKS = 0.05, 50
"""How often a run that ends with its workloads looks whether they have: in seconds, of lab time where that is quicker
than the run's, and the share of its length."""

OVER = ("finished", "failed")
DRAIN_S = 30.0  # for a workload to finish its last round after it was told to stop

__all__ = ["PreparedRun", "launch", "make_run"]

MakeWorld = Callable[[], World]


class Runner:
    """Carries out a spec. `tell` is called with a line for the user at each thing that happens."""

    def __init__(self, spec: RunSpec, directory: RunDirectory, tell: Callable[[str], None]) -> None:
        self.spec = spec
        self.directory = directory
        self.tell = tell if not spec.plan.names else lambda line: tell(shown(line, spec.plan.names))
        self._clock: Callable[[], float] | None = None
        self._dead: set[tuple[str, str]] = set()  # links that the tables leave out

    def seconds(self) -> float | None:
        """The time since the first phase began, as reports tell it. None before that."""
        return self._clock() if self._clock is not None else None

    def write_choices(self) -> dict[str, Any]:
        """Write what was chosen into the folder: options, plan and the user's own scenario. Returns the options."""
        options = self.spec.options()
        self.directory.write_options(options)
        self.directory.write_plan(self.spec.choices.plan)
        if (file := library.own_file(options["source"])) is not None:
            files.write(self.directory.path / SCENARIO, plain_file.read_up_to(file))
        return options

    def run(self, make_world: MakeWorld) -> None:
        """The whole run. The world is always taken down; the journal stays."""
        options = self.write_choices()
        clock: Callable[[], int] = time.monotonic_ns if self.spec.choices.world == "emulated" else lambda: 0
        journal = Journal(self.directory.journal("runner"), "runner", lambda: clock())
        with ExitStack() as stack:
            stack.callback(journal.close)
            journal.write_process("runner")
            journal.write("options", **options)
            world: World | None = None
            try:
                world = make_world()
                clock = world.now_ns
                stack.callback(world.close)
                stack.callback(self.tell, "taking the world down")
                self._sample(world)
                self._phases(world, journal)
                self.tell("verifying tables")
                if self._dead:  # faults that last to the end of the run, or were undone after the last change
                    world.reconverge(())
                journal.write("tables", action="verify", differences=world.verify())
            except BaseException as error:
                gone = isinstance(error, Exception) and world is not None and not world.is_up(settled=True)
                why = str(WorldGoneError()) if gone else f"{type(error).__name__}: {error}"
                waited: dict[str, Any] = {"waited_s": error.waited_s} if isinstance(error, ControlTimeoutError) else {}
                journal.write("error", message=why, fatal=True, **waited)
                if isinstance(error, AlgorithmError):  # of the user's own: the run is judged, and is unknown
                    self.tell(str(error))
                    return
                if gone:
                    raise WorldGoneError from error
                raise

    def _sample(self, world: World) -> None:
        scenario = self.spec.scenario
        prober = scenario.prober if self.spec.choices.transport.agent == "mrc" else None
        sample_ns = self._ns(scenario.sample_s)
        world.sample_switches(self._ns(switch_sample_s(self.spec)))
        for client in world.clients.values():
            call(client, "sample", interval_ns=sample_ns, paths=scenario.sample_paths)
            if prober is not None:
                interval_ns = self._ns(prober.interval_s)
                call(client, "prober.start", interval_ns=interval_ns, window=prober.window, deny=prober.deny)

    def _ns(self, seconds: float) -> int:
        """Seconds of lab time, in nanoseconds of the run."""
        return round(seconds * self.spec.choices.pace * 1e9)

    def _phases(self, world: World, journal: Journal) -> None:
        starts_s, length_s = self.spec.starts_s, self.spec.seconds
        workloads = self.spec.workloads()
        groups = {workload.name: group(workload, world) for workload in workloads}
        agenda: list[tuple[float, int, Callable[[], object]]] = [(length_s, 1, lambda: None)]
        for phase in self.spec.phases:
            if phase.seconds > 0:
                begin_s = starts_s[phase.name]
                agenda.append((begin_s, 2, partial(self._mark, journal, phase, "start")))
                agenda.append((begin_s + phase.seconds, 0, partial(self._mark, journal, phase, "stop")))
                if self.spec.scenario.count_records:
                    agenda.append((begin_s + phase.seconds, 1, partial(self._count, world, phase)))
        programs = [Programs(program, world, self.directory, journal) for program in self.spec.programs()]
        for program in programs:
            agenda.append((starts_s[program.program.phase], 3, program.start))
        for workload in workloads:
            agenda.append((starts_s[workload.phase], 3, partial(start, groups[workload.name], world)))
        timeline = moments(self.spec.faults(), starts_s)
        for moment in timeline:
            agenda.append((moment.at_s, 4, partial(self._carry_out, world, journal, moment)))
        if self.spec.choices.reconvergence_s is not None:
            for at_s in noticed(self.spec.plan, timeline):
                agenda.append((at_s + self.spec.choices.reconvergence_s, 5, partial(self._reconverge, world)))
        origin_ns = world.now_ns()
        self._clock = lambda: (world.now_ns() - origin_ns) / 1e9
        if self.spec.choices.record_packets_s is not None:
            start_ns, stop_ns = (origin_ns + self._ns(at_s) for at_s in self.spec.choices.record_packets_s)
            world.record_packets(start_ns, stop_ns, self.directory.packets)
        until_s = float("inf") if self.spec.choices.until_s is None else self.spec.choices.until_s
        for at_s, _, act in sorted(agenda, key=lambda item: item[:2]):
            if at_s > until_s:
                world.wait_until(origin_ns + self._ns(until_s))
                self.tell("broken off, as --until says")
                break
            if not self._wait(world, [*groups.values(), *programs], origin_ns, origin_ns + self._ns(at_s)):
                ended_s = (world.now_ns() - origin_ns) / 1e9 / self.spec.choices.pace
                self._mark(journal, self.spec.phase_at(ended_s), "stop")
                self._undo(world, journal, timeline)
                break
            act()
        self.tell("draining workloads")
        for running in groups.values():
            running.stop()
        drain_s = DRAIN_S * self.spec.choices.pace if self.spec.checks() else 0.0  # calibration is not judged
        for program in programs:
            program.end(program.program.patience_s * self.spec.choices.pace)
        for name, running in groups.items():
            stuck = {host: status for host, status in running.wait(drain_s).items() if status["state"] != "finished"}
            for host, status in stuck.items():
                journal.write("error", message=f"workload {name} on {host} is {status['state']}", fatal=False)
            if stuck:
                running.remove()  # every rank then journals its part

    def _wait(self, world: World, work: Sequence[WorkloadGroup | Programs], origin_ns: int, until_ns: int) -> bool:
        """Let time pass up to an instant; False when all work is over before it, and the scenario ends then."""
        if not self.spec.scenario.until_done:
            world.wait_until(until_ns)
            return True
        while (now_ns := world.now_ns()) < until_ns:
            if now_ns > origin_ns and all(over(part) for part in work):
                self.tell("all workloads have ended")
                return False
            asked = any(isinstance(part, WorkloadGroup) for part in work)  # agents, which a look costs time
            quick_ns = round(min(1.0, self.spec.choices.pace) * LOOK_S * 1e9)
            look_ns = max(quick_ns, (now_ns - origin_ns) // LOOKS if asked else 0)
            world.wait_until(min(until_ns, now_ns + look_ns))
        return True

    def _reconverge(self, world: World) -> None:
        self._dead = dead_links(self.spec.plan, world.active.faults())
        world.reconverge(self._dead)
        links = ", ".join(sorted("-".join(link) for link in self._dead))
        self.tell(f"routes leave out {links}" if links else "routes have all links again")

    def _mark(self, journal: Journal, phase: Phase, state: str) -> None:
        journal.write("phase", name=phase.name, state=state)
        if state == "start":
            self.tell(f"phase {phase.name}, {phase_length(phase, self.spec.choices.pace)}")

    def _count(self, world: World, phase: Phase) -> None:
        for client in world.clients.values():
            call(client, "records", label=phase.name)

    def _undo(self, world: World, journal: Journal, timeline: Sequence[Moment]) -> None:
        """Undo what is in force of a timeline that ends early: a switch that is down, for one, holds no tables."""
        for moment in timeline:
            if not moment.begin and self._fault(moment) in world.active.faults():
                self._carry_out(world, journal, moment)

    def _fault(self, moment: Moment) -> Fault:
        timed = moment.fault
        return make_fault(self.spec.plan, timed.verb, timed.target, timed.value, timed.seed)

    def _carry_out(self, world: World, journal: Journal, moment: Moment) -> None:
        """Inject or undo a fault of the timeline, unless a person has done so by hand already."""
        fault = self._fault(moment)
        what = str(fault) + ("" if moment.begin else " undone")
        if (fault in world.active.faults()) == moment.begin and VERBS[fault.verb].lasting:
            self.tell(f"{what}: by hand already")
            return
        # Written first, because hosts and switches journal the fault's effects before `inject` returns.
        journal.write("fault", **fault.line("begin" if moment.begin else "end"))
        if moment.begin:
            world.active.inject(fault.verb, fault.target, fault.value, fault.seed)
        elif VERBS[fault.verb].lasting:
            world.active.undo(fault)
        self.tell(what)


def group(workload: Workload, world: World) -> WorkloadGroup:
    """The workload on all its ranks, prepared and connected."""
    ranks = list(workload.ranks) if workload.ranks is not None else list(world.clients)
    return WorkloadGroup(
        world.clients, name=workload.name, kind=workload.kind, ranks=ranks, options=workload.options, clock=world.now_ns
    )


def start(running: WorkloadGroup, world: World) -> None:
    """Start a workload now, on all its ranks."""
    running.start(world.now_ns())


def over(running: WorkloadGroup | Programs) -> bool:
    """Whether every rank of a workload, or process of a program, has ended."""
    if isinstance(running, Programs):
        return running.over()
    return all(status["state"] in OVER for status in running.status().values())


def phase_length(phase: Phase, pace: float) -> str:
    """How long a phase takes in the run's own time."""
    return f"{phase.seconds:g} s" if pace == 1 else units.lasting(phase.seconds * pace * units.SECOND_NS, pace)


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A spec that was checked, and what the run will take. Only `prepare` makes one, and only this makes runners."""

    spec: RunSpec
    needed: Estimate

    def runner(self, directory: RunDirectory, tell: Callable[[str], None] = lambda event: None) -> Runner:
        """The runner that carries the spec out in that folder."""
        return Runner(self.spec, directory, tell)


def prepare(spec: RunSpec) -> PreparedRun:
    """The run, checked. ValueError names what is wrong: memory, tables too small, impossible faults."""
    needed = estimate.check(spec)
    controller.check(spec.plan)
    rehearse(spec)
    return PreparedRun(spec, needed)


def launch(runner: Runner, opened: Callable[[MakeWorld], MakeWorld] = lambda make_world: make_world) -> None:
    """Carry the run out. `opened` wraps what makes the world, for a page that may interfere with it."""
    spec, directory = runner.spec, runner.directory
    given = spec.plan, spec.choices.transport, spec.seed, directory, runner.tell
    if spec.choices.world == "simulated":
        with collecting():
            runner.run(opened(partial(SimulatedWorld, *given)))
        return
    from running.worlds.emulated import EmulatedWorld  # late: virtual time needs neither Mininet nor namespaces

    runner.run(opened(partial(EmulatedWorld, *given)))


def make_run(spec: RunSpec, root: Path) -> Path:
    """The folder, below `root`, of the run that was made. ValueError for a run that cannot be made here."""
    prepared = prepare(spec)
    directory = RunDirectory.create(root, spec.scenario.name, spec.seed)
    launch(prepared.runner(directory))
    return directory.path
