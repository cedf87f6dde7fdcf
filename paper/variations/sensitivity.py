"""How much RoCE's numbers hang on DCQCN's constants and on the switches' marks: one knob at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from endpoint.roce.dcqcn_setting import PUBLISHED, Absolute
from paper.figure import Measured, Part
from paper.figures.collectives.figure_16 import RING_16
from paper.figures.collectives.figure_17 import EXCHANGE_17
from paper.outcome import number
from paper.random_loss import LossyCollective
from paper.report import notice
from paper.report.document import rows, wrapped
from paper.shape.runs import perform

LINE_RATIO = 400 / 40
"""Cluster C's line over the one that the constants were published for."""
FACTORS = (0.25, 4.0)
SEEDS = range(2, 10)
TITLE = "# DCQCN's constants, one by one\n"
INTRODUCTION = (
    "`./lab reproduce dcqcn` made this page. The MRC paper does not say which constants its RoCE had. The figures of"
    " collectives take those of Zhu et al. (SIGCOMM 2015), which were published for 40 Gb/s, on links of 400 Gb/s. Here"
    " each constant is a quarter or four times as much, nothing is lost, and each flow has one queue pair. R_HAI"
    " alone is left out: it acts after six byte counters of 10 MB, and a queue pair of the ring sends 33 MB, one of the"
    " all-to-all 1 MB."
    " Numbers are bus bandwidths in Gb/s of 64 NICs of cluster C."
)
ASSUMPTION = (
    "RoCE's recovery is go-back-N, which is an assumption of this lab: the paper does not say it. Without loss it plays"
    " no part in these numbers, because priority flow control keeps the fabric from dropping anything."
)
WORKLOADS = (("ring all-reduce", RING_16, 16, 2), ("all-to-all", EXCHANGE_17, 64, 2))
"""Title, figure, size in MB, and the size of the short form, which shows that it works."""
ROCE, MRC = "RoCE 1 QP", "MRC"


@dataclass(frozen=True, slots=True)
class Knob:
    """One change: what the table calls it, the DCQCN setting, and the factor of the switches' marks."""

    title: str
    setting: str = "published"
    marks: float = 1.0
    controlled: bool = True
    seed: int = 1  # of the hash that gives each queue pair its path


def knobs() -> list[Knob]:
    """The published setting first, then every change of it."""
    published = {"alpha_gain": PUBLISHED.alpha_gain, **asdict(Absolute())}
    titles = {
        "alpha_gain": "g",
        "alpha_period_ns": "alpha timer",
        "increase_period_ns": "rate timer",
        "increase_bytes": "byte counter",
        "additive_bps": "R_AI",
        "cnp_period_ns": "time between notifications",
    }
    found = [Knob("as published")]
    for field, title in titles.items():
        for factor in FACTORS:
            found.append(Knob(f"{title} × {factor:g}", f"published:{field}={published[field] * factor!r}"))
    found += [Knob(f"marks × {factor:g}", marks=factor) for factor in FACTORS]
    scaled = ",".join(f"{field}={published[field] * LINE_RATIO!r}" for field in ("additive_bps", "hyper_bps"))
    return [
        *found,
        Knob(f"R_AI and R_HAI × {LINE_RATIO:g}, as the line", f"published:{scaled}"),
        Knob("in round trips: the setting of figures 18, 20 and 22", "default"),
        Knob("no DCQCN, priority flow control alone", controlled=False),
        *(Knob(f"as published, with the hash of seed {seed}", seed=seed) for seed in SEEDS),
    ]


@dataclass(frozen=True, slots=True)
class KnobRow:
    """The goodput of each workload with a knob, Gb/s; 0 where a collective did not end."""

    title: str
    gbps: tuple[float, ...]


Perform = Callable[[Part, Path], Measured]


def part(collective: LossyCollective, size_mb: int, knob: Knob, short: bool) -> Part:
    """The RoCE run of a collective under a knob."""
    settings = {"dcqcn_setting": knob.setting, "dcqcn": knob.controlled}
    made = collective.part(ROCE, 0.0, size_mb, short, knob=f"-{knob.title}", settings=settings)
    queues = made.plan.queues
    marked = replace(queues, ecn_min=queues.ecn_min * knob.marks, ecn_max=queues.ecn_max * knob.marks)
    return replace(made, plan=replace(made.plan, queues=marked), seed=knob.seed)


def found(short: bool, scratch: Path, tell: Callable[[str], None], run: Perform = perform) -> list[KnobRow]:
    """Every row of the table, MRC's first; `scratch` is a folder for journals, which are not kept."""

    def measured(title: str, one: Part) -> float:
        tell(title)
        return run(one, scratch).numbers["busbw"]

    sizes = [(name, figure, small if short else size) for name, figure, size, small in WORKLOADS]
    mrc = [measured(f"MRC, {name}", figure.part(MRC, 0.0, size, short)) for name, figure, size in sizes]
    made = [KnobRow("MRC, strict", tuple(mrc))]
    for knob in knobs():
        gbps = [measured(f"{knob.title}, {name}", part(figure, size, knob, short)) for name, figure, size in sizes]
        made.append(KnobRow(knob.title, tuple(gbps)))
    return made


def total() -> int:
    """How many runs there are."""
    return (1 + len(knobs())) * len(WORKLOADS)


def markdown(made: Sequence[KnobRow], short: bool) -> str:
    """The page; a short form compares nothing in words."""
    sizes = [(name, figure, small if short else size) for name, figure, size, small in WORKLOADS]
    head = ["RoCE, one queue pair"]
    paper = ["the paper's RoCE"]
    for name, figure, size in sizes:
        head += [f"{name}, {size} MB", "of the published"]
        known = figure.paper[ROCE, 0.0].get(size)
        paper += [number(known), ""]
    published = made[1].gbps
    body = [
        [row.title, *(cell for value, usual in zip(row.gbps, published, strict=True) for cell in cells(value, usual))]
        for row in made
    ]
    first = [TITLE, wrapped(f"**{notice.SHORT}**")] if short else [TITLE]
    parts = [*first, wrapped(INTRODUCTION), rows(head, [paper, *body])]
    return "\n".join([*parts, *([] if short else [wrapped(said(made))]), wrapped(ASSUMPTION)])


def cells(value: float, usual: float) -> list[str]:
    """A number, and its share of the published setting's."""
    return [number(value) if value else "did not end", f"{value / usual:.0%}" if usual and value else "–"]


def said(made: Sequence[KnobRow]) -> str:
    """The counts of the table, in sentences."""
    mrc, settings = made[0], made[1:]
    drawn = settings[-len(SEEDS) :]
    sentences = []
    for index, (name, *_) in enumerate(WORKLOADS):
        published, *changed = (row.gbps[index] for row in settings[: -len(SEEDS)])
        hashed = [published, *(row.gbps[index] for row in drawn)]
        values = [value for value in (published, *changed) if value]
        if not values:
            sentences.append(f"The {name} does not end under any setting.")
            continue
        above = sum(value > published for value in changed)
        ahead = sum(row.gbps[index] > mrc.gbps[index] for row in settings)
        farther = max(hashed) - min(hashed) > max(values) - min(values)
        sentences.append(
            f"In the {name}, the published setting and all changes of it give from {number(min(values))} to"
            f" {number(max(values))} Gb/s, and {above} of {len(changed)} changes are above the published setting."
            f" Another hash alone gives from {number(min(hashed))} to {number(max(hashed))}: chance moves this number"
            f" {'farther than' if farther else 'no farther than'} the settings do. RoCE is ahead of MRC in {ahead} of"
            f" {len(settings)} runs."
        )
    return " ".join(sentences)
