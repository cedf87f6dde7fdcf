"""The receiving side of congestion control: how many bytes each peer's queue pair may send to this host.

A congestion control that wants one returns it from `Congestion.receiver`; MRC's own has none.
"""

from typing import Final

from mypy_extensions import mypyc_attr

from endpoint.nic.config import NEVER

CREDIT_UNIT: Final = 256
"""Bytes: credit travels in this unit, modulo 2^24 (the congestion state of a SACK; UET's ACKs have the same field)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class CreditGranter:
    """One per host. Queue pairs are known by their numbers at this host; sizes are payload bytes."""

    def __init__(self) -> None:
        self.due_ns = NEVER
        """When `grants` is to be asked next; NEVER: not before a packet arrives."""

    def on_packet_arrived(self, now_ns: int, qp: int, size: int, marked: bool) -> None:
        """A data packet arrived whole for the first time; `marked`: with an ECN mark."""

    def on_packet_trimmed(self, now_ns: int, qp: int, size: int, last_hop: bool) -> None:
        """The headers of a packet of up to `size` bytes arrived; `last_hop`: the switch before this host trimmed it."""

    def on_ports_changed(self, now_ns: int, share: float) -> None:
        """Ports went down or came up: `share` of this host's rate is left."""

    def on_closed(self, qp: int) -> None:
        """The queue pair is gone."""

    def grants(self, now_ns: int) -> list[tuple[int, int]]:
        """Queue pairs and the bytes that each may send now beside what was granted before, in multiples of 256.

        Asked when `due_ns` has come, and sets it anew.
        """
        raise NotImplementedError
