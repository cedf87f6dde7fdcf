"""How an entropy value (EV) is striped over a packet: the one place that knows.

Half of the 32 bits travels in the UDP source port, the other half in the low 16 of the 20-bit flow label. Which half
goes where depends on the dialect: by default the low one travels in the source port. One dialect carries 20 bits only,
all of them in the label and the low 16 in the port as well. (docs/reference/dialects.md)
"""

from __future__ import annotations

from endpoint.nic.dialect import DEFAULT, Dialect

LABEL_BITS = 20
LABEL_MASK = (1 << LABEL_BITS) - 1


def stripe(ev: int, dialect: Dialect = DEFAULT) -> tuple[int, int]:
    """UDP source port and flow label of an EV."""
    low, high = ev & 0xFFFF, ev >> 16
    if dialect.ev_bits == LABEL_BITS:
        return low, ev & LABEL_MASK
    return (low, high) if dialect.low_in_port else (high, low)


def unstripe(source_port: int, flow_label: int, dialect: Dialect = DEFAULT) -> int:
    """The EV of a packet. Bits of the flow label above the low 16 are not the EV's, but in the dialect with 20 bits."""
    if dialect.ev_bits == LABEL_BITS:
        return flow_label & LABEL_MASK
    label = flow_label & 0xFFFF
    return label << 16 | source_port if dialect.low_in_port else source_port << 16 | label
