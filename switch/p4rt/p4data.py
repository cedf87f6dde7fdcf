"""Digests' types, and their data as P4Data (specification, "Representation of Arbitrary P4 Types")."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from common.records import Frozen
from switch.p4rt import wire
from switch.p4rt.bindings import p4data_pb2
from switch.p4rt.bytestring import encode

Encoder = Callable[[Iterator[int]], bytes]
"""A serialised P4Data of the next values, one for each part of the type that has no parts itself."""

_BITSTRING, _BOOL, _ENUM_VALUE = wire.tags(p4data_pb2.P4Data, "bitstring", "bool", "enum_value")
_TUPLE, _STRUCT = wire.tags(p4data_pb2.P4Data, "tuple", "struct")
_MEMBERS = wire.tag(p4data_pb2.P4StructLike, "members")
TYPES_MAX, DEPTH_MAX = 4096, 32  # of the types in a type: P4Info may name one inside itself


class DigestInfo(Frozen, eq=False):
    """A digest as P4Info describes it."""

    id: int
    name: str
    encoder: Encoder
    values: int  # of a message
    refused: str  # why it cannot be enabled; "" if it can

    def p4data(self, data: bytes, widths: Sequence[int]) -> bytes:
        """A serialised P4Data of what an engine gives, values of these widths one behind the other."""
        left, number = 8 * len(data), int.from_bytes(data, "big")
        values: list[int] = []
        for width in widths:
            left -= width
            values.append(number >> left & (1 << width) - 1)
        return self.encoder(iter(values))


def digest_info(message: Any, types: Any) -> DigestInfo:
    """`types` are P4Info's type_info."""
    leaves: list[Encoder] = []
    seen = 0

    def leaf(encoder: Encoder) -> Encoder:
        leaves.append(encoder)
        return encoder

    def members(tag: bytes, specs: Sequence[Any], depth: int) -> Encoder:
        parts = [encoder_of(spec, depth + 1) for spec in specs]
        return lambda values: wire.block(tag, b"".join([wire.block(_MEMBERS, part(values)) for part in parts]))

    def encoder_of(spec: Any, depth: int) -> Encoder:
        nonlocal seen
        seen += 1
        if seen > TYPES_MAX or depth > DEPTH_MAX:
            raise ValueError(f"its type must have at most {TYPES_MAX} parts, {DEPTH_MAX} in each other")
        kind = spec.WhichOneof("type_spec")
        if kind == "new_type" and spec.new_type.name in types.new_types:
            new = types.new_types[spec.new_type.name]
            if new.HasField("original_type"):
                return encoder_of(new.original_type, depth + 1)
            if new.translated_type.sdn_bitwidth:
                return leaf(_bitstring)
        if kind == "struct" and spec.struct.name in types.structs:
            return members(_STRUCT, [m.type_spec for m in types.structs[spec.struct.name].members], depth)
        if kind == "tuple":
            return members(_TUPLE, spec.tuple.members, depth)
        if kind == "serializable_enum":
            return leaf(lambda values: wire.block(_ENUM_VALUE, encode(next(values))))
        if kind == "bool":
            return leaf(lambda values: _BOOL + bytes([next(values) != 0]))
        if spec.bitstring.HasField("bit"):
            return leaf(_bitstring)
        if (width := spec.bitstring.int.bitwidth) > 0:
            return leaf(lambda values: wire.block(_BITSTRING, _signed(next(values), width)))
        raise ValueError(f"a digest of type {kind or 'unset'} is not supported")

    encoder: Encoder = _bitstring
    refused = ""
    try:
        encoder = encoder_of(message.type_spec, 0)
    except ValueError as error:
        refused = str(error)
    return DigestInfo(message.preamble.id, message.preamble.name, encoder, len(leaves), refused)


def _bitstring(values: Iterator[int]) -> bytes:
    return wire.block(_BITSTRING, encode(next(values)))


def _signed(value: int, width: int) -> bytes:
    """The shortest two's complement of an int<width>."""
    value -= value >> width - 1 << width
    return value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)
