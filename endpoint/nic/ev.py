"""How an entropy value (EV) is striped over a packet: the one place that knows.

By default the low half of the 32 bits travels in the UDP source port, and the high half in the low 16 of the 20-bit
flow label. MRC-Client's dialect carries 20 bits only, all of them in the label and the low 16 in the port as well.
(docs/reference/dialects.md)
"""

from __future__ import annotations

from endpoint.nic.dialect import DEFAULT, EV_BITS, Dialect

LABEL_MASK = (1 << 20) - 1


def stripe(ev: int, dialect: Dialect = DEFAULT) -> tuple[int, int]:
    """UDP source port and flow label of an EV."""
    return ev & 0xFFFF, ev >> 16 if dialect.ev_bits == EV_BITS else ev & LABEL_MASK


def unstripe(source_port: int, flow_label: int, dialect: Dialect = DEFAULT) -> int:
    """The EV of a packet; `flow_label` may have other bits above its 20."""
    if dialect.ev_bits == EV_BITS:
        return (flow_label & 0xFFFF) << 16 | source_port
    return flow_label & LABEL_MASK
