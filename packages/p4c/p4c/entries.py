"""Table entries: their matches and their actions, in the terms of P4Runtime (section 9.1).

Values, masks and arguments are non-negative ints; their widths are the program's.
"""

from dataclasses import dataclass

__all__ = [
    "ActionCall", "Entry", "EntryAction", "Exact", "GroupRef", "Lpm", "Match", "MemberRef", "Optional", "Range",
    "Ternary",
]  # fmt: skip

# --- match keys, one value per match field, in the table's field order ---------------------------------------


@dataclass(frozen=True, slots=True)
class Exact:
    """The field equals `value`."""

    value: int


@dataclass(frozen=True, slots=True)
class Lpm:
    """The field's first `prefix_len` bits are those of `value`; the longest prefix wins. 0 matches anything."""

    value: int
    prefix_len: int


@dataclass(frozen=True, slots=True)
class Ternary:
    """The field and `value` agree where `mask` has ones."""

    value: int
    mask: int


@dataclass(frozen=True, slots=True)
class Range:
    """The field is from `low` to `high`."""

    low: int
    high: int  # inclusive


@dataclass(frozen=True, slots=True)
class Optional:
    """The field equals `value`; None matches anything."""

    value: int | None


Match = Exact | Lpm | Ternary | Range | Optional


# --- what an entry does ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action of the program with its arguments, in the order of its parameters."""

    name: str
    args: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberRef:
    """An action profile member."""

    member_id: int


@dataclass(frozen=True, slots=True)
class GroupRef:
    """An action selector group."""

    group_id: int


EntryAction = ActionCall | MemberRef | GroupRef


@dataclass(frozen=True, slots=True)
class Entry:
    """One table entry: a match for each of the table's keys, in their order (P4Runtime, section 9.1)."""

    matches: tuple[Match, ...]
    action: EntryAction
    priority: int = 0  # P4Runtime's sense: among ternary, range and optional entries the larger number wins
