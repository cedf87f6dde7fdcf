"""SLEEK, the reference's loss rule: enough packets behind a hole, or an answered probe, and all holes are lost.

Source: the behaviour of `UecSrc::runSleek` in uet-htsim (github.com/ultraethernet/uet-htsim, htsim/sim/uec.cpp); the
tests compare decisions with recorded ones.

The rule counts packets and not time. As soon as packets for one and a half congestion windows, and at least five, have
arrived above the cumulative PSN, a recovery begins: until everything that had been sent by then is acknowledged, each
hole within a window of the cumulative PSN counts as lost, once. An answered probe that met no long queue begins one
too. A copy that is lost as well waits for the next probe or for the retransmission timer.
"""

from typing import ClassVar, Final

from endpoint.mrc import EvPath, LossDetection, PacketWindow, Parameter, Values

QUEUE_SHARE: Final = 0.75
"""Of the base round trip: the queueing delay that the reference aims at where switches trim."""


class SleekRule(LossDetection):
    """PSNs are without wrap, as the flight's."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("windows", float, 1.5, 0.1, 100.0, "congestion windows", "what must have arrived above a hole"),
        Parameter("packets", int, 5, 1, 4096, "packets", "what must have arrived above a hole at least"),
    )

    def __init__(self, base_rtt_ns: int, jitter_ns: int, values: Values) -> None:
        super().__init__(base_rtt_ns, jitter_ns, values)
        self._windows, self._least = float(values["windows"]), int(values["packets"])
        self._probe_ns = base_rtt_ns + int(QUEUE_SHARE * base_rtt_ns) + jitter_ns
        self.window_ns = self._probe_ns  # silence until a probe asks: base round trip and target delay
        self._recovers = self._probed = False
        self._recovered = self._judged = 0
        """The recovery ends when this PSN is the oldest; no PSN below that one is judged again."""
        self._packet = 1
        self._window_max = 0

    def on_probe_answered(self, now_ns: int, path: EvPath, rtt_ns: int, marked: bool) -> None:
        if path.active:  # the background probes of EVs that are out ask for no packet
            self._probed = rtt_ns < self._probe_ns

    def overdue(self, flight: PacketWindow, window_bytes: int) -> list[int]:
        """The holes that are lost now, lowest first."""
        self.log.clear()  # times of sending do not matter
        una, nxt = flight.una, flight.nxt
        self._window_max = max(self._window_max, window_bytes)
        self._packet = max(self._packet, flight.sizes[una & flight.mask], flight.sizes[(nxt - 1) & flight.mask])
        if self._probed:
            self._probed, self._recovers, self._recovered, self._judged = False, True, nxt, una
        if una >= self._recovered:
            self._recovers = False
        if not self._recovers:
            enough = max(min(int(self._windows * window_bytes), self._window_max), self._least * self._packet)
            if flight.acked.bit_count() < enough // self._packet:
                return []
            if not flight.lost:
                self._recovers, self._recovered = True, nxt
        end = min(self._recovered, una + window_bytes // self._packet)
        known, holes = flight.acked | flight.lost, []
        for psn in range(max(una, self._judged), end):
            if not known >> (psn - una) & 1:
                holes.append(psn - una)
                self._judged = psn + 1
        return holes
