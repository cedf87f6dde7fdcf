"""Drawings of a plan: SVG, and text for a terminal. Large plans are drawn in part and say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

from topo.graph import PortRef, peer, ports
from topo.node import Host, Node, Switch, leaf, spine
from topo.path import Path, switches
from topo.plan import Plan

PLANES_SHOWN_MAX = 4
SWITCHES_SHOWN_MAX = 8
HOSTS_SHOWN_MAX = 32
# Okabe and Ito's palette, which stays apart for colour-blind eyes.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b5a400")

_BOX, _GAP, _PANEL_GAP, _MARGIN = 46, 10, 34, 24
_SPINE_Y, _LEAF_Y, _HOST_Y = 78, 190, 330


def _shown(count: int, most: int) -> int:
    return min(count, most)


def draw_text(plan: Plan) -> str:
    """Planes one above the other, hosts last."""
    leaves, spines = _shown(plan.leaves, SWITCHES_SHOWN_MAX), _shown(plan.spines, SWITCHES_SHOWN_MAX)
    lines = [
        f"{plan.name}: every leaf of a plane is wired to every spine of it, every host to one leaf of each plane",
        "",
    ]
    for plane in range(_shown(plan.planes, PLANES_SHOWN_MAX)):
        tops = [spine(plane, index).name for index in range(spines)]
        bottoms = [leaf(plane, index).name for index in range(leaves)]
        lines.append(f"  plane {plane}   T1   " + "  ".join(f"{name:6}" for name in tops) + _more(plan.spines, spines))
        lines.append("             ×    " + "──" * (4 * max(len(tops), len(bottoms))))
        lines.append("            T0   " + "  ".join(f"{name:6}" for name in bottoms) + _more(plan.leaves, leaves))
        lines.append("")
    if plan.planes > PLANES_SHOWN_MAX:
        lines += [f"  … and {plan.planes - PLANES_SHOWN_MAX} more planes alike", ""]
    groups = []
    for index in range(leaves):
        names = [plan.host_at(index, d).name for d in range(_shown(plan.hosts_per_leaf, 4))]
        groups.append(f"[l{index}: " + " ".join(names) + _more(plan.hosts_per_leaf, 4) + "]")
    lines.append("  hosts   " + " ".join(groups) + _more(plan.leaves, leaves))
    return "\n".join(lines)


def _more(count: int, shown: int) -> str:
    return f" … {count - shown} more" if count > shown else ""


def draw_svg(plan: Plan, highlighted: Sequence[Path] = ()) -> str:
    """Planes side by side, hosts below; the highlighted paths drawn bold."""
    return _Drawing(plan, highlighted).svg()


class _Drawing:
    def __init__(self, plan: Plan, highlighted: Sequence[Path]) -> None:
        self.plan = plan
        self.planes = _shown(plan.planes, PLANES_SHOWN_MAX)
        self.leaves = _shown(plan.leaves, SWITCHES_SHOWN_MAX)
        self.spines = _shown(plan.spines, SWITCHES_SHOWN_MAX)
        self.downlinks = max(1, _shown(plan.hosts_per_leaf, HOSTS_SHOWN_MAX // self.leaves))
        widest = max(self.leaves, self.spines)
        self.panel = widest * (_BOX + _GAP) - _GAP
        hosts_width = self.leaves * (self.downlinks * (_BOX - 10) + 16)
        planes_width = self.planes * self.panel + (self.planes - 1) * _PANEL_GAP
        self.width = 2 * _MARGIN + max(planes_width, hosts_width)
        self.left = (self.width - planes_width) / 2
        self.bold = {frozenset(pair) for path in highlighted for pair in self._pairs(path)}

    def _pairs(self, path: Path) -> Iterable[tuple[Node, Node]]:
        nodes: list[Node] = [path.source, *switches(self.plan, path), path.destination]
        return pairwise(nodes)

    def _place(self, node: Node) -> tuple[float, float] | None:
        """The middle of a node's box; None when it is not drawn."""
        if isinstance(node, Host):
            leaf_index, downlink = self.plan.leaf_of(node), self.plan.downlink_of(node)
            if leaf_index >= self.leaves or downlink >= self.downlinks:
                return None
            group = (self.width - 2 * _MARGIN) / self.leaves
            middle = (self.downlinks - 1) / 2
            return _MARGIN + group * (leaf_index + 0.5) + (downlink - middle) * (_BOX - 8), _HOST_Y
        count = self.leaves if node.role == "leaf" else self.spines
        if node.plane >= self.planes or node.index >= count:
            return None
        start = self.left + node.plane * (self.panel + _PANEL_GAP)
        offset = (self.panel - (count * (_BOX + _GAP) - _GAP)) / 2
        x = start + offset + node.index * (_BOX + _GAP) + _BOX / 2
        return x, _LEAF_Y if node.role == "leaf" else _SPINE_Y

    def _line(self, a: Node, b: Node, colour: str) -> str:
        start, end = self._place(a), self._place(b)
        if start is None or end is None:
            return ""
        bold = frozenset((a, b)) in self.bold
        style = 'stroke-width="3"' if bold else f'stroke-width="1" stroke-opacity="{0.25 if self.bold else 0.45}"'
        return (
            f'<line x1="{start[0]:.1f}" y1="{start[1]}" x2="{end[0]:.1f}" y2="{end[1]}" stroke="{colour}" {style}>'
            f"<title>{a}–{b}</title></line>"
        )

    def _box(self, node: Node, colour: str) -> str:
        place = self._place(node)
        if place is None:
            return ""
        width = _BOX - 10 if isinstance(node, Host) else _BOX
        fill = "#ffffff" if isinstance(node, Switch) and node.role == "leaf" else colour
        text = colour if fill == "#ffffff" else "#ffffff"
        x, y = place
        return (
            f'<rect x="{x - width / 2:.1f}" y="{y - 12}" width="{width}" height="24" rx="5" fill="{fill}"'
            f' stroke="{colour}" stroke-width="1.5"/><text x="{x:.1f}" y="{y + 4}" fill="{text}">{node}</text>'
        )

    def svg(self) -> str:
        plan = self.plan
        lines, boxes, labels = [], [], []
        for plane in range(self.planes):
            colour = COLOURS[plane]
            for index in range(self.leaves):
                node = leaf(plane, index)
                lines += [self._line(node, peer(plan, ref).node, colour) for ref in self._drawn_ports(node)]
                boxes.append(self._box(node, colour))
            boxes += [self._box(spine(plane, index), colour) for index in range(self.spines)]
            middle = self.left + plane * (self.panel + _PANEL_GAP) + self.panel / 2
            labels.append(f'<text x="{middle:.1f}" y="50" fill="{colour}" font-weight="bold">plane {plane}</text>')
        for index in range(self.leaves):
            boxes += [self._box(plan.host_at(index, downlink), "#333333") for downlink in range(self.downlinks)]
        title = escape(f"{plan.name}: {plan.planes} planes × {plan.leaves} leaves × {plan.spines} spines,"
                       f" {plan.host_count:,} hosts")  # fmt: skip
        notes = escape(self._omitted())
        height, middle = _HOST_Y + 48, self.width / 2
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f} {height}" role="img"'
                f' width="{self.width:.0f}" height="{height}" font-family="sans-serif" font-size="12"'
                ' text-anchor="middle">',
                f"<title>{title}</title>",
                f'<rect width="{self.width:.0f}" height="{height}" fill="#ffffff"/>',
                f'<text x="{middle:.1f}" y="26" font-size="15" font-weight="bold" fill="#333333">{title}</text>',
                *filter(None, lines),
                *filter(None, boxes),
                *labels,
                f'<text x="{middle:.1f}" y="{height - 10}" fill="#666666">{notes}</text>',
                "</svg>",
            ]
        )  # fmt: skip

    def _drawn_ports(self, node: Switch) -> Iterable[PortRef]:
        return (ref for ref in ports(self.plan, node) if self._place(peer(self.plan, ref).node) is not None)

    def _omitted(self) -> str:
        plan = self.plan
        pairs = (
            ("planes", plan.planes, self.planes),
            ("leaves a plane", plan.leaves, self.leaves),
            ("spines a plane", plan.spines, self.spines),
            ("hosts a leaf", plan.hosts_per_leaf, self.downlinks),
        )
        missing = [f"{shown} of {count} {what}" for what, count, shown in pairs if count > shown]
        return "shown: " + ", ".join(missing) if missing else ""
