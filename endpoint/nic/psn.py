"""Packet sequence numbers: 24 bits on the wire, counted without end inside, so that nothing here ever wraps."""

from __future__ import annotations

from typing import Final

from endpoint.nic.wire import PSN_BITS

PSN_MASK: Final = (1 << PSN_BITS) - 1
PSN_HALF: Final = 1 << (PSN_BITS - 1)


def expand(wire: int, near: int, bits: int = PSN_BITS) -> int:
    """The unwrapped number whose low `bits` are `wire` and that lies nearest to `near` (may be negative)."""
    span = 1 << bits
    distance = (wire - near) & (span - 1)
    return near + distance - (span if distance >= span >> 1 else 0)
