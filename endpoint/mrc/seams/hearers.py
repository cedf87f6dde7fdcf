"""The algorithms of a queue pair that hear each signal. MRC's own override none, so they cost nothing here."""

from collections.abc import Sequence

from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.flight import Flight
from endpoint.mrc.paths.ev_set import EvPath
from endpoint.mrc.paths.signals import Signals
from endpoint.nic.config import NEVER
from endpoint.nic.scheduler import Agenda, Scheduler


class Timers:
    """The timers of a queue pair's algorithms that have an `on_timer`."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._algorithms: list[Signals] = []

    def join(self, algorithm: Signals) -> None:
        """From now on this algorithm's timer runs, if it hears of it."""
        listener = algorithm.listener()
        if listener.hears("on_timer"):
            listener.attach(self._agenda)
            self._algorithms.append(listener)

    def handle_timer(self, now_ns: int) -> int:
        """Call those whose time has come; returns when the next one's comes."""
        next_ns = NEVER
        for algorithm in self._algorithms:
            if algorithm.due_ns <= now_ns:
                algorithm.due_ns = NEVER
                algorithm.on_timer(now_ns)
                self._agenda.wake()
            next_ns = min(next_ns, max(algorithm.due_ns, now_ns + 1))
        return next_ns


class Hearers:
    """The algorithms of one queue pair, each once per signal that it overrides: a list for each signal."""

    def __init__(self, algorithms: Sequence[Signals]) -> None:
        def hearing(name: str) -> list[Signals]:
            return [algorithm for algorithm in algorithms if algorithm.hears(name)]

        self.sent = hearing("on_packet_sent")
        self.acked = hearing("on_packet_acked")
        self.trimmed = hearing("on_packet_trimmed")
        self.lost = hearing("on_packet_lost")
        self.withdrawn = hearing("on_packet_withdrawn")
        self.timeout = hearing("on_retransmission_timeout")
        self.ports = hearing("on_ports_changed")
        self.answered = hearing("on_probe_answered")

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
        if not self.acked:
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
            for hearer in self.acked:
                hearer.on_packet_acked(now_ns, path, size, rtt_ns if own else None, own and marked)
        if settled is not None:
            for hearer in self.acked:
                hearer.on_packet_acked(now_ns, settled, 0, None, True)


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
