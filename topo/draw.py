"""Drawings of a plan: SVG, and text for a terminal. Large plans are drawn in part and say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

from topo.graph import peer, ports
from topo.node import PLURALS, ROLES, Host, Node, Switch, SwitchRole, tier
from topo.path import Path, switches
from topo.pictures.positions import sag
from topo.plan import Plan

PLANES_SHOWN_MAX = 4
SWITCHES_SHOWN_MAX = 8
HOSTS_SHOWN_MAX = 32
SPEEDS_SHOWN_MAX = 8
NOTHING = "–"  # for a switch without such neighbours, in a tier that has some
# Okabe and Ito's palette, which stays apart for colour-blind eyes.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#b5a400")

_BOX, _GAP, _PANEL_GAP, _MARGIN = 46, 10, 34, 24
_TITLE_LETTER = 9.2  # pixels of an average letter of the title
_TOP_Y, _TIER_Y, _HOST_Y = 78, 112, 140


def _shown(count: int, most: int) -> int:
    return min(count, most)


def _roles(plan: Plan) -> list[SwitchRole]:
    """The tiers that the plan has, the highest first."""
    return [role for role in reversed(ROLES) if plan.topology.count(role)]


def _drawn(plan: Plan, plane: int, role: SwitchRole) -> list[Switch]:
    """The switches of a tier and plane that are drawn."""
    most = _shown(plan.topology.count(role), SWITCHES_SHOWN_MAX)
    return [switch for n in range(most) if plan.topology.has(switch := Switch(plane, role, n))]


def draw_text(plan: Plan) -> str:
    """Planes one above the other, hosts last."""
    leaves, roles = _shown(plan.leaves, SWITCHES_SHOWN_MAX), _roles(plan)
    usual = "every leaf of a plane is wired to every spine of it, every host to one leaf of each plane"
    lines = [f"{plan.name}: {usual if plan.shape is None else plan.topology.words()}", ""]
    for plane in range(_shown(plan.planes, PLANES_SHOWN_MAX)):
        names = {role: [switch.name for switch in _drawn(plan, plane, role)] for role in roles}
        for role in roles:
            place = f"  plane {plane}   " if role == roles[0] else " " * 12
            count = plan.topology.count(role)
            more = _more(count, _shown(count, SWITCHES_SHOWN_MAX))
            words = _wired(plan, plane, role)
            wide = max(6, *map(len, words)) if words else 6
            lines.append(f"{place}T{ROLES.index(role)}   " + "  ".join(f"{name:{wide}}" for name in names[role]) + more)
            if words:
                lines.append("             to   " + "  ".join(f"{text:{wide}}" for text in words))
            elif role != "leaf":
                lower = roles[roles.index(role) + 1]
                lines.append("             ×    " + "──" * (4 * max(len(names[role]), len(names[lower]))))
        lines.append("")
    if plan.planes > PLANES_SHOWN_MAX:
        lines += [f"  … and {plan.planes - PLANES_SHOWN_MAX} more planes alike", ""]
    groups = []
    for index in range(leaves):
        count = plan.topology.hosts_under(index)
        own = [plan.host_at(index, d).name for d in range(_shown(count, 4))]
        groups.append(f"[l{index}: " + " ".join(own) + _more(count, 4) + "]")
    lines.append("  hosts   " + " ".join(groups) + _more(plan.leaves, leaves))
    if odd := _odd_speeds(plan):
        lines += ["", "  rates   " + ", ".join(odd[:SPEEDS_SHOWN_MAX]) + _more(len(odd), SPEEDS_SHOWN_MAX)]
    return "\n".join(lines)


def _odd_speeds(plan: Plan) -> list[str]:
    """The cables that have another rate than the plan's, with their share of it."""
    if plan.shape is None:
        return []
    return [f"{one.lower}–{one.upper} × {one.speed:g}" for one in plan.topology.cables() if one.speed != 1.0]


def _wired(plan: Plan, plane: int, role: SwitchRole) -> list[str]:
    """The neighbours of each drawn switch of a tier, but for hosts and higher tiers: "l0-3", "l0 l1".

    Empty where the tier is a leaf's without such cables, or wired whole to the tier below: then a cross says it all.
    """
    drawn = _drawn(plan, plane, role)
    roles = _roles(plan)
    if plan.shape is None or not drawn:
        return []
    others = [[one for one in _cabled(plan, switch) if tier(one) <= tier(switch)] for switch in drawn]
    if role == "leaf":
        return [_ranges(own) or NOTHING for own in others] if any(others) else []
    lower = roles[roles.index(role) + 1]
    whole = [switch for switch in plan.switches() if switch.plane == plane and switch.role == lower]
    return [] if all(own == whole for own in others) else [_ranges(own) for own in others]


