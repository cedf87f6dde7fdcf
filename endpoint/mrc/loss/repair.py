"""A repair: from the first packet that is taken for lost until every packet up to the last of them has arrived."""

from __future__ import annotations


class Repair:
    """One requester's, at most one at a time. Times are ns; `packets` is 0 while nothing is being repaired."""

    def __init__(self) -> None:
        self._last_psn = -1
        self.packets = 0
        """Packets taken for lost in this repair, and how many of them had only been slow."""
        self.late = 0
        self.sent_ns = 0
        """When the first of them had been sent, and when it was taken for lost."""
        self.noticed_ns = 0

    def lost(self, psn: int, sent_ns: int, now_ns: int) -> None:
        """A packet is taken for lost."""
        if not self.packets:
            self.late, self.sent_ns, self.noticed_ns = 0, sent_ns, now_ns
        self.packets += 1
        self._last_psn = max(self._last_psn, psn)

    def ended(self, una: int) -> bool:
        """Whether all that was lost has arrived, now that everything before `una` has."""
        return bool(self.packets) and una > self._last_psn
