"""The timers of a queue pair and of an endpoint, in the order in which they are looked at."""

from __future__ import annotations

from enum import Enum


class Timer(Enum):
    HOLD = "hold"
    """A peer that lacked a resource may be sent the packet again."""
    RETRANSMISSION = "retransmission"
    """Nothing was acknowledged for the local ACK timeout: everything in flight is taken for lost."""
    PROBE = "probe"
    """Nothing was heard for a smoothed round trip and its variation: ask with reliability probes."""
    RESURRECTION = "resurrection"
    """An ASSUMED_BAD EV is due for its next background probe."""
    REVERSE_EV = "reverse_ev"
    """A QP that only receives tries another EV for its acknowledgements."""
    PORT_STATUS = "port_status"
    """A port status update has not been answered: it is repeated as a new request."""
    PACING = "pacing"
    """A port that held data back is free again."""
