"""A figure: runs, the paper's points, the quantities that are compared, the charts. All of it is data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from judging import Run
from running.transport_choice import TransportChoice
from scenarios import SAMPLE_S, Load, Phase, PlainScenario, Scenario, TimedFault, Workload
from topo import Plan

__all__ = ["Measured"]

Points = Sequence[tuple[float, float]]
DIGITISED = "read off the vector graphics of arXiv:2605.04333 (error about 1 %)"


@dataclass(frozen=True, slots=True)
class Measured:
    """The part of a run that is kept: numbers by name, and curves by name in the units of the figure's axes."""

    numbers: Mapping[str, float]
    curves: Mapping[str, Points] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """One run of a figure, independent of the others. Lengths and times are in lab seconds (`clock.Clock.lab_s`).

    `plan` is the cluster; a baseline's transport runs on its single-plane equivalent, as everywhere. `load` is what a
    run carries whose work ends long before its phases do. `again` is a long run once more, with another seed: it is
    made when intervals are asked for.
    """

    name: str
    plan: Plan
    transport: TransportChoice
    workloads: Sequence[Workload]
    phases: Sequence[Phase]
    measure: Callable[[Run], Measured]
    faults: Sequence[TimedFault] = ()
    sample_paths: bool = False
    sample_s: float = SAMPLE_S
    sample_switches: bool = False
    seed: int = 1
    load: Load | None = None
    again: bool = False

    def scenario(self, figure: str) -> Scenario:
        """The part as the runner takes it. Quantities are compared instead of checks."""
        return PlainScenario(
            name=f"figure-{figure}-{self.name}".replace(".", "-"),
            title=f"Figure {figure}, {self.name}",
            description="A run of `./lab reproduce`.",
            workloads=tuple(self.workloads),
            timeline=tuple(self.faults),
            phases=tuple(self.phases),
            sample_paths=self.sample_paths,
            sample_s=self.sample_s,
            sample_switches=self.sample_switches,
            load=None if self.load is None else (self.load.seconds, self.load.bytes),
        ).scenario(self.plan.name)


@dataclass(frozen=True, slots=True)
class Failing:
    """An experiment in which a quantity is wrong: the thing that was broken, and its number ("PART:NAME")."""

    knob: str
    measured: str


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of the paper beside ours, which is the number `measured` ("PART:NAME") of a run.

    Without `measured` nothing here stands for it, and `why` says why not. The difference is taken relative to `scale`,
    which is the paper's number unless that is zero or nearly so. `why` is what experiments have shown about a
    difference. `calibrates` marks a number to which the model was set. `fails` is an experiment that must show another
    number than the paper's; without one the row has no power, and `powerless` says why. `unreachable` says why no
    setting of the transport could give the paper's number. Rows of these three kinds count neither for nor against.
    `seeds` are the same number of runs with other seeds, where a hash decides it: ours is then an interval. Where these
    runs were not asked for, it is the number of the one run.
    """

    name: str
    paper: float
    unit: str
    measured: str | None
    how: str
    scale: float | None = None
    calibrates: bool = False
    at_most: bool = False  # the paper gives an upper bound, and anything below it agrees
    why: str = ""
    error: float = 0.0  # what the reading of the paper's number may be off
    source: str = ""  # where the paper has it
    fails: Failing | None = None
    powerless: str = ""
    unreachable: str = ""
    seeds: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """A comparison that the paper makes within a figure: the quantities `first` and `second`, more being better."""

    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """A run of the figure in which one knob was changed: what became of the quantity of this name.

    `measured` is the number ("PART:NAME") that takes the place of the quantity's own. Such runs explain; no quantity
    is compared with them.
    """

    knob: str
    quantity: str
    measured: str


@dataclass(frozen=True, slots=True)
class PaperCurve:
    """Points of the paper, in the axes of its chart."""

    label: str
    points: Points


@dataclass(frozen=True, slots=True)
class Chart:
    """One pair of axes. `ours` maps "PART:CURVE" to a label; colours go by label, the same for ours and the paper's.

    `points` are curves of ours whose points are numbers of several runs: by label, (x, "PART:NAME") each.
    """

    x: str
    y: str
    ours: Mapping[str, str]
    paper: Sequence[PaperCurve] = ()
    title: str = ""
    points: Mapping[str, Sequence[tuple[float, str]]] = field(default_factory=dict)
    logarithmic: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure or table of the paper. `parts(short)` gives its runs; short ones take seconds and show that all works.

    `compression` says by how much time is shortened, and why.
    """

    name: str
    title: str
    caption: str
    parts: Callable[[bool], Sequence[Part]]
    quantities: Sequence[Quantity]
    charts: Sequence[Chart] = ()
    compression: str = "Time is not compressed."
    source: str = DIGITISED
    experiments: Sequence[Experiment] = ()
    orders: Sequence[Order] = ()
    of_paper: bool = True  # False: its numbers come from elsewhere, and its rows do not count
    notes: Sequence[str] = ()  # what experiments beside the figure have shown
