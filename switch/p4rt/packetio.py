"""Packet-in and packet-out: `@controller_header` fields between a frame on the CPU port and PacketMetadata.

Specification, "Packet I/O" and "ControllerPacketMetadata". The fields stand before the frame in the order and with the
widths of P4Info, from the most significant bit, as simple_switch_grpc does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from switch.engine import FRAME_BYTES_MAX
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.bytestring import decode, encode
from switch.p4rt.errors import choices, invalid
from switch.p4rt.p4info import PacketHeader


def packet_in(header: PacketHeader | None, frame: bytes) -> Any:
    """A PacketIn message from a frame that left by the CPU port; None when it is shorter than its header."""
    if header is None:
        return p4rt.PacketIn(payload=frame)
    size = (header.bits + 7) // 8
    if len(frame) < size:
        return None
    value = int.from_bytes(frame[:size], "big") >> size * 8 - header.bits
    message = p4rt.PacketIn(payload=frame[size:])
    left = header.bits
    for field in header.fields:
        left -= field.bits
        message.metadata.add(metadata_id=field.id, value=encode(value >> left & field.max))
    return message


def packet_out(header: PacketHeader | None, payload: bytes, metadata: Iterable[Any]) -> bytes:
    """The frame that arrives at the CPU port for a PacketOut. Raises P4RuntimeError."""
    given: dict[int, int] = {}
    known = {field.id: field for field in header.fields} if header else {}
    valid = choices(f"{field.id} {field}" for field in known.values())
    for item in metadata:
        field = known.get(item.metadata_id)
        if field is None:
            raise invalid(f"packet_out: no metadata field with id {item.metadata_id}; fields: {valid}")
        if field.id in given:
            raise invalid(f"packet_out: metadata field {field} is given twice")
        given[field.id] = decode(item.value, field.bits, f"packet_out: metadata field {field}")
    size = (header.bits + 7) // 8 if header else 0
    if size + len(payload) > FRAME_BYTES_MAX:
        raise invalid(
            f"packet_out: the frame must have at most {FRAME_BYTES_MAX} bytes with its header "
            f"(got {size + len(payload)})"
        )
    if header is None:
        return payload
    value = 0
    for field in header.fields:
        if field.id not in given:
            raise invalid(f"packet_out: metadata field {field} is missing; fields: {valid}")
        value = value << field.bits | given[field.id]
    return (value << size * 8 - header.bits).to_bytes(size, "big") + payload
