"""The memory of a program's state: one total, which the compiler and `load` check.

Each part is counted as if all of it were in use. Arrays of externs have the same size in both engines. Entries are
counted by the native engine's structures, with the room that their array keeps to grow. Python's own objects for an
entry (about 1 KiB) are not counted: the control plane brings them with each entry that it writes.
"""

from collections.abc import Iterator

from common.records import Frozen
from p4c.model.pipelines import ActionProfile, Table
from p4c.model.program import Program
from p4c.model.source import SourceInfo

__all__ = ["data_words", "word_count"]

BYTES_MAX = 256 << 20  # of one program
_WORD_BYTES = 8
_COUNTER_BYTES = 16  # runtime/program/extern.h
_METER_BYTES = 112
_ENTRY_BYTES = 80  # runtime/program/table.h; with its place in the hash and in the ranks
_SLOT_BYTES = 32  # runtime/program/profile.h: a member or a group, with its place in the hash
_GROWTH = 2  # arrays of entries and members double
_LARGEST_SHOWN = 5


class Part(Frozen):
    """One array or table, and the bytes that it may take."""

    what: str  # kind and name, for people
    bytes: int
    source: SourceInfo | None


def word_count(width_bits: int) -> int:
    """64-bit words of a key field, action argument or register cell."""
    return max(1, (width_bits + 63) // 64)


def parts(program: Program) -> Iterator[Part]:
    """Everything whose size the program chooses. Direct counters and meters are in their table's part."""
    for register in program.registers:
        size_bytes = register.size * word_count(register.width_bits) * _WORD_BYTES
        yield Part(f"register {register.name}", size_bytes, register.source)
    for counter in program.counters:
        yield Part(f"counter {counter.name}", counter.size * _COUNTER_BYTES, counter.source)
    for meter in program.meters:
        if not meter.direct:
            yield Part(f"meter {meter.name}", meter.size * _METER_BYTES, meter.source)
    for table in program.tables:
        yield Part(f"table {table.name}", _table_bytes(table), table.source)
    for profile in program.profiles:
        yield Part(f"action profile {profile.name}", _profile_bytes(profile, program), profile.source)


def data_words(table: Table) -> int:
    """Of the longest action data of the table's actions."""
    return max((sum(word_count(p.width_bits) for p in action.parameters) for action in table.actions), default=0)


def _table_bytes(table: Table) -> int:
    if not table.keys:  # it has no entries
        return 0
    key_words = 2 * sum(word_count(key.width_bits) for key in table.keys)  # with the mask
    entry_bytes = _GROWTH * (_ENTRY_BYTES + (key_words + data_words(table)) * _WORD_BYTES)
    keys = 1 << sum(key.width_bits for key in table.keys) if table.match == "exact" else table.max_size
    return min(table.max_size, keys) * (entry_bytes + (_METER_BYTES if table.meter is not None else 0))


def _profile_bytes(profile: ActionProfile, program: Program) -> int:
    action_words = max((data_words(t) for t in program.tables if t.profile is profile), default=0)
    return profile.max_size * _GROWTH * ((1 + profile.has_groups) * _SLOT_BYTES + action_words * _WORD_BYTES)


def excess(program: Program) -> tuple[str, SourceInfo | None] | None:
    """Why the program takes too much, with the place of its largest part; None for a program that does not."""
    ordered = sorted(parts(program), key=lambda part: -part.bytes)
    total = sum(part.bytes for part in ordered)
    if total <= BYTES_MAX:
        return None
    largest = ", ".join(f"{part.what} {part.bytes}" for part in ordered[:_LARGEST_SHOWN])
    more = f", and {len(ordered) - _LARGEST_SHOWN} smaller ones" if len(ordered) > _LARGEST_SHOWN else ""
    message = (
        f"the registers, counters, meters and tables of a program must take at most {BYTES_MAX} bytes"
        f" (got {total}; the largest: {largest}{more})"
    )
    return message, ordered[0].source
