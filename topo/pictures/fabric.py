"""A fabric drawn: planes side by side, spines above leaves, hosts below all; SVG or PNG by Matplotlib."""

import io
from typing import Any

from common.interpreter import mpl  # before all else of Matplotlib

# isort: split
from matplotlib.figure import Figure

from topo.pictures.graph import BAD, Graph
from topo.pictures.positions import positions

INK, PAPER = "#1f2933", "#ffffff"
INCHES_A_NODE, INCHES_MIN, INCHES_MAX = 0.55, 6.0, 40.0
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mrclab",
    "font.family": "sans-serif",
    "text.parse_math": False,  # the name of a plan may hold $
}
PATCH = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}
CENTRED: Any = {"ha": "center", "va": "center"}
LABELS_MAX = 60  # more links than this show their load by colour only


def picture(graph: Graph, form: str) -> bytes:
    """`form` is "svg" or "png"."""
    at = positions(graph)
    width = min(max(max(x for x, _ in at.values()) * INCHES_A_NODE, INCHES_MIN), INCHES_MAX)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 5.0), layout="constrained")
        axes = figure.subplots()
        for cable in graph.cables:
            (x1, y1), (x2, y2) = at[cable.a], at[cable.b]
            thick = 3.0 if cable.bold else 0.8 + 2.5 * min(cable.load or 0.0, 1.0)
            style = "--" if cable.faults else "-"
            above = 3 if cable.faults or cable.bold else 1
            axes.plot((x1, x2), (y1, y2), style, color=cable.colour, linewidth=thick, zorder=above)
            if cable.faults or (cable.label and len(graph.cables) <= LABELS_MAX):
                # A third of the way up: links that share an upper end are still apart there.
                where = (x1 + (x2 - x1) / 3, y1 + (y2 - y1) / 3)
                axes.text(*where, cable.label, color=cable.colour, fontsize=7, zorder=4, bbox=PATCH, **CENTRED)
        for place in graph.places:
            colour = BAD if place.faults else INK
            text = "\n".join([place.name, *place.faults])
            box = {"facecolor": PAPER, "edgecolor": colour, "boxstyle": "round"}
            axes.text(*at[place.name], text, color=colour, fontsize=8, zorder=5, bbox=box, **CENTRED)
        # Matplotlib breaks lines without a look at text.parse_math: `\$` is no formula there either.
        axes.set_title(graph.title.replace("$", r"\$"), fontsize=10, color=INK, wrap=True, parse_math=True)
        axes.set_xlim(min(x for x, _ in at.values()) - 1, max(x for x, _ in at.values()) + 1)
        axes.set_ylim(-0.4, graph.tiers + 0.4)
        axes.axis("off")
        if graph.note:
            figure.supxlabel(graph.note, fontsize=8, color=INK)
        buffer = io.BytesIO()
        figure.savefig(buffer, format=form, dpi=130, metadata={"Date": None} if form == "svg" else None)
    return buffer.getvalue()
