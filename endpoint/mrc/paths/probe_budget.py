"""How many background probes of abandoned EVs a host may send: a share of all that it sends, by all of its queue pairs.

Without a limit, a thousand senders that gave paths up in an incast fill half of the receiver's link with probes, while
each sends hardly any data. A share of what a host sends gives way in an incast as its data does.
"""

from __future__ import annotations

from typing import Final

from endpoint.nic.port import PortSet

PROBE_BYTES: Final = 150
"""A probe as a frame, with what surrounds it."""
SAVED_MAX: Final = 64
"""Probes that a host may send at once when it has sent none for long."""


class ProbeBudget:
    """One host's. Beside `share` of its bytes, one probe per `interval_ns`, so that a silent host probes too."""

    def __init__(self, ports: PortSet, share: float, interval_ns: int) -> None:
        self._ports = ports
        self._share = share / PROBE_BYTES
        self._interval_ns = interval_ns
        self._saved = float(SAVED_MAX)
        self._sent_bytes = 0
        self._counted_ns = 0

    def allowed(self, now_ns: int) -> int:
        """Probes that may be sent now."""
        sent_bytes = 0
        for port in self._ports.list:
            sent_bytes += port.tx_bytes
        earned = (sent_bytes - self._sent_bytes) * self._share + (now_ns - self._counted_ns) / self._interval_ns
        self._sent_bytes, self._counted_ns = sent_bytes, now_ns
        self._saved = min(self._saved + earned, float(SAVED_MAX))
        return int(self._saved)

    def spend(self, count: int) -> None:
        """So many probes were sent."""
        self._saved -= count

    def next_ns(self, now_ns: int) -> int:
        """When a host that sends nothing else may probe again."""
        return now_ns if self._saved >= 1 else now_ns + int((1 - self._saved) * self._interval_ns) + 1
