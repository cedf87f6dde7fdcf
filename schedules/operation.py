"""The kinds of operation that a schedule is made of."""

from typing import Final

__all__ = ["CALC", "RECV", "SEND", "TURN"]

SEND: Final = 0
"""Send `amount` bytes to `peer`. Complete when the receiver's acknowledgement is in."""
RECV: Final = 1
"""Receive `amount` bytes from `peer`. Complete when the last byte has been placed and checked."""
CALC: Final = 2
"""Occupy one processor of the rank for `amount` nanoseconds."""
WAIT: Final = 3
"""Wait until `amount` nanoseconds after the start of the schedule; takes no processor."""
TURN: Final = 4
"""Let one successor go for each predecessor that completes, in the order of the file (htsim's multishot trigger)."""

NAMES: Final = ("send", "recv", "calc", "wait", "turn")
