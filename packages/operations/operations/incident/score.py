"""How right an answer is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from operations.incident.draw import Hidden
from operations.incident.kind import nodes_of
from topo import Plan

Word = Literal["right", "partly right", "wrong"]
Named = tuple[str, str]
"""A component and a kind."""


@dataclass(frozen=True, slots=True)
class Score:
    """`points` is the share of the truth that was named, 0 to 1; `extra` are named faults that do not exist.

    `net` makes guessing worthless: the points, less a fault's share for each one that does not exist, at least -1. To
    answer falsely that nothing is wrong is -1 as well, and who gives up has 0.
    """

    word: Word
    points: float
    matched: tuple[tuple[Named, float, Named | None], ...]
    """Each hidden fault with its points, and the answer that earned them: 1 for component and kind, 0.5 for one of them
    at the right place."""
    extra: tuple[Named, ...]

    @property
    def net(self) -> float:
        if not self.points and not self.extra:
            return -1.0
        return max(-1.0, self.points - len(self.extra) / max(1, len(self.matched)))


def score(plan: Plan, hidden: Sequence[Hidden], named: Sequence[Named]) -> Score:
    """The score of an answer. Right: every fault with component and kind, and nothing else."""
    left, matched = list(named), []
    for fault in hidden:
        best = max(left, key=lambda answer: points(plan, fault, answer), default=None)
        worth = 0.0 if best is None else points(plan, fault, best)
        if best is not None and worth:
            left.remove(best)
        matched.append(((fault.component, fault.kind), worth, best if worth else None))
    total = sum(worth for _, worth, _ in matched)
    share = total / len(matched) if matched else float(not named)
    word: Word = "right" if share == 1 and not left else "partly right" if total else "wrong"
    return Score(word, share, tuple(matched), tuple(left))


def points(plan: Plan, fault: Hidden, answer: Named) -> float:
    """1 for component and kind; 0.5 where one of them is right and the other close; else 0."""
    component, kind = answer
    same = component in components(fault)
    if same and kind == fault.kind:
        return 1.0
    near = bool(nodes_of(plan, component) & nodes_of(plan, fault.component))
    return 0.5 if same or (kind == fault.kind and near) or _same_cable(component, fault.component) else 0.0


def components(fault: Hidden) -> tuple[str, ...]:
    """Every component that names the fault exactly."""
    return (fault.component, fault.names["other"]) if fault.kind == "swapped-cables" else (fault.component,)


def _same_cable(first: str, second: str) -> bool:
    """Whether both are a cable, or a direction of it."""
    ends = [frozenset(text.replace(">", "-").split("-")) for text in (first, second)]
    return ends[0] == ends[1] and len(ends[0]) == 2
