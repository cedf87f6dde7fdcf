"""How many background probes of abandoned EVs a host may send: a share of all that it sends, by all of its queue pairs.

Without a limit, a thousand senders that gave paths up in an incast fill half of the receiver's link with probes, while
each sends hardly any data. A share of what a host sends gives way in an incast as its data does.

Queue pairs that wanted more probes than they got wait in a queue. Each one keeps a probe back for every other ahead of
it, so that none uses up the probes of another. A full budget has a probe for any that asks.
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
        self.waiting: dict[int, None] = {}
        """The queue pairs that wait for a probe, by number, in the order of their turns."""

    def allowed(self, qpn: int, now_ns: int) -> int:
        """Probes that this queue pair may send now."""
        sent_bytes = 0
        for port in self._ports.list:
            sent_bytes += port.tx_bytes
        earned = (sent_bytes - self._sent_bytes) * self._share + (now_ns - self._counted_ns) / self._interval_ns
        self._sent_bytes, self._counted_ns = sent_bytes, now_ns
        self._saved = min(self._saved + earned, float(SAVED_MAX))
        return max(0, int(self._saved) - self._ahead_of(qpn))

    def spend(self, qpn: int, count: int, *, more: bool) -> None:
        """This queue pair has sent so many probes; with `more` it would have sent more, and waits for its turn."""
        self._saved -= count
        if count or not more:
            self.leave(qpn)
        if more:
            self.waiting.setdefault(qpn)

    def leave(self, qpn: int) -> None:
        """This queue pair has nothing to probe any more."""
        self.waiting.pop(qpn, None)

    def next_ns(self, qpn: int, now_ns: int) -> int:
        """When to ask again: after an interval at most, because a host that sends earns more than one in it."""
        missing = 1 - self._saved + (self._ahead_of(qpn) if qpn in self.waiting else 0)
        return now_ns if missing <= 0 else now_ns + int(min(missing, 1.0) * self._interval_ns) + 1

    def _ahead_of(self, qpn: int) -> int:
        """How many probes to keep back for queue pairs whose turn is before this one's."""
        ahead = 0
        for other in self.waiting:
            if other == qpn or ahead == SAVED_MAX - 1:
                break
            ahead += 1
        return ahead
