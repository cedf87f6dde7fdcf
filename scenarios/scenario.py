"""The definition of an experiment: a plan, workloads, a timeline of faults, and the checks that judge the run.

One file in this folder holds one `SCENARIO`. Everything that chance decides is drawn from one generator,
`Setting.new_rng()`, so that a seed repeats a run.
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple

from common.seeds import Purpose, derive
from judging import PaperRow, Story, on_single_plane_target
from judging.checks import Check
from topo import Plan

SAMPLE_S = 0.1


@dataclass(frozen=True, slots=True)
class TimedFault:
    """At `at_s` seconds into its phase do `verb` to `target`; undo it after `for_s`, or never (None).

    Verbs, targets and values are those of `topo/fault/verb.py`; targets are "p1l0-p1s2", "h3.p2" or "p1s2".
    """

    at_s: float
    verb: str
    target: str
    for_s: float | None = None
    value: float | None = None
    seed: int = 0
    phase: str = "faults"


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload that hosts run from the start of a phase on: the agents' kind of workload, its options, its ranks.

    `ranks` None means all hosts. Workloads run until the end of the last phase but "heal", unless `options` end them.
    """

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    ranks: tuple[str, ...] | None = None
    name: str = "main"
    phase: str = "warmup"


@dataclass(frozen=True, slots=True)
class Program:
    """An ordinary process in each of some hosts, from the start of a phase until it ends by itself.

    In `argv`, {host}, {rank}, {ranks} (all hosts, with commas), {journal} (a file of its own for journal lines) and
    {folder} (of its own in the run's directory) are filled in; "python" is the lab's. `ranks` None means all hosts.
    `like` is the workload of the agents that loads the machine about as much: calibration measures with it. After the
    last phase, the run waits `patience_s` seconds of lab time for processes that still run.

    With `command` the words are those of a user: the journal tells when each process starts and how it ends, names of
    hosts stand for addresses, and {server} is the address of rank 0. Rank 0 has no word with {server}, and the others
    start once rank 0 listens. When one process fails, the others are ended.
    """

    name: str
    argv: tuple[str, ...]
    like: Workload
    ranks: tuple[str, ...] | None = None
    phase: str = "warmup"
    command: bool = False
    patience_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Command:
    """A user's command that takes the place of a scenario's traffic: its text, as a shell would read it, and the hosts
    in which it runs, rank 0 first."""

    text: str
    hosts: tuple[str, ...]

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of the command. ValueError for a quotation mark without its partner."""
        return tuple(shlex.split(self.text))


@dataclass(frozen=True, slots=True)
class Phase:
    """A named part of a run. Judged ones are "reference" (no faults), "faults" and whatever a scenario adds."""

    name: str
    seconds: float


def phases(
    *extra: Phase, warmup_s: float = 4.0, reference_s: float = 20.0, faults_s: float = 35.0, heal_s: float = 6.0
) -> tuple[Phase, ...]:
    """The usual course: congestion windows settle in the warm-up, which is not judged; paths recover in "heal"."""
    first = (Phase("warmup", warmup_s), Phase("reference", reference_s), Phase("faults", faults_s))
    return (*first, *extra, Phase("heal", heal_s))


@dataclass(frozen=True, slots=True)
class Setting:
    """The inputs of a scenario's functions.

    `plan` is the scenario's own; the baseline runs on `plan.single_plane()` with faults mapped by `carried_out`.
    A scenario's seconds are always seconds of lab time; a second of lab time takes `pace` seconds of the run.
    """

    plan: Plan
    transport: str
    seed: int
    phases: Mapping[str, float]  # name → seconds
    queue_pairs: int = 1
    single_plane: bool = False  # whether the baseline runs
    pace: float = 1.0

    def new_rng(self) -> Random:
        """A new generator from the run's seed. Every call returns one that draws the same numbers: keep it to go on."""
        return Random(derive(self.seed, Purpose.TIMELINE))

    @property
    def last_host(self) -> str:
        """The host at the other end of the fabric, from h0."""
        return f"h{self.plan.host_count - 1}"

    @property
    def host_rate_bps(self) -> int:
        """The rate of all of a host's ports together: the same for MRC and the baseline."""
        return self.plan.links.host_rate_bps * self.plan.planes


