"""The figures there are, by the paper's numbers, and the paper's figures that are missing."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from paper import figure_file
from paper.figure import Figure

FOLDER = Path(__file__).parent

MODULES: Mapping[str, str] = {
    "4": "jobs.figure_4",
    "5": "jobs.figure_5",
    "6": "jobs.figure_6",
    "8": "jobs.figure_8",
    "5.2.1": "table_5_2_1",
    "9a": "failures.figure_9a",
    "9b": "failures.figure_9b",
    "9c": "failures.figure_9c",
    "9d": "failures.figure_9d",
    "10": "failures.figure_10",
    "11": "failures.figure_11",
    "12": "failures.figure_12",
    "14": "congestion.figure_14",
    "15": "collectives.figure_15",
    "16": "collectives.figure_16",
    "17": "collectives.figure_17",
    "18": "congestion.figure_18",
    "19": "failures.figure_19",
    "20": "congestion.figure_20",
    "21": "congestion.figure_21",
    "22": "congestion.figure_22",
    "htsim": "htsim",
}
"""In the order of the page."""
ON_DEMAND: Mapping[str, str] = {"16-large": "collectives.large_16", "17-large": "collectives.large_17"}
"""Figures that take hours: they are made when named, and are on no page."""
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
    if name not in known():
        raise FigureError(f"a figure must be one of {', '.join(known())} (got {name!r})")
    return figure_file.read(name, importlib.import_module(f"paper.figures.{_module(name)}"))


def known() -> list[str]:
    """The names there are."""
    return [*MODULES, *ON_DEMAND]


def figures(names: Sequence[str] = ()) -> list[Figure]:
    """The figures of these names in the order of the page; without names all of the page."""
    wanted = [find(name).name for name in names] or list(MODULES)
    return [find(name) for name in known() if name in wanted]


def file_of(name: str) -> Path:
    """The file of a figure."""
    return FOLDER.joinpath("figures", *_module(name).split(".")).with_suffix(".py")


def _module(name: str) -> str:
    return MODULES.get(name) or ON_DEMAND[name]
