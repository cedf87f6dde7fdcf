"""The NIC's part of adaptive routing: it balances planes, and leaves the ways inside a plane to the switches."""

from random import Random
from typing import Any

from endpoint.mrc import Congestion, EvPath, EvSet, PathTraits, Selection, Values, algorithms_of


class PlaneBalance(Selection):
    """The next packet goes to the plane with the fewest bytes under way. Switches that go by their queues don't look
    at a packet's EV, so no signal takes an EV out. A port that is down takes its plane out."""

    heeds_signals = False

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        self._evs = evs
        self._rng = rng
        self._under_way: dict[int, int] = {}

    def next(self, usable: int) -> EvPath | None:
        planes = [plane for plane in self._evs.live if plane.bit & usable]
        if not planes:
            return None
        fewest = min(self._under_way.get(plane.number, 0) for plane in planes)
        alike = [plane for plane in planes if self._under_way.get(plane.number, 0) == fewest]
        plane = alike[self._rng.randrange(len(alike))]
        return plane.active[self._rng.randrange(len(plane.active))]

    def _left(self, path: EvPath, size: int) -> None:
        number = path.plane.number
        self._under_way[number] = self._under_way.get(number, 0) - size

    def on_packet_sent(self, now_ns: int, path: EvPath, size: int) -> None:
        self._left(path, -size)

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        self._left(path, size)

    def on_packet_trimmed(self, now_ns: int, path: EvPath, size: int, last_hop: bool) -> None:
        self._left(path, size)

    def on_packet_lost(self, now_ns: int, path: EvPath, size: int, proved: bool) -> None:
        self._left(path, size)

    def on_packet_withdrawn(self, now_ns: int, path: EvPath, size: int) -> None:
        self._left(path, size)


class PlaneContext:
    """The window of one plane: NSCC for that plane's rate, and what is under way there."""

    def __init__(self, path: PathTraits, values: Values) -> None:
        self.control: Congestion = algorithms_of("congestion")["nscc"].make(path, values, {})
        self.under_way = 0
        self.timed_out = 0

    def is_open(self, mtu_bytes: int) -> bool:
        """Whether one packet more may go; one always may."""
        return not self.under_way or self.under_way + mtu_bytes <= self.control.window_bytes


class PlaneContexts(Congestion):
    """A congestion context per plane: a plane whose window is full closes its port, and the others go on. Each is NSCC
    with the parameters that follow from the plane."""

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self._path, self._values = path, values
        self._contexts: dict[int, PlaneContext] = {}
        whole: Congestion = algorithms_of("congestion")["nscc"].make(path, values, {})
        self.window_bytes = whole.window_bytes  # as much as all planes' largest windows together

    def _of(self, path: EvPath) -> PlaneContext:
        context = self._contexts.get(path.plane.number)
        if context is None:
            traits = self._path
            own = PathTraits(
                traits.base_rtt_ns,
                traits.network_rtt_ns,
                path.port.rate_bps or traits.rate_bps,
                traits.mtu_bytes,
                traits.jitter_ns,
                traits.trimming,
                traits.losses_shrink,
                traits.sharers,
            )
            context = self._contexts[path.plane.number] = PlaneContext(own, self._values)
        return context

    def _settle(self, path: EvPath, context: PlaneContext) -> None:
        bit = path.plane.bit
        self.ports_open = self.ports_open | bit if context.is_open(self._path.mtu_bytes) else self.ports_open & ~bit

    def _left(self, path: EvPath, size: int) -> PlaneContext:
        context = self._of(path)
        context.under_way -= size
        return context

    def on_packet_sent(self, now_ns: int, path: EvPath, size: int) -> None:
        self._settle(path, self._left(path, -size))

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        context = self._left(path, size)
        context.control.on_ack(now_ns, size, rtt_ns, marked, context.under_way)
        self._settle(path, context)

    def on_packet_trimmed(self, now_ns: int, path: EvPath, size: int, last_hop: bool) -> None:
        context = self._left(path, size)
        context.control.on_trim(now_ns, size, context.under_way)
        self._settle(path, context)

    def on_packet_lost(self, now_ns: int, path: EvPath, size: int, proved: bool) -> None:
        context = self._left(path, size)
        if proved:
            context.control.on_loss(now_ns, size, context.under_way)
        else:
            context.timed_out += size
        self._settle(path, context)

    def on_packet_withdrawn(self, now_ns: int, path: EvPath, size: int) -> None:
        self._settle(path, self._left(path, size))

    def on_retransmission_timeout(self, now_ns: int) -> None:
        for context in self._contexts.values():
            if context.timed_out:
                context.control.on_timeout(now_ns, context.timed_out)
                context.timed_out = 0

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        for context in self._contexts.values():
            context.control.host_was_late(late_ns, now_ns)

    def on_penalty(self, penalty: int) -> None:
        for context in self._contexts.values():
            context.control.on_penalty(penalty)