@dataclass(frozen=True, slots=True)
class Prober:
    """The path prober in every host: one probe each `interval_s`, blame over the last `window` probes a target."""

    interval_s: float = 0.02
    window: int = 50
    deny: bool = False


class Load(NamedTuple):
    """The work of a run that ends with its work: its approximate duration in seconds, and the bytes of all messages."""

    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """An experiment. Its three functions are pure: they are asked again when an old run is judged.

    `phases` begin with "reference" after any warm-up; `plan` is a shipped plan or the path of a .toml file;
    `sample_paths` has agents count packets by path, `count_records` has them count what they keep at the end of each
    phase; counters are sampled every `sample_s` seconds of lab time. In virtual time switches' counters are sampled
    that often with `sample_switches`, however large the run, and without as often as `running.estimate` allows.
    """

    name: str
    title: str
    description: str
    plan: str
    workloads: Callable[[Setting], Sequence[Workload]]
    checks: Callable[[Setting], Sequence[Check]]
    timeline: Callable[[Setting], Sequence[TimedFault]] = lambda setting: ()
    phases: tuple[Phase, ...] = phases()
    programs: Callable[[Setting], Sequence[Program]] = lambda setting: ()
    paper: tuple[PaperRow, ...] = ()
    prober: Prober | None = None
    sample_paths: bool = False
    sample_s: float = SAMPLE_S
    sample_switches: bool = False
    count_records: bool = False
    short: tuple[Phase, ...] = ()  # the shortest phases in which the checks have enough evidence; () for none
    settings: Mapping[str, Any] = field(default_factory=dict)  # of MRC endpoints (endpoint/nic/config.py)
    until_done: bool = False  # whether the run ends with all workloads and programs, however long its phases are
    load: Callable[[Setting], Load] | None = None  # of work that ends before its phases: what the run has to carry
    command: Command | None = None  # in place of the scenario's own traffic (`user_traffic/command.py`)
    forms: Mapping[str, Scenario] = field(default_factory=dict)  # `NAME@WORD` runs another form of it, by its word
    plain: PlainScenario | None = None  # what the scenario was made of, if that is data

    def form(self, word: str) -> Scenario:
        """The form of this word, named `NAME@WORD`. ValueError with the words that there are."""
        if word not in self.forms:
            valid = ", ".join(f"{self.name}@{form}" for form in self.forms) or f"{self.name} alone"
            raise ValueError(f"{self.name} has no form {word!r}: valid are {valid}")
        return replace(self.forms[word], name=f"{self.name}@{word}")

    def shortened(self) -> Scenario:
        """The same experiment in its short phases. ValueError when it has none."""
        if not self.short:
            raise ValueError(f"{self.name} has no short form: --time shortens every phase alike")
        return replace(self, phases=self.short)

    @property
    def story(self) -> Story:
        return Story(self.title, self.description, self.paper)


_MAY_JUDGE = ("judging.", "operations.", "scenarios.", "studies.")


@dataclass(frozen=True, slots=True)
class PlainScenario:
    """A scenario as data, for one plan and seed, which can be sent. `checks` is MODULE:FUNCTION, "" for none."""

    name: str
    title: str
    description: str
    workloads: tuple[Workload, ...]
    phases: tuple[Phase, ...]
    timeline: tuple[TimedFault, ...] = ()
    checks: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    sample_paths: bool = False
    sample_s: float = SAMPLE_S
    sample_switches: bool = False
    count_records: bool = False
    load: tuple[float, int] | None = None  # seconds and bytes, as `Load` has them

    def scenario(self, plan: str) -> Scenario:
        """The scenario as the runner takes it. ValueError for checks that are no function."""
        load = None if self.load is None else Load(*self.load)
        names = ("title", "description", "phases", "settings", "sample_paths", "sample_s", "sample_switches")
        return Scenario(
            self.name,
            plan=plan,
            workloads=lambda setting: self.workloads,
            checks=function(self.checks) if self.checks else lambda setting: (),
            timeline=lambda setting: self.timeline,
            count_records=self.count_records,
            load=None if load is None else lambda setting: load,
            plain=self,
            **{name: getattr(self, name) for name in names},
        )


