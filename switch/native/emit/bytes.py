"""Header fields to and from wire bytes: runs of fields that begin and end on byte borders move as one word."""

from collections.abc import Iterator, Sequence

from p4c.model import Field, HeaderType, UnsupportedError
from switch.native.emit.layout import Layout, c_type, is_wide

RUN_BITS_MAX = 64


def runs(fields: Sequence[Field]) -> Iterator[tuple[int, list[Field], int]]:
    """(byte offset, fields, bits) of each run; a run that cannot end on a byte border within 64 bits comes back as
    single fields with bits == 0, to be moved bit by bit."""
    place = 0
    pending: list[Field] = []
    start = 0
    for field in fields:
        if not pending:
            start = place
        pending.append(field)
        place += field.width_bits
        if place % 8 == 0 and start % 8 == 0:
            bits = place - start
            if bits <= RUN_BITS_MAX or len(pending) == 1:
                yield start // 8, pending, bits
            else:
                yield start // 8, pending, 0
            pending = []


def load_word(text: str, size: int) -> str:
    """C text of the big-endian number in `size` (1..8) bytes at `text`."""
    parts, at = [], 0
    for step in (8, 4, 2, 1):
        while size - at >= step:
            piece = f"load{step * 8}({text} + {at})" if step > 1 else f"(u64)({text})[{at}]"
            left = (size - at - step) * 8
            parts.append(f"{piece} << {left}" if left else piece)
            at += step
    return f"({' | '.join(parts)})"


def store_word(text: str, size: int, value: str) -> list[str]:
    """C statements that store `value` in `size` (1..8) bytes at `text`."""
    lines, at = [], 0
    for step in (8, 4, 2, 1):
        while size - at >= step:
            left = (size - at - step) * 8
            piece = f"{value} >> {left}" if left else value
            lines.append(
                f"store{step * 8}({text} + {at}, {piece});" if step > 1 else f"({text})[{at}] = (u8)({piece});"
            )
            at += step
    return lines


def loads(layout: Layout, pointer: str, fields: Sequence[Field], base: str) -> list[str]:
    """Statements that fill the members of `*pointer` from the bytes at `base`."""
    lines: list[str] = []
    for offset, run, bits in runs(fields):
        at = f"({base} + {offset})"
        if len(run) == 1 and is_wide(run[0]):
            lines.append(f"memcpy({pointer}->{layout.member(run[0])}, {at}, {bits // 8});")
        elif len(run) == 1 and bits:
            lines.append(f"{pointer}->{layout.member(run[0])} = ({c_type(bits)}){_load_single(at, bits)};")
        elif bits:
            lines += ["{", f"    u64 w = {load_word(at, bits // 8)};"]
            left = bits
            for field in run:
                left -= field.width_bits
                piece = f"w >> {left}" if left else "w"
                kind = c_type(field.width_bits)
                lines.append(f"    {pointer}->{layout.member(field)} = ({kind})({piece} & 0x{field.mask:x}ull);")
            lines.append("}")
        else:
            place = 0
            for field in run:
                member, width = f"{pointer}->{layout.member(field)}", field.width_bits
                if is_wide(field):
                    lines.append(f"load_bytes({member}, {width // 8}, {at}, {place});")
                else:
                    lines.append(f"{member} = ({c_type(width)})load_bits({at}, {place}, {width});")
                place += width
    return lines


def _load_single(at: str, bits: int) -> str:
    if bits <= 64:
        return load_word(at, bits // 8)
    if bits == 128:
        return f"load128({at})"
    return f"load_bits({at}, 0, {bits})"


def stores(layout: Layout, pointer: str, fields: Sequence[Field], base: str) -> list[str]:
    """The reverse of `loads`."""
    lines: list[str] = []
    for offset, run, bits in runs(fields):
        at = f"({base} + {offset})"
        first = f"{pointer}->{layout.member(run[0])}"
        if len(run) == 1 and is_wide(run[0]):
            lines.append(f"memcpy({at}, {first}, {bits // 8});")
        elif len(run) == 1 and bits > 64:
            lines.append(f"store128({at}, {first});" if bits == 128 else f"store_bits({at}, 0, {bits}, {first});")
        elif bits:
            left, parts = bits, []
            for field in run:
                left -= field.width_bits
                text = f"(u64){pointer}->{layout.member(field)}"
                parts.append(f"{text} << {left}" if left else text)
            lines += [
                "{",
                f"    u64 w = {' | '.join(parts)};",
                *(f"    {line}" for line in store_word(at, bits // 8, "w")),
                "}",
            ]
        else:
            place = 0
            for field in run:
                member, width = f"{pointer}->{layout.member(field)}", field.width_bits
                store, size = ("store_bytes", width // 8) if is_wide(field) else ("store_bits", width)
                lines.append(f"{store}({at}, {place}, {size}, {member});")
                place += width
    return lines


def store_header(layout: Layout, kind: HeaderType, pointer: str, base: str) -> list[str]:
    """Statements that write a whole header at the byte pointer `base` and move it behind the header."""
    varbit = kind.varbit
    if kind.width_bits % 8:
        raise UnsupportedError(f"header type {kind.name} has {kind.width_bits} bits, which are not whole bytes")
    if varbit is None:
        return [*stores(layout, pointer, kind.fields, base), f"{base} += {kind.width_bits // 8};"]
    place = next(i for i, field in enumerate(kind.fields) if field is varbit)
    ahead_bytes = sum(field.width_bits for field in kind.fields[:place]) // 8
    length = f"{pointer}->{layout.varbit_length(varbit)}"
    return [
        *stores(layout, pointer, kind.fields[:place], base),
        f"memcpy({base} + {ahead_bytes}, {pointer}->{layout.member(varbit)}, {length});",
        *stores(layout, pointer, kind.fields[place + 1 :], f"{base} + {ahead_bytes} + {length}"),
        f"{base} += {kind.width_bits // 8} + {length};",
    ]
