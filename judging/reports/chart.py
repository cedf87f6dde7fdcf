"""Charts as SVG: lines, dots, bands and boxes over two axes, written without a drawing library.

Every run ends with a report of four charts, and a library that can draw anything takes longer to import than the run
takes to be judged. Lengths are in points. Text stays text: searchable, and in the reader's own font.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

WIDTH = 662.0  # of a report's column
INK = "#1f2933"
FAINT = "#9aa5b1"
GRID = "#e4e7eb"
TEXT_SIZE = 11.0  # to be read from the last row
SMALL_SIZE = 10.0
LETTER = 0.55  # of a text's size: the width of an average letter
GAP = 4.0  # between an axis, its numbers and its name
NAME_ROW = 13.0  # from one row of names above the chart to the next
TICK_EVERY = (80.0, 32.0)  # from one round number to the next at least, along x and y
POINTS_A_COLUMN = 4  # of a line, within one point of width, as many as can be seen

Tick = tuple[float, str]
"""A value on an axis, and its text."""


@dataclass
class Axis:
    """The values along one side. `low` and `high` are set, or follow from what is drawn; `ticks` follow from these.

    `margin` is the share of the greatest value that is left free above it.
    """

    label: str = ""
    low: float | None = None
    high: float | None = None
    logarithmic: bool = False
    ticks: Sequence[Tick] | None = None
    margin: float = 0.0
    downwards: bool = False
    seen: tuple[float, float] | None = None
    """The least and the greatest value drawn."""

    def see(self, values: Iterable[float]) -> None:
        """Take values into account that are drawn; those that are no finite numbers are not."""
        finite = [value for value in values if math.isfinite(value)]
        if finite:
            least, most = self.seen or (finite[0], finite[0])
            self.seen = min(least, *finite), max(most, *finite)

    def limits(self) -> tuple[float, float]:
        """The values at both ends, which differ."""
        least, most = self.seen or (0.0, 1.0)
        low = least if self.low is None else self.low
        high = most * (1 + self.margin) if self.high is None else self.high
        return (low, high) if high > low else (low, low * 10 if self.logarithmic and low > 0 else low + 1)

    def numbers(self, length: float, every: float) -> Sequence[Tick]:
        """The ticks: the own ones, or round numbers along so many points."""
        if self.ticks is not None:
            return self.ticks
        low, high = self.limits()
        found = powers(low, high) if self.logarithmic else rounds(low, high, max(2, int(length / every)))
        return [(value, f"{value:,.12g}") for value in found]


def rounds(low: float, high: float, most: int) -> list[float]:
    """At most so many round numbers from `low` to `high`, or two: steps of 1, 2 or 5 times a power of ten."""
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    while (high - low) / step > most:
        step *= 2.5 if round(step / 10 ** math.floor(math.log10(step) + 1e-9)) == 2 else 2
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(number * step, digits) for number in range(first, last + 1)]


def powers(low: float, high: float) -> list[float]:
    """Powers of ten from `low` to `high`, with their double and fivefold where the powers are few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(decades) <= 3 else (1,)
    found = [factor * 10.0**decade for decade in decades for factor in factors]
    return [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]


class Area(NamedTuple):
    """The rectangle between the axes, and the values at its edges; `x` and `y` place a value, at the edge where it lies
    beyond."""

    left: float
    top: float
    right: float
    bottom: float
    across: Axis
    up: Axis

    def x(self, value: float) -> float:
        return self.left + share(value, self.across) * (self.right - self.left)

    def y(self, value: float) -> float:
        return self.bottom - share(value, self.up) * (self.bottom - self.top)


def share(value: float, axis: Axis) -> float:
    """Where a value lies on an axis, from 0 to 1."""
    low, high = axis.limits()
    if axis.logarithmic:
        low, high, value = math.log10(low), math.log10(high), math.log10(max(value, low))
    found = min(1.0, max(0.0, (value - low) / (high - low)))
    return 1.0 - found if axis.downwards else found


Mark = Callable[[Area], str]