def function(name: str) -> Callable[[Setting], Sequence[Check]]:
    """The function MODULE:FUNCTION. ValueError where there is none, or outside of the lab: data names no other code."""
    module, _, own = name.partition(":")
    try:
        checks_of = getattr(importlib.import_module(module), own, None) if module.startswith(_MAY_JUDGE) else None
    except ImportError:
        checks_of = None
    if not callable(checks_of):
        rooms = ", ".join(f"{room}*" for room in _MAY_JUDGE)
        raise ValueError(f"scenario.checks is {name!r}; it must be MODULE:FUNCTION of {rooms}, or empty for none")
    checks: Callable[[Setting], Sequence[Check]] = checks_of
    return checks


def on_single_plane(fault: TimedFault) -> TimedFault:
    """The same fault on the single-plane equivalent: the plane's number is dropped.

    A link that carried a sixteenth of a host's paths on four planes carries a quarter of them then: the paper compares
    so, too.
    """
    return replace(fault, target=on_single_plane_target(fault.target))


def merged(faults: Sequence[TimedFault]) -> list[TimedFault]:
    """Faults by time; overlapping faults of one verb on one target become one, from first beginning to last end.

    Links of two planes that are down together become one link that is down while either is.
    """
    kept: list[TimedFault] = []
    open_at: dict[tuple[str, str, tuple[str, ...]], int] = {}
    for fault in sorted(faults, key=lambda fault: (fault.phase, fault.at_s)):
        key = (fault.phase, fault.verb, tuple(sorted(fault.target.split("-"))))  # a cable is named from either end
        index = open_at.get(key)
        if index is not None:
            earlier = kept[index]
            end_s = earlier.at_s + (float("inf") if earlier.for_s is None else earlier.for_s)
            if fault.at_s <= end_s:
                own_end_s = float("inf") if fault.for_s is None else fault.at_s + fault.for_s
                last_s = max(end_s, own_end_s)
                kept[index] = replace(earlier, for_s=None if last_s == float("inf") else last_s - earlier.at_s)
                continue
        open_at[key] = len(kept)
        kept.append(fault)
    return sorted(kept, key=lambda fault: fault.at_s)


def carried_out(setting: Setting, faults: Sequence[TimedFault]) -> list[TimedFault]:
    """A timeline as a run carries it out: unchanged for MRC, mapped to the single plane for the baseline."""
    return merged([on_single_plane(fault) for fault in faults]) if setting.single_plane else list(faults)


COMM_S = 0.7  # the all-reduce of a step, at line rate, among at most SHORT_RING hosts
COMPUTE_S = 0.35  # half as long, so that communication is well over half of the step
SHORT_RING = 16  # hosts: a message takes 23 ms at line rate. If it took less, links would mostly wait for the next one
GRAIN_BYTES = 8 * 4096


def step_s(setting: Setting) -> float:
    """Lab seconds that a step takes at line rate."""
    return _communication_s(setting) + COMPUTE_S


def _communication_s(setting: Setting) -> float:
    """A ring of n hosts sends 2(n − 1) messages one after another. In a longer ring each keeps its length."""
    return COMM_S * max(1.0, (setting.plan.host_count - 1) / (SHORT_RING - 1))


def all_reduce_bytes(setting: Setting) -> int:
    """The vector of a step: each host sends 2(n − 1)/n of it."""
    ranks = setting.plan.host_count
    sent = setting.host_rate_bps / 8 * _communication_s(setting) * setting.pace
    size = sent * ranks / (2 * (ranks - 1))
    grain = GRAIN_BYTES * ranks
    return max(grain, round(size / grain) * grain)


def only_training(setting: Setting) -> Sequence[Workload]:
    """The workloads of a scenario that runs the training loop and nothing beside it."""
    return [training_loop(setting)]


def training_loop(setting: Setting) -> Workload:
    """Compute, then all-reduce over all hosts, until stopped."""
    options = {
        "size": all_reduce_bytes(setting),
        "steps": 0,
        "compute_ns": round(COMPUTE_S * 1e9 * setting.pace),
        "qps": setting.queue_pairs,
    }
    return Workload("training", options)
