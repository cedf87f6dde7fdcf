"""Match keys: checked against the table, cut to canonical form, and shown."""

from __future__ import annotations

from switch.engine import EngineError
from switch.entries import Entry, Exact, Lpm, Match, Optional, Range, Ternary
from switch.model.pipelines import Key, Table

# What may be given for a match field of each kind of the JSON; `optional` of P4 is ternary there.
_ACCEPTED: dict[str, tuple[type, ...]] = {
    "exact": (Exact,),
    "lpm": (Lpm,),
    "ternary": (Ternary, Optional, Exact, Lpm),
    "range": (Range,),
}

# A canonical match: (value, mask) for exact, lpm and ternary fields, (low, high) for range fields.
Pair = tuple[int, int]


def prefix_mask(length: int, width_bits: int) -> int:
    return (1 << width_bits) - (1 << (width_bits - length))


def canonical(table: Table, entry: Entry) -> tuple[Pair, ...]:
    """A pair for each match field, values masked. Raises EngineError, naming the field and the rule."""
    if len(entry.matches) != len(table.keys):
        raise EngineError(f"table {table.name}: {len(table.keys)} match fields expected, not {len(entry.matches)}")
    return tuple(_canonical(table, key, match) for key, match in zip(table.keys, entry.matches, strict=True))


def _canonical(table: Table, key: Key, match: Match) -> Pair:
    where, width = f"table {table.name}, field {key.name}", key.width_bits
    full = (1 << width) - 1
    if not isinstance(match, _ACCEPTED[key.match]):
        raise EngineError(f"{where}: the match is {key.match}, not {type(match).__name__}")

    def checked(value: int, what: str) -> int:
        if not 0 <= value <= full:
            raise EngineError(f"{where}: the {what} {value:#x} does not fit {width} bits")
        return value

    match match:
        case Exact(value):
            return checked(value, "value"), full
        case Lpm(value, length):
            if not 0 <= length <= width:
                raise EngineError(f"{where}: a prefix length is 0 to {width}, not {length}")
            mask = prefix_mask(length, width)
            return checked(value, "value") & mask, mask
        case Ternary(value, mask):
            return checked(value, "value") & checked(mask, "mask"), mask
        case Optional(None):
            return 0, 0
        case Optional(value):
            assert value is not None
            return checked(value, "value"), full
        case Range(low, high):
            if checked(low, "low end") > checked(high, "high end"):
                raise EngineError(f"{where}: the range {low:#x}..{high:#x} is empty")
            return low, high
    raise AssertionError(match)


def show_pair(key: Key, pair: Pair) -> str:
    digits = (key.width_bits + 3) // 4
    full = (1 << key.width_bits) - 1
    first, second = pair
    if key.match == "range":
        return f"0x{first:0{digits}x}..0x{second:0{digits}x}"
    if second == full:
        return f"0x{first:0{digits}x}"
    if second == 0:
        return "any"
    if key.match == "lpm":
        return f"0x{first:0{digits}x}/{second.bit_count()}"
    return f"0x{first:0{digits}x} &&& 0x{second:0{digits}x}"
