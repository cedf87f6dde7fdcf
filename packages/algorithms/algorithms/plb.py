"""PLB, protective load balancing: a flow keeps its path until it has met congestion for some round trips in a row.

Source: M. Qureshi and others, "PLB: Congestion Signals are Simple and Effective for Network Load Balancing", SIGCOMM
2022, and the behaviour of net/ipv4/tcp_plb.c in Linux; a test compares decisions with recorded ones.
"""

from random import Random
from typing import ClassVar

from endpoint.mrc import EvPath, EvSet, Parameter, PlaneEvs, Selection, Values


class PlbFlow:
    """The packets of a queue pair in one plane, which share a path, and whether the path is to be left."""

    def __init__(self, rng: Random, values: Values) -> None:
        self._rng = rng
        self._threshold = float(values["threshold"])
        self._rounds, self._idle_rounds = int(values["rounds"]), int(values["idle_rounds"])
        self._suspend_ns = int(values["suspend_ns"])
        self.path: EvPath | None = None
        self.sent = self.settled = self.arrived = self.marked = 0
        """Bytes: sent and no longer under way since the beginning; arrived and of these marked in this round."""
        self._round_end = 0
        self._congested = 0
        self._paused_until_ns = 0

    def settle(self, now_ns: int, size: int, arrived: bool, marked: bool) -> None:
        """A packet is no longer under way. When all that was sent before this round has gone, the next one begins."""
        self.settled += size
        if arrived:
            self.arrived += size
            self.marked += size if marked else 0
        if self.settled < self._round_end:
            return
        idle = self.settled >= self.sent
        if not self.arrived:
            self.time_out(now_ns)
        elif self.leaves(now_ns, self.marked / self.arrived, idle):
            self.path = None
        self.arrived = self.marked = 0
        self._round_end = self.sent

    def leaves(self, now_ns: int, share: float, idle: bool) -> bool:
        """Whether the flow takes another path after a round with such a share of marked packets."""
        self._congested = self._congested + 1 if share >= self._threshold else 0
        enough = self._congested >= self._rounds or (idle and 0 < self._idle_rounds <= self._congested)
        if not enough or now_ns < self._paused_until_ns:
            return False
        self._congested = 0
        return True

    def time_out(self, now_ns: int) -> None:
        """Another path at once, and no other for a while: the path that is left may be dead."""
        self.path = None
        self._congested = 0
        self._paused_until_ns = now_ns + self._suspend_ns + self._rng.randrange(max(self._suspend_ns, 1))


class PlbSelection(Selection):
    """A flow per plane, since PLB is for transports of one path. Planes take turns as their ports can send.

    A trimmed packet counts as marked. A round of which nothing arrives is a flow's timeout: MRC proves its losses by
    the other planes, so that its own timeout never comes.
    """

    heeds_signals: ClassVar[bool] = False
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("threshold", float, 0.5, 0.0, 1.0, "", "share of marked packets that makes a round congested (K)"),
        Parameter(
            "rounds", int, 12, 1, 1000, "round trips", "congested ones in a row after which the path is left (N)"
        ),
        Parameter("idle_rounds", int, 3, 0, 1000, "round trips", "the same with nothing under way (M); 0: never"),
        Parameter("suspend_ns", int, 100_000_000, 0, 10**12, "ns", "no congestion counts so long after a timeout"),
    )

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self._rng = rng
        self._flows = {plane.number: PlbFlow(rng, values) for plane in evs.planes}
        self._turn = 0

    def next(self, usable: int) -> EvPath | None:
        live = self.evs.live
        for turn in range(self._turn, self._turn + len(live)):
            plane = live[turn % len(live)]
            if plane.bit & usable:
                self._turn = turn + 1
                return self._path_of(plane)
        return None

    def _path_of(self, plane: PlaneEvs) -> EvPath:
        flow = self._flows[plane.number]
        if flow.path is None or not flow.path.active:
            flow.path = self._rng.choice(plane.active)
        return flow.path

    def on_packet_sent(self, now_ns: int, path: EvPath, size: int) -> None:
        self._flows[path.plane.number].sent += size

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        if size:
            self._flows[path.plane.number].settle(now_ns, size, True, marked)

    def on_packet_trimmed(self, now_ns: int, path: EvPath, size: int, last_hop: bool) -> None:
        self._flows[path.plane.number].settle(now_ns, size, True, True)

    def on_packet_lost(self, now_ns: int, path: EvPath, size: int, proved: bool) -> None:
        self._flows[path.plane.number].settle(now_ns, size, False, False)

    def on_packet_withdrawn(self, now_ns: int, path: EvPath, size: int) -> None:
        self._flows[path.plane.number].settle(now_ns, size, False, False)

    def on_retransmission_timeout(self, now_ns: int) -> None:
        for flow in self._flows.values():
            flow.time_out(now_ns)
