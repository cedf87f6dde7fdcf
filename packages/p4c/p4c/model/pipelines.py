"""Match-action pipelines: tables, conditionals, and the nodes that lead from one to the next."""

from collections.abc import Mapping
from dataclasses import field

from common.records import Frozen
from p4c.entries import Entry
from p4c.model.actions import Action
from p4c.model.expressions import Expression, FieldRef, ValidBit
from p4c.model.externs import Calculation, Counter, Meter
from p4c.model.source import SourceInfo

__all__ = ["ActionCallNode", "ActionProfile", "Conditional", "Key", "Node", "Pipeline", "Table"]


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
    """Members, and groups of members, that several entries of tables share."""

    name: str
    index: int
    max_size: int
    selector: Calculation | None  # an action selector: hashes to one member of a group
    source: SourceInfo | None = None

    @property
    def has_groups(self) -> bool:
        return self.selector is not None


class DefaultAction(Frozen):
    action: Action
    args: tuple[int, ...]
    const: bool  # the control plane may not change it


class InitialEntry(Frozen):
    """An entry that the program itself gives a table."""

    entry: Entry
    rank: int  # the JSON's priority, of which the smallest wins
    source: SourceInfo | None = None


class Table(Frozen, eq=False):
    """`match` is the whole table's kind: exact, lpm, ternary or range (the loosest of its keys')."""

    name: str
    index: int  # among all tables of the program
    match: str
    keys: tuple[Key, ...]
    actions: tuple[Action, ...]
    max_size: int
    default: DefaultAction | None  # None: a miss does nothing
    initial: tuple[InitialEntry, ...] = ()  # engines give these entries the handles 0, 1, … in this order
    const_entries: bool = False  # the entries cannot be changed, and none can be added
    profile: ActionProfile | None = None
    counter: Counter | None = None  # direct
    meter: Meter | None = None  # direct
    support_timeout: bool = False
    # Where to go next: by hit and miss when `by_hit`, else by the name of the action that was run.
    by_hit: bool = False
    next_hit: str | None = None
    next_miss: str | None = None
    next_by_action: Mapping[str, str | None] = field(default_factory=dict)
    next_without_action: str | None = None  # on a miss without a default action, and for an empty group
    source: SourceInfo | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(initial.entry for initial in self.initial)


class Conditional(Frozen, eq=False):
    """An `if` between nodes of a pipeline; None ends the pipeline."""

    name: str
    index: int
    expression: Expression
    if_true: str | None
    if_false: str | None
    source: SourceInfo | None = None


class ActionCallNode(Frozen, eq=False):
    """A call of an action without a table, and the node after it."""

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
    profiles: tuple[ActionProfile, ...] = ()
    source: SourceInfo | None = None

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(n for n in self.nodes.values() if isinstance(n, Table))
