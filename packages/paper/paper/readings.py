"""The paper's numbers as they were read: `readings.toml`, by figure and by the name of the quantity.

Curves over sizes, of figures 16 and 17, are tables of their own there; each of their values is a reading named
"CURVE, SIZE MB".
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from paper import texts
from paper.figure import Quantity

__all__ = ["of"]

FILE = Path(__file__).parent / "readings.toml"
CURVES = "curves"


@dataclass(frozen=True, slots=True)
class Reading:
    """A number of the paper: value, unit, place in the paper, and what the reading may be off in that unit."""

    value: float
    unit: str
    source: str
    error: float = 0.0


class Readings(dict[str, Reading]):
    """The readings of one figure by the names of its quantities."""

    def quantity(self, name: str, measured: str | None, how: str = "", **more: Any) -> Quantity:
        """The quantity of this name with the paper's number; KeyError for a name that was not read."""
        read = self[name]
        return Quantity(name, read.value, read.unit, measured, how, error=read.error, source=read.source, **more)


@cache
def of(figure: str) -> Readings:
    """The readings of this figure; KeyError for a figure without any."""
    readings = Readings()
    for name, entry in _file()[figure].items():
        if name == CURVES:
            readings.update(_points(entry))
        else:
            readings[name] = Reading(**entry)
    return readings


@cache
def curve(figure: str, name: str) -> Mapping[int, float]:
    """A curve of figure 16 or 17: Gb/s by size in MB, without the sizes at which it is not drawn."""
    table = _file()[figure][CURVES]
    points = zip(table["sizes_mb"], table["values"][name], strict=True)
    return {size: value for size, value in points if not math.isnan(value)}


@cache
def _file() -> dict[str, Any]:
    return texts.read(FILE)


def _points(table: Mapping[str, Any]) -> Readings:
    readings = Readings()
    for name, values in table["values"].items():
        for size, value in zip(table["sizes_mb"], values, strict=True):
            if not math.isnan(value):
                readings[f"{name}, {size} MB"] = Reading(value, table["unit"], table["source"], table["error"])
    return readings
