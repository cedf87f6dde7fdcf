"""Packets that switches send back to their sender because the link behind them is down.

One vendor's switches do so for MRC; the specification does not. The path is left with the first packet that comes back,
and the packet goes by another plane at once. No peer has spoken, so timeouts run on. No queue was full, so the
congestion control loses the bytes and nothing else.
"""

from endpoint.mrc.flight import Flight, Repair
from endpoint.mrc.paths.ev_set import EvSet
from endpoint.mrc.paths.selection import Selection
from endpoint.mrc.retry import RetryTimer
from endpoint.mrc.seams.hearers import Hearers
from endpoint.nic.scheduler import Agenda
from endpoint.nic.wire import expand


class ReturnedPackets:
    """One requester's reaction to them; all that it is made of is the requester's own."""

    def __init__(
        self,
        flight: Flight,
        repair: Repair,
        evs: EvSet,
        selection: Selection,
        hearers: Hearers,
        retry: RetryTimer,
        agenda: Agenda,
        base_rtt_ns: int,
    ) -> None:
        self._flight = flight
        self._repair = repair
        self._evs = evs
        self._selection = selection
        self._hearers = hearers
        self._retry = retry
        self._agenda = agenda
        self._base_rtt_ns = base_rtt_ns
        self.count = 0

    def receive(self, now_ns: int, psn24: int, entropy: int) -> None:
        """Leave the path of a packet that was sent back, and send the packet again.

        Nothing follows where its copy on that EV is not under way: it was trimmed, lost or returned before.
        """
        flight = self._flight
        index = expand(psn24, flight.una) - flight.una
        if not 0 <= index < flight.nxt - flight.una or (returned := flight.returned(index, entropy)) is None:
            return
        path, size, sent_ns = returned
        self.count += 1
        self._repair.lost(flight.una + index, sent_ns, now_ns)
        for hearer in self._hearers.withdrawn:
            hearer.on_packet_withdrawn(now_ns, path, size)
        if path.plane.wanted and self._selection.heeds:
            self._evs.leave(path, now_ns)
            if path.active:  # the last of all: what is sent at once comes back at once, again and again
                self._retry.hold_ns = now_ns + self._base_rtt_ns
                self._agenda.arm(self._retry.hold_ns)
        self._agenda.wake()
