"""The input of hashes and checksums (BufBuilder of bm_sim): fields end to end, bit by bit, padded at the end."""

from collections.abc import Callable

from p4c.model import Field, Header
from p4c.model.externs import Calculation, ConstInput, FieldInput, HeaderInput, PayloadInput
from switch.reference.hashes import ALGORITHMS
from switch.reference.packet import FieldSlots, Packet

Hasher = Callable[[Packet], int]


def hasher(calculation: Calculation, layout: FieldSlots) -> Hasher:
    """The calculation's result for a packet."""
    algorithm, gather = ALGORITHMS[calculation.algorithm], gatherer(calculation, layout)
    return lambda packet: algorithm(gather(packet))


def gatherer(calculation: Calculation, layout: FieldSlots) -> Callable[[Packet], bytes]:
    """The bytes that the calculation is over. Fields and headers that are not valid are left out."""

    def gather(packet: Packet) -> bytes:
        bits, value, payload = 0, 0, b""
        for item in calculation.inputs:
            match item:
                case FieldInput(field):
                    if packet.valid[field.header.index]:
                        width = field_bits(packet, field.header, field.field)
                        stored = packet.values[layout.slot(field.header, field.field)]
                        value, bits = value << width | stored & ((1 << width) - 1), bits + width
                case ConstInput(constant, width):
                    value, bits = value << width | constant, bits + width
                case HeaderInput(header):
                    if packet.valid[header.index]:
                        raw = header_bytes(packet, header)
                        value, bits = value << 8 * len(raw) | int.from_bytes(raw, "big"), bits + 8 * len(raw)
                case PayloadInput():
                    payload = packet.payload[: packet.truncate]
        padding = -bits % 8
        return (value << padding).to_bytes((bits + padding) // 8, "big") + payload

    return gather


def field_bits(packet: Packet, header: Header, field: Field) -> int:
    return packet.varbits.get(header.index, 0) if field.varbit else field.width_bits


def header_bytes(packet: Packet, header: Header) -> bytes:
    """The header as it is on the wire."""
    value, bits = 0, 0
    slot = packet.layout.bases[header.index]
    for field in header.type.fields:
        width = field_bits(packet, header, field)
        value = value << width | packet.values[slot + field.index] & ((1 << width) - 1)
        bits += width
    return value.to_bytes(bits // 8, "big")