@dataclass
class Chart:
    """Marks are drawn in the order in which they were added, lines of the grid below all of them."""

    height: float
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    grid: bool = True
    legend: str = "lower"
    """Where names of lines are, at the right: `lower` or `upper`."""
    _marks: list[Mark] = field(default_factory=list)
    _legend: list[tuple[str, str]] = field(default_factory=list)
    _above: list[tuple[float, str, int, str]] = field(default_factory=list)

    def line(
        self, xs: Sequence[float], ys: Sequence[float], colour: str, *, name: str = "", width: float = 1.4
    ) -> None:
        """A line through points; it has a hole where a value is no finite number. Several names make a legend."""
        self._see(xs, ys, colour, name)
        self._marks.append(lambda area: stroke(route(area, xs, ys), colour, width, join="round"))

    def steps(self, xs: Sequence[float], ys: Sequence[float], colour: str, *, name: str = "") -> None:
        """A line that keeps each point's height up to the next point."""
        across = [x for x in xs for _ in range(2)][1:]
        self.line(across, [y for y in ys for _ in range(2)][:-1], colour, name=name)

    def dots(self, xs: Sequence[float], ys: Sequence[float], colour: str, *, name: str = "", size: float = 3) -> None:
        """A dot for each point."""
        self._see(xs, ys, colour, name)
        points = list(zip(xs, ys, strict=True))
        self._marks.append(
            lambda area: stroke(
                "".join(f"M{area.x(x):.1f},{area.y(y):.1f}h0" for x, y in points), colour, size, cap="round"
            )
        )

    def band(self, start: float, stop: float, colour: str, opacity: float, *, hair: float = 0, edge: str = "") -> None:
        """A range of x from top to bottom, at least a hair wide; `edge` is the colour of a line at its beginning."""

        def mark(area: Area) -> str:
            left, right = area.x(start), area.x(stop)
            wide = max(right - left, hair)
            shade = box(left, area.top, wide, area.bottom - area.top)
            return fill(shade, colour, opacity) + (upright(area, start, edge, 0.8) if edge else "")

        self._marks.append(mark)

    def upright(self, x: float, colour: str, width: float = 0.8, dashes: str = "") -> None:
        """A line from top to bottom."""
        self._marks.append(lambda area: upright(area, x, colour, width, dashes))

    def boxes(self, boxes: Sequence[tuple[float, float, float, float]], colour: str, opacity: float = 1.0) -> None:
        """Rectangles of one colour, each with its least and greatest x, and its least and greatest y."""

        def mark(area: Area) -> str:
            shapes = []
            for left, right, low, high in boxes:
                ends = sorted((area.y(low), area.y(high)))
                shapes.append(box(area.x(left), ends[0], area.x(right) - area.x(left), ends[1] - ends[0]))
            return fill("".join(shapes), colour, opacity)

        self._marks.append(mark)

    def name_above(self, x: float, text: str, row: int, colour: str) -> None:
        """A text above the chart that begins at `x`; row 0 is the lowest."""
        self._above.append((x, text, row, colour))

    def _see(self, xs: Sequence[float], ys: Sequence[float], colour: str, name: str) -> None:
        self.x.see(xs)
        self.y.see(ys)
        if name:
            self._legend.append((name, colour))

    def drawn(self, left: float, width: float) -> str:
        """The chart as SVG elements in a column of so many points that begins at `left`."""
        rows = 1 + max((row for _, _, row, _ in self._above), default=-1)
        top = GAP + rows * NAME_ROW
        bottom = self.height - TEXT_SIZE * 1.3 - GAP - (TEXT_SIZE * 1.4 if self.x.label else 0)
        ups = self.y.numbers(bottom - top, TICK_EVERY[1])
        room = max((text_width(text, SMALL_SIZE) for _, text in ups), default=0.0)
        margin = room + 2 * GAP + (TEXT_SIZE * 1.5 if self.y.label else 0)
        area = Area(left + margin, top, left + width - 3 * GAP, bottom, self.x, self.y)
        acrosses = self.x.numbers(area.right - area.left, TICK_EVERY[0])
        parts = [self._grid(area, acrosses, ups)] if self.grid else []
        parts += [mark(area) for mark in self._marks]
        frame = f"M{area.left:.1f},{area.top:.1f}V{area.bottom:.1f}H{area.right:.1f}"
        parts.append(stroke(frame, FAINT, 0.8))
        for value, said in acrosses:
            parts.append(text(area.x(value), bottom + GAP + SMALL_SIZE, said, SMALL_SIZE, "middle"))
        for value, said in ups:
            parts.append(text(area.left - GAP, area.y(value) + SMALL_SIZE * 0.35, said, SMALL_SIZE, "end"))
        if self.x.label:
            parts.append(text((area.left + area.right) / 2, self.height - GAP, self.x.label, TEXT_SIZE, "middle"))
        if self.y.label:
            at = left + TEXT_SIZE, (area.top + area.bottom) / 2
            turn = f' transform="rotate(-90 {at[0]:.1f} {at[1]:.1f})"'
            parts.append(text(*at, self.y.label, TEXT_SIZE, "middle", more=turn))
        for x, said, row, colour in self._above:
            parts.append(text(area.x(x), area.top - GAP - row * NAME_ROW, said, SMALL_SIZE, "start", colour))
        return "".join([*parts, self._names(area)])

    @staticmethod
    def _grid(area: Area, acrosses: Sequence[Tick], ups: Sequence[Tick]) -> str:
        lines = [f"M{area.x(value):.1f},{area.top:.1f}V{area.bottom:.1f}" for value, _ in acrosses]
        lines += [f"M{area.left:.1f},{area.y(value):.1f}H{area.right:.1f}" for value, _ in ups]
        return stroke("".join(lines), GRID, 0.8)

    def _names(self, area: Area) -> str:
        """The legend, from right to left in rows, where several lines have names."""
        if len(self._legend) < 2:
            return ""
        parts, right, row = [], area.right, 0
        for name, colour in reversed(self._legend):
            width = text_width(name, SMALL_SIZE) + 9 * GAP
            if right - width < area.left and right < area.right:
                right, row = area.right, row + 1
            down = row * NAME_ROW if self.legend == "upper" else area.bottom - area.top - (row + 2) * NAME_ROW
            y = area.top + NAME_ROW + down
            left = right - width
            parts.append(stroke(f"M{left:.1f},{y - SMALL_SIZE * 0.35:.1f}h{5 * GAP:.1f}", colour, 2))
            parts.append(text(left + 6 * GAP, y, name, SMALL_SIZE, "start"))
            right = left
        return "".join(parts)


