"""The algorithms of a queue pair that hear each signal. MRC's own override none, so they cost nothing here."""

from __future__ import annotations

from collections.abc import Sequence

from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.flight import Flight
from endpoint.mrc.paths.ev_set import EvPath
from endpoint.mrc.paths.signals import Signals
from endpoint.nic.scheduler import Scheduler


class Hearers:
    """The algorithms of one queue pair, each once per signal that it overrides."""

    def __init__(self, algorithms: Sequence[Signals]) -> None:
        def hearing(name: str) -> list[Signals]:
            return [one for one in algorithms if one.hears(name)]

        self.sent = hearing("on_packet_sent")
        self._acked = hearing("on_packet_acked")
        self._trimmed = hearing("on_packet_trimmed")
        self._lost = hearing("on_packet_lost")
        self._withdrawn = hearing("on_packet_withdrawn")
        self._timeout = hearing("on_retransmission_timeout")
        self._ports = hearing("on_ports_changed")
        self._answered = hearing("on_probe_answered")

    def tell_sent(self, now_ns: int, path: EvPath, size: int) -> None:
        """A packet leaves."""
        for one in self.sent:
            one.on_packet_sent(now_ns, path, size)

    def tell_acked(
        self,
        flight: Flight,
        first: int,
        fresh: int,
        counted: int,
        cause: int,
        rtt_ns: int | None,
        marked: bool,
        now_ns: int,
        settled: EvPath | None = None,
    ) -> None:
        """Packets `first` + i of the bits in `fresh` have arrived, and those in `counted` were under way until now;
        `cause` is the one that caused the SACK, and is told of even if it had arrived before, when it brings a mark.
        `settled` is the marked path of a SACK whose cause lies before `first`: a later SACK has overtaken it."""
        if not self._acked:
            return
        causing = 1 << cause if cause >= 0 else 0
        rest = fresh | causing if marked else fresh
        while rest:
            low = rest & -rest
            rest ^= low
            slot = (first + low.bit_length() - 1) & flight.mask
            path = flight.paths[slot]
            if path is None:
                continue
            own = bool(low & causing)
            size = flight.sizes[slot] if low & counted else 0
            sample_ns = rtt_ns if own and rtt_ns is not None else -1
            for one in self._acked:
                one.on_packet_acked(now_ns, path, size, sample_ns, own and marked)
        if settled is not None:
            for one in self._acked:
                one.on_packet_acked(now_ns, settled, 0, -1, True)

    def tell_trimmed(self, now_ns: int, path: EvPath, size: int, last_hop: bool) -> None:
        """A packet was trimmed."""
        for one in self._trimmed:
            one.on_packet_trimmed(now_ns, path, size, last_hop)

    def tell_lost(self, now_ns: int, path: EvPath, size: int, proved: bool) -> None:
        """A packet counts as lost."""
        for one in self._lost:
            one.on_packet_lost(now_ns, path, size, proved)

    def tell_withdrawn(self, now_ns: int, path: EvPath, size: int) -> None:
        """A transmission is under way no more, by no merit or fault of its path."""
        for one in self._withdrawn:
            one.on_packet_withdrawn(now_ns, path, size)

    def tell_timeout(self, now_ns: int) -> None:
        """The retransmission timer fired."""
        for one in self._timeout:
            one.on_retransmission_timeout(now_ns)

    def tell_ports(self, now_ns: int, ports: int) -> None:
        """Ports went down or came up, here or at the peer."""
        for one in self._ports:
            one.on_ports_changed(now_ns, ports)

    def tell_answered(self, now_ns: int, path: EvPath, rtt_ns: int, marked: bool) -> None:
        """A probe came back."""
        for one in self._answered:
            one.on_probe_answered(now_ns, path, rtt_ns, marked)


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
