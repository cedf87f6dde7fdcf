"""The pacing of one queue pair whose congestion control wants a rate: one packet, and then its time on that rate."""

from __future__ import annotations

from endpoint.mrc.congestion.congestion import Congestion
from endpoint.nic.scheduler import Scheduler


class Pacer:
    """Frames count with all their headers. Nothing is saved up: a QP that was silent sends one packet at once."""

    def __init__(self, congestion: Congestion, scheduler: Scheduler) -> None:
        self._congestion = congestion
        self._scheduler = scheduler
        self._turn_ns = 0

    def end(self, first: int, now_ns: int) -> int:
        """How many frames there may be after this turn, where there are `first`: one more, or, if the next packet must
        wait, no more; the scheduler then comes again in time."""
        if now_ns >= self._turn_ns:
            return first + 1
        self._scheduler.rate_due_ns = min(self._scheduler.rate_due_ns, self._turn_ns)
        return first

    def sent(self, size: int, now_ns: int) -> None:
        """A frame of so many bytes has left, payload that a counted frame leaves out among them."""
        if self._congestion.pacing_bps:
            self._turn_ns = now_ns + size * 8_000_000_000 // self._congestion.pacing_bps
            self._scheduler.rate_due_ns = min(self._scheduler.rate_due_ns, self._turn_ns)
