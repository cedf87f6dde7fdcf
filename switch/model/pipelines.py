"""Match-action pipelines: tables, conditionals, and the nodes that lead from one to the next."""

from __future__ import annotations

from collections.abc import Mapping

from switch.entries import Entry
from switch.model.actions import Action, SourceInfo
from switch.model.expressions import Expression, FieldRef, ValidBit
from switch.model.externs import Calculation, Counter, Meter
from switch.records import Frozen


class Key(Frozen):
    """One match field. `match` is exact, lpm, ternary or range (`optional` of P4 arrives as ternary; `valid` as exact).

    A field of an invalid header is matched as 0.
    """

    name: str
    match: str
    target: FieldRef | ValidBit
    width_bits: int
    mask: int | None = None  # a static mask that the program puts over the field


class ActionProfile(Frozen, eq=False):
    name: str
    index: int
    max_size: int
    selector: Calculation | None  # an action selector: hashes to one member of a group

    @property
    def has_groups(self) -> bool:
        return self.selector is not None


class DefaultAction(Frozen):
    action: Action
    args: tuple[int, ...]
    const: bool  # the control plane may not change it


class Table(Frozen, eq=False):
    """`match` is the whole table's kind: exact, lpm, ternary or range (the loosest of its keys')."""

    name: str
    index: int  # among all tables of the program
    match: str
    keys: tuple[Key, ...]
    actions: tuple[Action, ...]
    max_size: int
    default: DefaultAction | None  # None: a miss does nothing
    entries: tuple[Entry, ...]  # initial entries; engines give them the handles 0, 1, … in this order
    const_entries: bool  # the entries cannot be changed, and none can be added
    profile: ActionProfile | None
    counter: Counter | None  # direct
    meter: Meter | None  # direct
    support_timeout: bool
    # Where to go next: by hit and miss when `by_hit`, else by the name of the action that was run.
    by_hit: bool
    next_hit: str | None
    next_miss: str | None
    next_by_action: Mapping[str, str | None]
    next_without_action: str | None  # on a miss without a default action, and for an empty group


class Conditional(Frozen, eq=False):
    name: str
    index: int
    expression: Expression
    if_true: str | None
    if_false: str | None
    source: SourceInfo | None = None


class ActionCallNode(Frozen, eq=False):
    name: str
    index: int
    action: Action
    next: str | None


Node = Table | Conditional | ActionCallNode


class Pipeline(Frozen, eq=False):
    """Next nodes are names in `nodes`; None is the end."""

    name: str
    init: str | None
    nodes: Mapping[str, Node]

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(n for n in self.nodes.values() if isinstance(n, Table))
