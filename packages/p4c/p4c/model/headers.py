"""Header types and instances, stacks and unions (JSON_format.md: header_types, headers, header_stacks, …).

Definitions compare by identity: a program has one object for each. Indices are positions in the program's tuples,
dense from 0, independent of the ids in the JSON.
"""

from collections.abc import Sequence

from common.records import Frozen
from p4c.model.kind import Expression, Kind


class Field(Frozen, eq=False):
    """One field of a header type. A varbit field has width 0 here: its width belongs to each packet."""

    name: str
    index: int
    width_bits: int
    offset_bits: int  # from the start of the header; meaningless after a varbit field
    signed: bool = False
    saturating: bool = False
    varbit: bool = False

    @property
    def mask(self) -> int:
        return (1 << self.width_bits) - 1


def add_field(
    fields: list[Field], name: str, bits: int | None, signed: bool = False, saturating: bool = False
) -> Field:
    """Append a field of so many bits, None for a varbit field."""
    offset = fields[-1].offset_bits + fields[-1].width_bits if fields else 0
    fields.append(Field(name, len(fields), bits or 0, offset, signed, saturating, bits is None))
    return fields[-1]


class HeaderType(Frozen, eq=False):
    """`fields` is a list while a compiler still adds fields."""

    name: str
    fields: Sequence[Field]
    max_bytes: int = 0  # of a header with a varbit field; 0: not given

    @property
    def width_bits(self) -> int:
        """The width without any varbit field."""
        return sum(f.width_bits for f in self.fields)

    @property
    def varbit(self) -> Field | None:
        return next((f for f in self.fields if f.varbit), None)

    def field(self, name: str) -> Field | None:
        return next((f for f in self.fields if f.name == name), None)


class Header(Expression, eq=False):
    """A header instance, or a metadata struct (always valid, never parsed or deparsed)."""

    kind = Kind.HEADER
    notation = "{0.name}"
    name: str
    index: int
    type: HeaderType
    metadata: bool = False


class Stack(Expression, eq=False):
    """A header stack of P4: headers of one type, by index."""

    kind = Kind.STACK
    notation = "{0.name}"
    name: str
    index: int
    type: HeaderType
    headers: tuple[Header, ...]


class Union(Expression, eq=False):
    """At most one of the headers is valid: making one valid makes the others invalid."""

    kind = Kind.UNION
    notation = "{0.name}"
    name: str
    index: int
    type_name: str
    members: tuple[str, ...]  # member names, as in the union type
    headers: tuple[Header, ...]


class UnionStack(Expression, eq=False):
    """A stack of header unions of one type, by index."""

    kind = Kind.UNION_STACK
    notation = "{0.name}"
    name: str
    index: int
    unions: tuple[Union, ...]
