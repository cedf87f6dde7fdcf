"""Drawings by Matplotlib in the style of a report, for pictures that are no charts over a run (`chart`).

Nothing here touches a display or global state. Importing Matplotlib takes as long as judging a run.
"""

from __future__ import annotations

import io
import re
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from judging.reports.chart import FAINT, GRID, INK

STYLE: Any = {  # Any: matplotlib's own type for it differs from version to version
    "svg.fonttype": "none",  # text stays text: searchable, and in the reader's own font
    "svg.hashsalt": "mrclab",  # the same run gives the same file
    "font.family": "sans-serif",
    "font.size": 11,  # to be read from the last row
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}


def figure(height: float) -> tuple[Figure, Axes]:
    """One chart as wide as the report's column; `height` in inches."""
    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=(9.2, height), layout="constrained")
        return drawing, drawing.subplots()


def svg(drawing: Figure, label: str) -> str:
    """The drawing as an inline `<svg>` with a text alternative, its ids made unique to `label`."""
    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        drawing.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    slug = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    text = re.sub(r'\bid="', f'id="{slug}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\1{slug}-", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
