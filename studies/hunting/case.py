"""One try of a hunt, as data: everything that was drawn, and nothing that follows from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from common.terminal.counted import counted
from running import Choices, RunSpec
from running.transport_choice import transport
from scenarios import Phase, PlainScenario, Scenario, TimedFault, Workload
from studies.hunting import irregular
from studies.hunting.invariants import must_hold
from topo import Plan
from topo.planfile import parse_document
from topo.topologies import LeafSpine

WARMUP_S = 0.5
PLAN_KEYS = ("planes", "leaves", "spines", "hosts_per_leaf")
BEYOND: Mapping[str, tuple[str, ...]] = {"pods": ("pods", "cores"), "rails": ("rails",)}
"""By topology: the numbers that its fabric has besides."""


@dataclass(frozen=True)
class Case:
    """`fabric` has the numbers of the plan's topology (`BEYOND`), and `parts` what a fabric has beside numbers
    (`irregular.py`). `plan_keys` are other keys of a plan file by section.

    A round is a phase with faults, in which the timeline is repeated `repeats` times, and a phase in which the fabric
    is whole again. Times are seconds of lab time; faults begin in the first repetition of their round. `settings` were
    drawn, `given` are the user's, and go before them.
    """

    seed: int
    fabric: Mapping[str, int]
    workloads: tuple[Workload, ...]
    faults: tuple[TimedFault, ...]
    plan_keys: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    reference_s: float = 1.5
    faults_s: float = 3.0
    after_s: float = 5.0
    rounds: int = 1
    repeats: int = 1
    given: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def transport_settings(self) -> dict[str, Any]:
        """The settings of the transport: drawn ones, and those of the user."""
        return {**self.settings, **self.given}

    @cached_property
    def plan(self) -> Plan:
        """PlanError for numbers that make no plan."""
        return parse_document(self.plan_document())

    def plan_document(self) -> dict[str, Any]:
        """The plan as a plan file has it."""
        named = {} if self.topology == LeafSpine.NAME else {"topology": self.topology}
        return {
            "name": "hunted",
            "fabric": {**named, **self.fabric, **self.parts},
            **{name: dict(keys) for name, keys in self.plan_keys.items()},
        }

    @property
    def topology(self) -> str:
        """As a plan file names it."""
        if self.parts:
            return irregular.topology_of(self.parts)
        return next((name for name, keys in BEYOND.items() if keys[0] in self.fabric), LeafSpine.NAME)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Warm-up, reference, and two phases a round."""
        phases = [Phase("warmup", WARMUP_S), Phase("reference", self.reference_s)]
        for number in range(1, self.rounds + 1):
            phases += [Phase(name_of("faults", number), self.faults_s * self.repeats)]
            phases += [Phase(name_of("after", number), self.after_s)]
        return tuple(phases)

    @property
    def timeline(self) -> list[TimedFault]:
        """Every entry in every repetition of every round."""
        return [
            replace(entry, at_s=round(entry.at_s + repeat * self.faults_s, 6), phase=name_of("faults", number))
            for number in range(1, self.rounds + 1)
            for repeat in range(self.repeats)
            for entry in self.faults
        ]

    def scenario(self, plan: str = "hunted") -> Scenario:
        """The experiment."""
        return PlainScenario(
            name="hunted",
            title="What must always hold has held",
            description="Drawn by a hunt.",
            workloads=self.workloads,
            timeline=tuple(self.timeline),
            checks=f"{must_hold.__module__}:{must_hold.__name__}",
            phases=self.phases,
            settings=self.transport_settings,
            count_records=self.repeats > 1,
        ).scenario(plan)

    def spec(self) -> RunSpec:
        """The run of `./lab run FILE --world simulated --seed SEED`."""
        choices = Choices(transport("mrc", self.transport_settings), self.plan, seed=self.seed, world="simulated")
        return RunSpec(self.scenario(), choices)

    @property
    def size(self) -> tuple[float, ...]:
        """How large the case is: entries first. Shrinking makes this smaller, lexicographically."""
        sizes = [value for workload in self.workloads for value in numbers(workload.options)]
        lengths = [entry.for_s or 0.0 for entry in self.faults]
        return (
            len(self.faults), len(self.workloads), self.rounds * self.repeats, len(self.settings) + len(self.plan_keys),
            sum(self.fabric.values()) + irregular.size(self.parts),
            sum(len(workload.ranks or ()) for workload in self.workloads), sum(sizes),
            self.reference_s + self.faults_s + self.after_s, sum(lengths),
        )  # fmt: skip

    def describe(self) -> str:
        """In one line, for people."""
        kinds = " and ".join(workload.kind for workload in self.workloads)
        again = f", {self.rounds} × {self.repeats} times" if self.rounds * self.repeats > 1 else ""
        return f"{counted(len(self.faults), 'fault')}{again}, {kinds} on {self.shape_words()}"

    def shape_words(self) -> str:
        """The fabric in words."""
        beyond = BEYOND.get(self.topology, ())
        shape = "×".join(str(self.fabric[name]) for name in (*PLAN_KEYS, *beyond) if name in self.fabric)
        told = f"{shape} ({', '.join(('planes', 'leaves', 'spines', 'hosts per leaf', *beyond))})" if shape else ""
        return ", ".join(part for part in (told, irregular.describe(self.parts)) if part)


def numbers(options: Mapping[str, Any]) -> list[float]:
    """The numbers among a workload's options."""
    return [float(value) for value in options.values() if isinstance(value, (int, float)) and value is not True]


def name_of(phase: str, number: int) -> str:
    """The name of a round's phase: that of the first round has no number."""
    return phase if number == 1 else f"{phase} {number}"