def svg(label: str, *charts: Chart) -> str:
    """Charts side by side as one inline `<svg>` as wide as the report's column, with a text alternative."""
    height = max(chart.height for chart in charts)
    width = WIDTH / len(charts)
    drawn = "".join(chart.drawn(number * width, width) for number, chart in enumerate(charts))
    return (
        f'<svg role="img" aria-label="{escape(label)}" xmlns="http://www.w3.org/2000/svg"'
        f' viewBox="0 0 {WIDTH:g} {height:g}" font-family="sans-serif">{drawn}</svg>'
    )


def route(area: Area, xs: Sequence[float], ys: Sequence[float]) -> str:
    """The path of a line. Of points that lie in one point of its width those at the ends and extremes are kept."""
    pieces: list[str] = []
    going = False
    for x, y in thinned(area, xs, ys):
        if math.isnan(x):
            going = False
            continue
        pieces.append(f"{'L' if going else 'M'}{x:.1f},{y:.1f}")
        going = True
    return "".join(pieces)


def thinned(area: Area, xs: Sequence[float], ys: Sequence[float]) -> list[tuple[float, float]]:
    """The places of points; of very many, the first, lowest, highest and last in each point of the area's width.

    What is no finite number has no place, which is NaN.
    """
    places = [
        (area.x(x), area.y(y)) if math.isfinite(x) and math.isfinite(y) else (math.nan, math.nan)
        for x, y in zip(xs, ys, strict=True)
    ]
    if len(places) <= POINTS_A_COLUMN * (area.right - area.left):
        return places
    kept: set[int] = set()
    columns: dict[int, list[int]] = {}
    for number, (x, _) in enumerate(places):
        if math.isnan(x):
            kept.add(number)
        else:
            columns.setdefault(int(x), []).append(number)
    for numbers in columns.values():
        lowest, highest = (pick(numbers, key=lambda number: places[number][1]) for pick in (min, max))
        kept |= {numbers[0], lowest, highest, numbers[-1]}
    return [places[number] for number in sorted(kept)]


def upright(area: Area, x: float, colour: str, width: float, dashes: str = "") -> str:
    """A line from the top of the area to its bottom."""
    return stroke(f"M{area.x(x):.1f},{area.top:.1f}V{area.bottom:.1f}", colour, width, dashes=dashes)


def box(left: float, top: float, width: float, height: float) -> str:
    """The path around a rectangle."""
    return f"M{left:.1f},{top:.1f}h{width:.2f}v{height:.1f}h{-width:.2f}z"


def stroke(path: str, colour: str, width: float, *, dashes: str = "", join: str = "", cap: str = "") -> str:
    """A `<path>` that is a line; nothing where it has no points."""
    more = f' stroke-dasharray="{dashes}"' if dashes else ""
    more += f' stroke-linejoin="{join}"' if join else ""
    more += f' stroke-linecap="{cap}"' if cap else ""
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{more}/>' if path else ""


def fill(path: str, colour: str, opacity: float = 1.0) -> str:
    """A `<path>` that is an area; nothing where it has no points."""
    return f'<path d="{path}" fill="{colour}" fill-opacity="{opacity:.3g}"/>' if path else ""


def text(x: float, y: float, said: str, size: float, anchor: str, colour: str = INK, more: str = "") -> str:
    """A `<text>` whose base line is at `y`."""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}{more}>{escape(said)}</text>"


def text_width(said: str, size: float) -> float:
    """About how wide a text is."""
    return len(said) * size * LETTER
