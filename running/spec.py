"""A run as a description: its parts and the numbers that follow from them, without a world, a folder or a clock.

Estimates, rehearsals, sweeps, hunts, races, calibration and the paper's figures read it; a runner carries it out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any

from common.fields import document
from common.seeds import Purpose, derive
from common.terminal import source_names
from judging.checks import Check
from running import identity
from running.fault_words import spell
from running.options import NEVER, OPTIONS, Choices
from scenarios import Command, Phase, Program, Scenario, Setting, TimedFault, Workload, carried_out, library
from scenarios.user_traffic.command import with_command
from topo import Plan
from topo.path import via
from topo.pfc import jitter_ns
from topo.show import switch_kinds

WAYS_TOLD_MAX = 100_000
"""Ways between all leaves, above which a run's options do not name them."""


@dataclass(frozen=True)
class RunSpec:
    """A scenario and the choices of one run of it. Reading it has no side effect."""

    scenario: Scenario
    choices: Choices

    @property
    def plan(self) -> Plan:
        """The plan that is built: for the baseline, the single-plane equivalent of the chosen one."""
        return self.choices.running_plan

    @property
    def seed(self) -> int:
        """The number from which every draw of the run follows."""
        return self.choices.seed

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The scenario's phases, stretched or shortened as chosen, in seconds of lab time."""
        factor = self.choices.time_factor
        return tuple(replace(phase, seconds=phase.seconds * factor) for phase in self.scenario.phases)

    @property
    def seconds(self) -> float:
        """The length of all phases together, in seconds of lab time."""
        last = self.phases[-1]
        return self.starts_s[last.name] + last.seconds

    @cached_property
    def starts_s(self) -> dict[str, float]:
        """The start of each phase, in seconds of lab time from the first one."""
        result, at_s = {}, 0.0
        for phase in self.phases:
            result[phase.name] = at_s
            at_s += phase.seconds
        return result

    def phase_at(self, at_s: float) -> Phase:
        """The last phase that has begun at an instant, in seconds of lab time, and takes time."""
        return [phase for phase in self.phases if phase.seconds > 0 and self.starts_s[phase.name] <= at_s][-1]

    @property
    def lengths_s(self) -> dict[str, float]:
        """The length of each phase, in seconds of lab time."""
        return {phase.name: phase.seconds for phase in self.phases}

    @cached_property
    def setting(self) -> Setting:
        """The setting that the scenario's functions receive."""
        choices, transport = self.choices, self.choices.transport
        return Setting(
            choices.plan,
            transport.name,
            choices.seed,
            self.lengths_s,
            transport.queue_pairs,
            transport.single_plane,
            choices.pace,
        )

    def workloads(self) -> list[Workload]:
        """The workloads of the agents."""
        return list(self.scenario.workloads(self.setting))

    def programs(self) -> list[Program]:
        """The ordinary processes in hosts."""
        return list(self.scenario.programs(self.setting))

    def checks(self) -> list[Check]:
        """The checks by which the run is judged."""
        return list(self.scenario.checks(self.setting))

    def with_seed(self, seed: int) -> RunSpec:
        """The same run with another seed."""
        return RunSpec(self.scenario, replace(self.choices, seed=seed))

    def faults(self) -> list[TimedFault]:
        """The scenario's timeline and the added faults, whose losses the seed decides; then scaled."""
        drawn = int(derive(self.seed, Purpose.ADDED_FAULT))
        added = [replace(fault, seed=drawn) for fault in self.choices.added_faults]
        usual = replace(self.setting, phases={phase.name: phase.seconds for phase in self.scenario.phases})
        faults: Sequence[TimedFault] = [*self.scenario.timeline(usual), *added]
        return carried_out(self.setting, [scaled(fault, self.choices.time_factor) for fault in faults])

    def options(self) -> dict[str, Any]:
        """All choices of the run and everything that follows from them, as journalled and stored."""
        choices, plan = self.choices, self.plan
        source, transport = choices.source or self.scenario.name, choices.transport
        plainly = [option.stored for option in OPTIONS.values() if hasattr(choices, option.stored)]
        options = {
            **{name: document(getattr(choices, name)) for name in plainly},
            "scenario": self.scenario.name,
            "source": source,
            "plan": choices.plan.name,
            "plan_source": choices.plan_source or choices.plan.name,
            "transport": transport.name,
            "settings": dict(transport.settings),
            "queue_pairs": transport.queue_pairs,
            "payload": transport.payload,
            "single_plane": transport.single_plane,
            "priority_flow_control": plan.pfc.enabled,
            "reconvergence_s": NEVER if choices.never_rerouted else choices.reconvergence_s,
            "pace": choices.pace,
            "phases": self.lengths_s,
            "added_faults": [spell(fault) for fault in choices.added_faults],
            "calibration": dict(choices.calibration),
            "port_rate_bps": plan.links.host_rate_bps,
            "host_rate_bps": plan.links.host_rate_bps * plan.planes,
            "hardware_rate_bps": plan.links.hardware_rate_bps,
            "base_rtt_ns": plan.base_rtt_ns,
            "jitter_ns": transport.settings.get("jitter_ns", jitter_ns(plan) if choices.world == "emulated" else 0),
            "delay_ns": {"local": plan.delay_ns(1), "fabric": plan.delay_ns(plan.topology.longest_path_switches)},
            "pmtu_bytes": plan.packets.pmtu_bytes,
            "fabric": fabric_words(plan),
            **({source_names.KEY: dict(plan.names)} if plan.names else {}),
            "hosts": plan.host_count,
            "switches": plan.switch_count,
            "switch_kind": switch_kinds(plan),
            "python": sys.version.split()[0],
            "cpus": os.cpu_count(),
            "version": identity.version(),
            "hashes": identity.hashes(source, choices.plan, transport.settings, self.programs(), transport.variant),
        }
        if (command := self.scenario.command) is not None:
            options |= {"program": command.text, "program_hosts": list(command.hosts)}
        return {**options, "key": identity.key(options)}


