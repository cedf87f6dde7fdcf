"""Drawings of a plan for a terminal. Large plans are drawn in part and say so."""

from __future__ import annotations

from collections.abc import Sequence

from topo.graph import peer, ports
from topo.node import ROLES, Switch, SwitchRole, tier
from topo.pictures.part import PLANES_MAX, SWITCHES_MAX, drawn
from topo.plan import Plan

SPEEDS_SHOWN_MAX = 8
NOTHING = "–"  # for a switch without such neighbours, in a tier that has some


def _roles(plan: Plan) -> list[SwitchRole]:
    """The tiers that the plan has, the highest first."""
    return [role for role in reversed(ROLES) if plan.topology.count(role)]


def draw_text(plan: Plan) -> str:
    """Planes one above the other, hosts last."""
    leaves, roles = min(plan.leaves, SWITCHES_MAX), _roles(plan)
    usual = "every leaf of a plane is wired to every spine of it, every host to one leaf of each plane"
    lines = [f"{plan.name}: {usual if plan.shape is None else plan.topology.words()}", ""]
    for plane in range(min(plan.planes, PLANES_MAX)):
        names = {role: [switch.name for switch in drawn(plan, plane, role)] for role in roles}
        for role in roles:
            place = f"  plane {plane}   " if role == roles[0] else " " * 12
            count = plan.topology.count(role)
            more = _more(count, min(count, SWITCHES_MAX))
            words = _wired(plan, plane, role)
            wide = max(6, *map(len, words)) if words else 6
            lines.append(f"{place}T{ROLES.index(role)}   " + "  ".join(f"{name:{wide}}" for name in names[role]) + more)
            if words:
                lines.append("             to   " + "  ".join(f"{text:{wide}}" for text in words))
            elif role != "leaf":
                lower = roles[roles.index(role) + 1]
                lines.append("             ×    " + "──" * (4 * max(len(names[role]), len(names[lower]))))
        lines.append("")
    if plan.planes > PLANES_MAX:
        lines += [f"  … and {plan.planes - PLANES_MAX} more planes alike", ""]
    groups = []
    for index in range(leaves):
        count = plan.topology.hosts_under(index)
        own = [plan.host_at(index, d).name for d in range(min(count, 4))]
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
    shown = drawn(plan, plane, role)
    roles = _roles(plan)
    if plan.shape is None or not shown:
        return []
    others = [[one for one in _cabled(plan, switch) if tier(one) <= tier(switch)] for switch in shown]
    if role == "leaf":
        return [_ranges(own) or NOTHING for own in others] if any(others) else []
    lower = roles[roles.index(role) + 1]
    whole = [switch for switch in plan.switches() if switch.plane == plane and switch.role == lower]
    return [] if all(own == whole for own in others) else [_ranges(own) for own in others]


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
