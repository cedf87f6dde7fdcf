"""The figures there are, by the paper's numbers, and the paper's figures that are missing."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from paper import readings, texts
from paper.breaking import KNOBS
from paper.figure import Chart, Experiment, Failing, Figure, Order, PaperCurve, Quantity

# Strings may be wrapped, and may have fields: `{NAME}` is a shared text of `figures/words.toml`, a constant of the
# module, or a field of the entry's `each`. An entry with `each`, a list or the name of one in `[lists]`, makes one
# entry for each of that list's tables. `fails` is the number of the experiment in which a quantity must be wrong;
# `knob` says what was broken, where the ending of the run's name does not. `seeds` says how many runs a median is of. A
# point of the paper's curve has a number or the name of a reading.
WORDS = Path(__file__).parent / "figures" / "words.toml"
KINDS = ("quantities", "experiments", "orders", "charts")


def read(name: str, module: ModuleType) -> Figure:
    """The figure of a module. KeyError or TypeError for a file that names what does not exist."""
    assert module.__file__ is not None
    content = texts.read(Path(module.__file__).with_suffix(".toml"))
    lists = content.pop("lists", {})
    fields = {**texts.load(WORDS), **{name: value for name, value in vars(module).items() if name.isupper()}}
    rows = {kind: list(_expanded(content.pop(kind, ()), lists, fields)) for kind in KINDS}
    text = texts.filled(content, fields)
    known = readings.of(text.pop("readings", name))
    made: dict[str, Any] = {
        "quantities": [_quantity(known, row) for row in rows["quantities"]],
        "experiments": [Experiment(**row) for row in rows["experiments"]],
        "orders": [Order(**row) for row in rows["orders"]],
        "charts": [_chart(known, row) for row in rows["charts"]],
    }
    if (collective := getattr(module, "COLLECTIVE", None)) is not None:
        reasons = text.pop("reasons", {})
        made |= {"quantities": collective.quantities(reasons), "orders": collective.orders()}
        made["charts"] = collective.charts()
    return Figure(name=name, parts=module.parts, **text, **made)


def _quantity(known: readings.Readings, row: dict[str, Any]) -> Quantity:
    if failing := row.pop("fails", ""):
        broken = next((knob for ending, knob in KNOBS.items() if failing.partition(":")[0].endswith(f"-{ending}")), "")
        row["fails"] = Failing(row.pop("knob", broken), failing)
    if seeds := row.pop("seeds", 0):
        part, _, number = row["measured"].partition(":")
        row["seeds"] = (row["measured"], *(f"{part}-seed-{seed}:{number}" for seed in range(2, seeds + 1)))
    return known.quantity(row.pop("name"), row.pop("measured", None), **row)


def _chart(known: readings.Readings, row: dict[str, Any]) -> Chart:
    def point(x: float, y: float | str) -> tuple[float, float]:
        return x, known[y].value if isinstance(y, str) else y

    curves = row.pop("paper", {})
    return Chart(paper=[PaperCurve(label, [point(*p) for p in points]) for label, points in curves.items()], **row)


def _expanded(
    entries: list[dict[str, Any]], lists: Mapping[str, Any], fields: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for entry in entries:
        each = entry.pop("each", ({},))
        for own in lists[each] if isinstance(each, str) else each:
            yield texts.filled(entry, {**fields, **texts.filled(own, fields)})


FOLDER = Path(__file__).parent

NAMES = (
    "4", "5", "6", "8", "5.2.1", "9a", "9b", "9c", "9d", "10", "11", "12", "14", "15", "16", "17", "18", "19", "20",
    "21", "22", "htsim",
)  # fmt: skip
"""In the order of the page."""
_FILES = {
    path.stem.removeprefix("figure_").removeprefix("table_").replace("_", "."): path.relative_to(FOLDER / "figures")
    for path in FOLDER.glob("figures/**/[!_]*.py")
}
MODULES: Mapping[str, str] = {name: ".".join(_FILES[name].with_suffix("").parts) for name in NAMES}
"""The module of each figure, below `figures`."""
WITH_INTERVALS = ("16", "17")
"""Figures of which `--intervals` makes rows intervals, by runs with other seeds."""
MISSING: Mapping[str, str] = {
    "1": "Figure 1 draws two topologies and measures nothing",
    "2": "Figure 2 draws how switches forward SRv6 packets, and measures nothing",
    "3": "Figure 3 draws how an SRv6 address is made from an EV, and measures nothing",
    "7": "Figure 7 shows the packets that eight nodes lose per second in the event of figure 6. `./lab reproduce 6`"
    " runs this event, but its minute takes 40 round trips here, so losses per second are not compared",
    "13": "Figure 13 is part of figure 12: `./lab reproduce 12` compares the load of both paths before and after",
}
"""The paper's other figures, each with the reason why it has no separate run."""


class FigureError(ValueError):
    """No such figure; the message names those there are."""


def find(name: str) -> Figure:
    """The figure of this name. FigureError with the valid names."""
    if name not in MODULES:
        raise FigureError(f"a figure must be one of {', '.join(MODULES)} (got {name!r})")
    return read(name, importlib.import_module(f"paper.figures.{MODULES[name]}"))


def figures(names: Sequence[str] = ()) -> list[Figure]:
    """The figures of these names in the order of the page; without names all of the page."""
    wanted = [find(name).name for name in names] or list(MODULES)
    return [find(name) for name in MODULES if name in wanted]


def file_of(name: str) -> Path:
    """The file of a figure."""
    return FOLDER.joinpath("figures", *MODULES[name].split(".")).with_suffix(".py")
