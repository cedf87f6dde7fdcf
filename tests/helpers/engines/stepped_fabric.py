"""`SteppedFabric`: the fabric, one instant after the other, over any engines. Slow, and right by being plain."""

import heapq
from collections.abc import Iterable, Sequence

from switch.engine import FRAME_BYTES_MAX, Engine, EngineError
from switch.fabric import End, HostFrame, NicPort
from switch.packet_log import NO_PORT, Fate, NodeKind, PacketRecord, Recorder
from switch.reference.rng import SplitMix64

PORTS = 512
NEVER = (1 << 64) - 1
CLOSED = "the fabric is closed"


def arrival_order(t_ns: int, port: int) -> tuple[int, int]:
    """The rank of a frame among those that reach a switch in one nanosecond: 16 bits drawn from both, then the port."""
    return SplitMix64(t_ns * PORTS + port).draw() >> 48, port


class _Switch:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.cables: dict[int, End] = {}
        self.arrivals: list[tuple[int, tuple[int, int], int, bytes]] = []  # time, order, number, frame


class _NicPort:
    def __init__(self) -> None:
        self.config = NicPort(up=False)
        self.cable: End | None = None
        self.loss = SplitMix64(0)
        self.free_ns = 0


class SteppedFabric:
    """`switch.fabric.Fabric` over the given engines, which are its switches 0, 1, …"""

    def __init__(self, engines: Sequence[Engine], hosts: int, host_ports: int) -> None:
        self._switches = [_Switch(engine) for engine in engines]
        self._nic_ports = {(host, port): _NicPort() for host in range(hosts) for port in range(host_ports)}
        self._to_hosts: list[tuple[int, int, int, int, bytes]] = []  # time, host, port, number, frame
        self._inboxes: dict[int, list[HostFrame]] = {}
        self._sent = 0
        self._closed = False
        self._reached_ns = 0
        self._recorder: Recorder | None = None

    def switch(self, number: int) -> Engine:
        engine = self._switches[number].engine
        self._leave(self._switches[number], max(self._reached_ns - 1, 0))
        return engine

    def close(self) -> None:
        self._closed = True

    # --- cables -----------------------------------------------------------------------------------------------

    def connect(self, a: End, b: End) -> None:
        ends = [(a, b), (b, a)]
        if a == b or (a.kind == "host" and b.kind == "host") or any(self._peer(end) is not None for end, _ in ends):
            raise EngineError(f"{a} to {b}: one of the ports has a cable already, or neither is a switch's")
        for end, other in ends:
            if end.kind == "switch":
                self._switches[end.node].cables[end.port] = other
            else:
                self._nic_port(end.node, end.port).cable = other

    def _peer(self, end: End) -> End | None:
        if end.kind == "switch":
            if not 0 <= end.node < len(self._switches) or not 0 <= end.port < PORTS - 1:
                raise EngineError(f"there is no port {end}")
            return self._switches[end.node].cables.get(end.port)
        return self._nic_port(end.node, end.port).cable

    def _nic_port(self, host: int, port: int) -> _NicPort:
        found = self._nic_ports.get((host, port))
        if found is None:
            raise EngineError(f"port {port} of host {host}: there is no such port")
        return found

    def configure_nic_port(self, host: int, port: int, config: NicPort) -> None:
        nic_port = self._nic_port(host, port)
        if not 0 <= config.loss <= 1 or min(config.rate_bps, config.delay_ns, config.overhead_bytes) < 0:
            raise EngineError(f"port {port} of host {host}: a loss is a share, rates and delays cannot be negative")
        if not (config.delay_ns or config.rate_bps):
            raise EngineError(f"port {port} of host {host}: a cable of a fabric takes time; give a delay or a rate")
        if (config.loss, config.loss_seed) != (nic_port.config.loss, nic_port.config.loss_seed):
            nic_port.loss = SplitMix64(config.loss_seed)
        nic_port.config = config

    # --- frames from and to hosts -----------------------------------------------------------------------------

    def send(self, frames: Iterable[HostFrame | tuple[int, int, int, bytes]]) -> None:
        for t_ns, host, port, frame in frames:
            nic_port = self._nic_port(host, port)
            config, to = nic_port.config, nic_port.cable
            if len(frame) > FRAME_BYTES_MAX:
                raise EngineError(f"a frame of {len(frame)} bytes by port {port} of host {host} is above the longest")
            if not config.up or to is None:
                self._note_leaving(t_ns, 0, HostFrame(t_ns, host, port, frame), Fate.PORT_DOWN)
                continue
            busy_ns = _busy_ns(len(frame) + config.overhead_bytes, config.rate_bps)
            free_ns = max(t_ns, nic_port.free_ns) + busy_ns
            arrival_ns = free_ns + config.delay_ns
            if arrival_ns < self._reached_ns:
                raise EngineError(f"a frame by port {port} of host {host} at {t_ns} ns: the fabric has passed that")
            nic_port.free_ns = free_ns
            lost = config.loss > 0 and nic_port.loss.chance(config.loss)
            fate = Fate.LOST if lost else Fate.SENT
            self._note_leaving(free_ns - busy_ns, arrival_ns, HostFrame(t_ns, host, port, frame), fate)
            if lost:
                continue
            self._arrive(to, arrival_ns, frame)

    def gather(self, before_ns: int) -> list[int]:
        while self._to_hosts and self._to_hosts[0][0] < before_ns:
            t_ns, host, port, _, frame = heapq.heappop(self._to_hosts)
            up = self._nic_ports[host, port].config.up
            self._note(Fate.RECEIVED if up else Fate.PORT_DOWN, t_ns, 0, t_ns, host, NO_PORT, port, frame)
            if up:
                self._inboxes.setdefault(host, []).append(HostFrame(t_ns, host, port, frame))
        return list(self._inboxes)

    def collect(self, host: int) -> list[HostFrame]:
        return self._inboxes.pop(host, [])

    # --- packet log -------------------------------------------------------------------------------------------

    def record_packets(self, start_ns: int, stop_ns: int) -> None:
        self._recorder = Recorder(start_ns, stop_ns)
        for switch in self._switches:
            switch.engine.record_packets(start_ns, stop_ns)

    def take_records(self) -> list[PacketRecord]:
        if self._recorder is None:
            return []
        records = self._recorder.take()
        for number, switch in enumerate(self._switches):
            records += [record._replace(node=number) for record in switch.engine.take_records()]
        return records

    def _note_leaving(self, t_ns: int, arrives_ns: int, sent: HostFrame, fate: Fate) -> None:
        self._note(fate, t_ns, arrives_ns, sent.t_ns, sent.host, sent.port, NO_PORT, sent.frame)

    def _note(
        self, fate: Fate, t_ns: int, arrives_ns: int, queued_ns: int, host: int, port: int, port_in: int, frame: bytes
    ) -> None:
        if self._recorder is not None:
            lengths = len(frame), len(frame)
            numbers = (t_ns, arrives_ns, queued_ns, host, 0, port, port_in, *lengths)
            self._recorder.note(PacketRecord(*numbers, NodeKind.HOST, fate, 0, frame))

    # --- time -------------------------------------------------------------------------------------------------

    @property
    def reached_ns(self) -> int:
        return self._reached_ns

    @property
    def next_ns(self) -> int | None:
        first_ns = min([self._next_switch_ns(), *(item[0] for item in self._to_hosts[:1])])
        return None if first_ns == NEVER else first_ns

    def _next_switch_ns(self) -> int:
        first_ns = NEVER
        for switch in self._switches:
            due_ns = switch.engine.next_event_ns()
            if due_ns is not None:
                first_ns = min(first_ns, due_ns)
            if switch.arrivals:
                first_ns = min(first_ns, switch.arrivals[0][0])
        return first_ns

    def run(self, host_ns: int | None, limit_ns: int) -> int:
        if self._closed:
            raise EngineError(CLOSED)
        next_ns = self.next_ns
        first_ns = min(NEVER if next_ns is None else next_ns, NEVER if host_ns is None else host_ns)
        if first_ns < limit_ns:
            self._instant(first_ns)
        self._reached_ns = max(self._reached_ns, min(first_ns + 1, limit_ns))
        return self._reached_ns

    def _instant(self, now_ns: int) -> None:
        for switch in self._switches:  # whatever was on its way is there before anything arrives
            self._leave(switch, now_ns)
        for switch in self._switches:
            while switch.arrivals and switch.arrivals[0][0] <= now_ns:
                _, (_, port), _, frame = heapq.heappop(switch.arrivals)
                switch.engine.receive(port, frame, now_ns)
            self._leave(switch, now_ns)

    def _leave(self, switch: _Switch, now_ns: int) -> None:
        for sent in switch.engine.advance(now_ns):
            to = switch.cables.get(sent.port)
            if to is not None:
                self._arrive(to, sent.t_ns, sent.frame)

    def _arrive(self, to: End, t_ns: int, frame: bytes) -> None:
        self._sent += 1
        if to.kind == "host":
            heapq.heappush(self._to_hosts, (t_ns, to.node, to.port, self._sent, frame))
        else:
            order = arrival_order(t_ns, to.port)
            heapq.heappush(self._switches[to.node].arrivals, (t_ns, order, self._sent, frame))


def _busy_ns(length: int, rate_bps: int) -> int:
    """How long a frame of `length` bytes occupies a port, rounded up."""
    return -(-length * 8_000_000_000 // rate_bps) if rate_bps else 0
