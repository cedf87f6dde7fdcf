"""How an entropy value (EV) is striped over a packet: the one place that knows.

The low 16 bits travel in the UDP source port, the high 16 in the low 16 of the 20-bit inner flow label, which is
copied to the outer header. (Sources disagree on which half goes where; docs/contracts.md decides for this project.)
"""

from __future__ import annotations


def stripe(ev: int) -> tuple[int, int]:
    """UDP source port and flow label of an EV."""
    return ev & 0xFFFF, ev >> 16


def unstripe(source_port: int, flow_label: int) -> int:
    """The EV of a packet. Bits of the flow label above the low 16 are not the EV's."""
    return (flow_label & 0xFFFF) << 16 | source_port
