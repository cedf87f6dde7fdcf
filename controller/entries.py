"""The entries that the controller installs in a switch, by name and without gRPC: the values that `tables` computes.

Names are P4Info's (full names or aliases); arguments are in the order of the action's parameters.
"""

from common.records import Frozen
from p4c.entries import Match
from switch import MeterConfig


class TableEntry(Frozen):
    """`match` pairs a field's name with its match; a field left out matches anything."""

    table: str
    match: tuple[tuple[str, Match], ...]
    action: str
    args: tuple[int, ...] = ()
    priority: int = 0


class GroupEntry(Frozen):
    """An entry of a table with an action selector: it refers to a group."""

    table: str
    match: tuple[tuple[str, Match], ...]
    group_id: int
    priority: int = 0


class DefaultEntry(Frozen):
    """The action on a miss in a table, in place of the program's own."""

    table: str
    action: str
    args: tuple[int, ...] = ()


class SelectorMember(Frozen):
    """A member of an action profile, as groups refer to it."""

    profile: str
    member_id: int
    action: str
    args: tuple[int, ...] = ()


class SelectorGroup(Frozen):
    """`members` are member ids of weight 1; `max_size` must not change while the group lives."""

    profile: str
    group_id: int
    members: tuple[int, ...]
    max_size: int


class MeterEntry(Frozen):
    """One cell of an indirect meter; rates and bursts in the meter's own unit."""

    meter: str
    index: int
    config: MeterConfig


Entity = TableEntry | GroupEntry | DefaultEntry | SelectorMember | SelectorGroup | MeterEntry
"""All kinds of what a controller writes to a switch."""