def fabric_words(plan: Plan) -> dict[str, Any]:
    """The shape of a fabric as a run's options have it.

    Beyond two even tiers that is also where hosts hang and how many switches lie between two leaves, by their indices.
    """
    counts: dict[str, Any] = {"planes": plan.planes, "leaves": plan.leaves, "spines": plan.spines}
    if plan.shape is None:
        return counts
    topology, leaves = plan.topology, range(plan.leaves)
    return {
        **counts,
        "topology": topology.NAME,
        "cores": topology.cores,
        "leaf_of": [plan.leaf_of(host) for host in plan.hosts()],
        "crossed": [[topology.crossed(leaf, other) for other in leaves] for leaf in leaves],
        "link_delay_ns": plan.links.fabric_delay_ns,
        **({"ways": ways(plan)} if plan.leaves**2 * topology.paths_across <= WAYS_TOLD_MAX else {}),
    }


def ways(plan: Plan) -> list[tuple[int, str]]:
    """Each plane with the switches that an EV chooses between two leaves, as `via` of a path has them."""
    pairs = {
        (plane, via(way.switches) or "")
        for plane in range(plan.planes)
        for source, destination in permutations(range(plan.leaves), 2)
        for way in plan.topology.ways(plane, source, destination)
    }
    return sorted(pairs)


def scaled(fault: TimedFault, factor: float) -> TimedFault:
    """A fault at a stretched or shortened time."""
    return replace(fault, at_s=fault.at_s * factor, for_s=None if fault.for_s is None else fault.for_s * factor)


def scenario_of(source: str, short: bool, command: Command | None) -> Scenario:
    """A scenario by its name or file, perhaps in its short phases, or with a command in place of the traffic."""
    scenario = library.find(source)
    scenario = scenario.shortened() if short else scenario
    return scenario if command is None else with_command(scenario, command)