def _joined(plan: Plan, plane: int, role: SwitchRole) -> bool:
    """Whether drawn switches of a tier are wired to others of it."""
    if plan.shape is None:
        return False
    return any(one.role == role for switch in _drawn(plan, plane, role) for one in _cabled(plan, switch))


def _cabled(plan: Plan, switch: Switch) -> list[Switch]:
    """The switches that a switch is wired to, the lowest tier first."""
    others = (peer(plan, ref).node for ref in ports(plan, switch))
    found = (one for one in others if isinstance(one, Switch))
    return sorted(found, key=lambda one: (tier(one), one.index))


def _ranges(switches: Sequence[Switch]) -> str:
    """ "l0-3 s1": switches of one plane without its number; three in a row or more are a range."""
    runs: list[list[Switch]] = []
    for one in switches:
        if runs and one.role == runs[-1][-1].role and one.index == runs[-1][-1].index + 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    short = ([f"{_short(run[0])}-{run[-1].index}"] if len(run) > 2 else [_short(one) for one in run] for run in runs)
    return " ".join(word for words in short for word in words)


def _short(switch: Switch) -> str:
    return switch.name.removeprefix(f"p{switch.plane}")


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
        self.roles = _roles(plan)
        self.joined = {
            (plane, role) for plane in range(self.planes) for role in self.roles if _joined(plan, plane, role)
        }
        self.shown = {role: _shown(plan.topology.count(role), SWITCHES_SHOWN_MAX) for role in self.roles}
        self.leaf_y = _TOP_Y + _TIER_Y * (len(self.roles) - 1)
        self.host_y = self.leaf_y + _HOST_Y
        self.downlinks = max(1, _shown(plan.hosts_per_leaf, HOSTS_SHOWN_MAX // self.leaves))
        widest = max(self.shown.values())
        self.panel = widest * (_BOX + _GAP) - _GAP
        hosts_width = self.leaves * (self.downlinks * (_BOX - 10) + 16)
        planes_width = self.planes * self.panel + (self.planes - 1) * _PANEL_GAP
        self.title = f"{plan.name}: {plan.topology.words()}, {plan.host_count:,} hosts"
        self.width = 2 * _MARGIN + max(planes_width, hosts_width, len(self.title) * _TITLE_LETTER)
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
            return _MARGIN + group * (leaf_index + 0.5) + (downlink - middle) * (_BOX - 8), self.host_y
        count = self.shown[node.role]
        if node.plane >= self.planes or node.index >= count:
            return None
        start = self.left + node.plane * (self.panel + _PANEL_GAP)
        offset = (self.panel - (count * (_BOX + _GAP) - _GAP)) / 2
        x = start + offset + node.index * (_BOX + _GAP) + _BOX / 2
        low = sag(node.index, count) if (node.plane, node.role) in self.joined else 0.0
        return x, self.leaf_y - _TIER_Y * (tier(node) - 1 - low)

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
            for role in reversed(self.roles):
                for node in _drawn(plan, plane, role):
                    lines += [self._line(node, other, colour) for other in self._cabled(node)]
                    boxes.append(self._box(node, colour))
            middle = self.left + plane * (self.panel + _PANEL_GAP) + self.panel / 2
            labels.append(f'<text x="{middle:.1f}" y="50" fill="{colour}" font-weight="bold">plane {plane}</text>')
        for index in range(self.leaves):
            under = min(self.downlinks, plan.topology.hosts_under(index))
            boxes += [self._box(plan.host_at(index, downlink), "#333333") for downlink in range(under)]
        title = escape(self.title)
        notes = escape(self._omitted())
        height, middle = self.host_y + 48, self.width / 2
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

    def _cabled(self, node: Switch) -> Iterable[Node]:
        """What a switch is wired to: of a leaf all that is drawn, of others what is above."""
        others = (peer(self.plan, ref).node for ref in ports(self.plan, node))
        return (one for one in others if self._place(one) and (node.role == "leaf" or tier(one) > tier(node)))

    def _omitted(self) -> str:
        plan = self.plan
        pairs = (
            ("planes", plan.planes, self.planes),
            *(
                (f"{PLURALS[role]} a plane", plan.topology.count(role), self.shown[role])
                for role in reversed(self.roles)
            ),
            ("hosts a leaf", plan.hosts_per_leaf, self.downlinks),
        )
        missing = [f"{shown} of {count} {what}" for what, count, shown in pairs if count > shown]
        return "shown: " + ", ".join(missing) if missing else ""
