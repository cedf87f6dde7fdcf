"""One run of a scenario: phases, workloads and faults on time, everything journalled, the world taken down."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from common.client import ControlTimeoutError
from common.journal import Journal
from endpoint.group import Group
from judging import units
from running import identity
from running.added import words
from running.directory import RunDirectory
from running.programs import Programs
from running.timeline import Moment, moments, noticed
from running.transport_choice import TransportChoice
from running.worlds.world import World, WorldGoneError, call
from scenarios import library
from scenarios.scenario import Phase, Scenario, Setting, TimedFault, Workload, carried_out
from topo.fault import VERBS, dead_links, make_fault
from topo.plan import Plan
from topo.show import switch_kinds

DRAIN_S = 30.0  # for a workload to finish its last round after it was told to stop


@dataclass(frozen=True, slots=True)
class Choices:
    """Everything that a user can choose about a run; printed first and stored with it."""

    transport: TransportChoice
    plan: Plan
    seed: int
    world: str = "emulated"
    time_factor: float = 1.0  # of every phase's length, and so of every instant of the timeline
    stretch: float = 1.0  # on real links: how much longer a round trip takes than at the plan's own rate
    short: bool = False  # the scenario's short phases
    record_s: tuple[float, float] | None = None  # lab time from when to when packets are recorded, in virtual time
    until_s: float | None = None  # lab time at which the run is broken off, in virtual time
    reconvergence_s: float | None = None  # baseline: the time that routing needs to find its way around a dead link
    overrides: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # the transport's, as --setting gave them
    added: tuple[TimedFault, ...] = ()  # faults beside the scenario's own, at the usual lengths of its phases
    calibration: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""  # what the user called the scenario: a name or the path of a file
    plan_source: str = ""  # the same for the plan

    @property
    def running_plan(self) -> Plan:
        """The plan that is built: for the baseline, the single-plane equivalent."""
        return self.transport.fabric(self.plan)

    @property
    def pace(self) -> float:
        """Seconds of the run to a second of lab time: every length keeps its number of round trips.

        On real links no run is shorter for a faster lab: nobody waits long, and more round trips are more evidence.
        """
        return self.plan.pace if self.world == "simulated" else max(1.0, self.stretch)


MakeWorld = Callable[[], World]


class Runner:
    """Drives one run. `tell` is called with a line for the user at each thing that happens."""

    def __init__(
        self, scenario: Scenario, choices: Choices, directory: RunDirectory, tell: Callable[[str], None]
    ) -> None:
        self.scenario = scenario
        self.choices = choices
        self.directory = directory
        self.tell = tell
        self._clock: Callable[[], float] | None = None
        factor = choices.time_factor
        self.phases = [replace(phase, seconds=phase.seconds * factor) for phase in scenario.phases]
        lengths = {phase.name: phase.seconds for phase in self.phases}
        transport = choices.transport
        self.setting = Setting(
            choices.plan,
            transport.name,
            choices.seed,
            lengths,
            transport.queue_pairs,
            transport.single_plane,
            choices.pace,
        )

    def seconds(self) -> float | None:
        """The time since the first phase began, as reports tell it. None before that."""
        return self._clock() if self._clock is not None else None

    def options(self) -> dict[str, Any]:
        """All choices of the run and everything that follows from them, as journalled and stored."""
        choices, plan = self.choices, self.choices.running_plan
        source = choices.source or self.scenario.name
        options = {
            "scenario": self.scenario.name,
            "source": source,
            "plan": choices.plan.name,
            "plan_source": choices.plan_source or choices.plan.name,
            "transport": choices.transport.name,
            "settings": dict(choices.transport.settings),
            "setting_changes": dict(choices.settings),
            "queue_pairs": choices.transport.queue_pairs,
            "world": choices.world,
            "single_plane": choices.transport.single_plane,
            "priority_flow_control": plan.pfc.enabled,
            "seed": choices.seed,
            "time_factor": choices.time_factor,
            "pace": choices.pace,
            "until_s": choices.until_s,
            "record_packets_s": choices.record_s,
            "short": choices.short,
            "reconvergence_s": choices.reconvergence_s,
            "phases": {phase.name: phase.seconds for phase in self.phases},
            "overrides": dict(choices.overrides),
            "added_faults": [words(fault) for fault in choices.added],
            "calibration": dict(choices.calibration),
            "port_rate_bps": plan.links.host_rate_bps,
            "host_rate_bps": plan.links.host_rate_bps * plan.planes,
            "hardware_rate_bps": plan.links.hardware_rate_bps,
            "base_rtt_ns": plan.base_rtt_ns,
            "fabric": {"planes": plan.planes, "leaves": plan.leaves, "spines": plan.spines},
            "hosts": plan.host_count,
            "switches": plan.switch_count,
            "switch_kind": switch_kinds(plan),
            "python": sys.version.split()[0],
            "cpus": os.cpu_count(),
            "version": identity.version(),
            "hashes": identity.hashes(source, choices.plan, choices.transport.settings),
        }
        return {**options, "key": identity.key(options)}

    def run(self, make_world: MakeWorld, watch: Callable[[Journal], Any] | None = None) -> None:
        """The whole run. The world is taken down whatever happens; the journal stays.

        `watch(journal)` is a context manager entered while the world is up, such as a sampler of the processor.
        """
        options = self.options()
        self.directory.write_options(options)
        self.directory.write_plan(self.choices.plan)
        file = library.own_file(options["source"])
        if file is not None:
            self.directory.write_scenario(file.read_bytes())
        clock: Callable[[], int] = time.monotonic_ns if self.choices.world == "emulated" else lambda: 0
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
                if watch is not None:
                    stack.enter_context(watch(journal))
                self._sample(world)
                self._phases(world, journal)
                self.tell("verifying tables")
                journal.write("tables", action="verify", differences=world.verify())
            except BaseException as error:
                gone = isinstance(error, Exception) and world is not None and not world.is_up(settled=True)
                why = str(WorldGoneError()) if gone else f"{type(error).__name__}: {error}"
                waited: dict[str, Any] = {"waited_s": error.waited_s} if isinstance(error, ControlTimeoutError) else {}
                journal.write("error", message=why, fatal=True, **waited)
                if gone:
                    raise WorldGoneError from error
                raise

    def _sample(self, world: World) -> None:
        prober = self.scenario.prober if self.choices.transport.agent == "mrc" else None
        if self.scenario.sample_switches:
            world.sample_switches(self._ns(self.scenario.sample_s))
        for client in world.clients.values():
            call(client, "sample", interval_ns=self._ns(self.scenario.sample_s), paths=self.scenario.sample_paths)
            if prober is not None:
                interval_ns = self._ns(prober.interval_s)
                call(client, "prober.start", interval_ns=interval_ns, window=prober.window, deny=prober.deny)

    def _ns(self, seconds: float) -> int:
        """Seconds of lab time, in nanoseconds of the run."""
        return round(seconds * self.choices.pace * 1e9)

    def faults(self) -> list[TimedFault]:
        """The scenario's timeline and the added faults: drawn for the usual lengths of phases, then scaled."""
        usual = replace(self.setting, phases={phase.name: phase.seconds for phase in self.scenario.phases})
        faults = [*self.scenario.timeline(usual), *self.choices.added]
        faults = [scaled(fault, self.choices.time_factor) for fault in faults]
        return carried_out(self.setting, faults)

    def _phases(self, world: World, journal: Journal) -> None:
        starts_s, length_s = starts(self.phases)
        workloads = list(self.scenario.workloads(self.setting))
        groups = {workload.name: group(workload, world) for workload in workloads}
        agenda: list[tuple[float, int, Callable[[], object]]] = [(length_s, 1, lambda: None)]
        for phase in self.phases:
            if phase.seconds > 0:
                begin_s = starts_s[phase.name]
                agenda.append((begin_s, 2, partial(self._mark, journal, phase, "start")))
                agenda.append((begin_s + phase.seconds, 0, partial(self._mark, journal, phase, "stop")))
                if self.scenario.census:
                    agenda.append((begin_s + phase.seconds, 1, partial(self._count, world, phase)))
        programs = [Programs(program, world, self.directory) for program in self.scenario.programs(self.setting)]
        for one in programs:
            agenda.append((starts_s[one.program.phase], 3, one.start))
        for workload in workloads:
            agenda.append((starts_s[workload.phase], 3, partial(start, groups[workload.name], world)))
        timeline = moments(self.faults(), starts_s)
        for moment in timeline:
            agenda.append((moment.at_s, 4, partial(self._carry_out, world, journal, moment)))
        if self.choices.reconvergence_s is not None:
            for at_s in noticed(self.choices.running_plan, timeline):
                agenda.append((at_s + self.choices.reconvergence_s, 5, partial(self._reconverge, world)))
        origin_ns = world.now_ns()
        self._clock = lambda: (world.now_ns() - origin_ns) / 1e9
        if self.choices.record_s is not None:
            start_ns, stop_ns = (origin_ns + self._ns(at_s) for at_s in self.choices.record_s)
            world.record_packets(start_ns, stop_ns, self.directory.packets)
        until_s = float("inf") if self.choices.until_s is None else self.choices.until_s
        for at_s, _, act in sorted(agenda, key=lambda item: item[:2]):
            if at_s > until_s:
                world.wait_until(origin_ns + self._ns(until_s))
                self.tell("broken off, as --until says")
                break
            world.wait_until(origin_ns + self._ns(at_s))
            act()
        self.tell("draining workloads")
        for running in groups.values():
            running.stop()
        drain_s = DRAIN_S * self.choices.pace
        for one in programs:
            one.end(drain_s, journal)
        for name, running in groups.items():
            stuck = {host: status for host, status in running.wait(drain_s).items() if status["state"] != "finished"}
            for host, status in stuck.items():
                journal.write("error", message=f"workload {name} on {host} is {status['state']}", fatal=False)
            if stuck:
                running.remove()  # every rank then journals its part

    def _reconverge(self, world: World) -> None:
        dead = dead_links(self.choices.running_plan, world.faults())
        world.reconverge(dead)
        self.tell(f"routing has converged around {len(dead)} dead links")

    def _mark(self, journal: Journal, phase: Phase, state: str) -> None:
        journal.write("phase", name=phase.name, state=state)
        if state == "start":
            self.tell(f"phase {phase.name}, {phase_length(phase, self.choices.pace)}")

    def _count(self, world: World, phase: Phase) -> None:
        for client in world.clients.values():
            call(client, "census", label=phase.name)

    def _carry_out(self, world: World, journal: Journal, moment: Moment) -> None:
        """Inject or undo a fault of the timeline, unless a person has done so by hand already."""
        timed = moment.fault
        fault = make_fault(self.choices.running_plan, timed.verb, timed.target, timed.value, timed.seed)
        what = str(fault) + ("" if moment.begin else " undone")
        if (fault in world.faults()) == moment.begin and VERBS[fault.verb].lasting:
            self.tell(f"{what}: by hand already")
            return
        # Written first, because hosts and switches journal the fault's effects before `inject` returns.
        journal.write("fault", **fault.line("begin" if moment.begin else "end"))
        if moment.begin:
            world.inject(fault.verb, fault.target, fault.value, fault.seed)
        elif VERBS[fault.verb].lasting:
            world.undo(fault)
        self.tell(what)


def group(workload: Workload, world: World) -> Group:
    """The workload on all its ranks, prepared and connected."""
    ranks = list(workload.ranks) if workload.ranks is not None else list(world.clients)
    return Group(
        world.clients, name=workload.name, kind=workload.kind, ranks=ranks, options=workload.options, clock=world.now_ns
    )


def start(running: Group, world: World) -> None:
    """Start a workload now, on all its ranks."""
    running.start(world.now_ns())


def starts(phases: Sequence[Phase]) -> tuple[dict[str, float], float]:
    """When each phase starts, and how long all last, in seconds."""
    result, at_s = {}, 0.0
    for phase in phases:
        result[phase.name] = at_s
        at_s += phase.seconds
    return result, at_s


def scaled(fault: TimedFault, factor: float) -> TimedFault:
    """A fault at a stretched or shortened time."""
    return replace(fault, at_s=fault.at_s * factor, for_s=None if fault.for_s is None else fault.for_s * factor)


def phase_length(phase: Phase, pace: float) -> str:
    """How long a phase takes in the run's own time."""
    return f"{phase.seconds:g} s" if pace == 1 else units.lasting(phase.seconds * pace * units.SECOND_NS, pace)
