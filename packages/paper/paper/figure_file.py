"""A figure's file: what is compared, drawn and said of it, as TOML beside the module that runs and measures it.

Strings may be wrapped, and may have fields: `{NAME}` is a shared text of `figures/words.toml`, a constant of the
module, or a field of the entry's `each`. An entry with `each`, a list or the name of one in `[lists]`, makes one
entry for each of that list's tables. `fails` is the number of the experiment in which a quantity must be wrong; `knob`
says what was broken, where the ending of the run's name does not. `seeds` says how many runs a median is of. A point of
the paper's curve has a number or the name of a reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from paper import readings, texts
from paper.breaking import KNOBS
from paper.figure import Chart, Experiment, Failing, Figure, Order, PaperCurve, Quantity

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
    return Chart(paper=[PaperCurve(label, [point(*one) for one in points]) for label, points in curves.items()], **row)


def _expanded(
    entries: list[dict[str, Any]], lists: Mapping[str, Any], fields: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for entry in entries:
        each = entry.pop("each", ({},))
        for own in lists[each] if isinstance(each, str) else each:
            yield texts.filled(entry, {**fields, **texts.filled(own, fields)})
