"""The same random life for two fabrics, which must agree to the bit and the nanosecond.

Everything is drawn from one seed: switches and their programs, cables, tables (as in `Scenario`), rates,
delays and losses, frames that hosts send of their own and in answer to what they get, and what a control plane does
meanwhile. Times are mostly whole microseconds, so that much happens at once. Compared: every frame that a host gets
with its time and order, every counter and register, and which calls are refused.
"""

import heapq
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from p4c.model import Program
from switch.engine import Engine, PortConfig
from switch.fabric import End, Fabric, HostFrame, NicPort
from switch.native.fabric import NativeFabric
from switch.packet_log import Fate, PacketRecord, in_order
from tests.helpers.engines.scenario import Scenario
from tests.helpers.engines.stepped_fabric import SteppedFabric

PORTS = (0, 1, 2, 3, 510)
HOST_PORTS = 3
FRAMES_MAX = 400  # that a host sends of its own and in answer, so that no loop of answers lasts
DURATION_NS = 1_000_000
CONTROLS = 8


class FabricHost:
    """Sends what it was told, and answers some of what it gets; the same whatever fabric it hangs on."""

    def __init__(self, number: int, agenda: Sequence[tuple[int, int, bytes]]) -> None:
        self.number = number
        self.agenda = list(agenda)
        heapq.heapify(self.agenda)
        self.got: list[HostFrame] = []
        self.sent = 0

    @property
    def next_ns(self) -> int | None:
        return self.agenda[0][0] if self.agenda else None

    def take(self, arrival: HostFrame) -> None:
        self.got.append(arrival)
        drawn = zlib.crc32(arrival.frame + arrival.port.to_bytes(1, "big"))
        if drawn % 3 == 0:
            later_ns = (0, 0, 1000, drawn % 5000)[drawn // 3 % 4]
            heapq.heappush(self.agenda, (arrival.t_ns + later_ns, drawn % HOST_PORTS, arrival.frame))

    def speak(self, now_ns: int) -> Iterator[HostFrame]:
        while self.agenda and self.agenda[0][0] <= now_ns:
            t_ns, port, frame = heapq.heappop(self.agenda)
            self.sent += 1
            if self.sent <= FRAMES_MAX:
                yield HostFrame(t_ns, self.number, port, frame)


class Side:
    """One fabric with its hosts."""

    def __init__(self, fabric: Fabric, agendas: Sequence[Sequence[tuple[int, int, bytes]]]) -> None:
        self.fabric = fabric
        self.hosts = [FabricHost(number, agenda) for number, agenda in enumerate(agendas)]
        self.records: list[PacketRecord] = []

    def run_through(self, t_ns: int) -> None:
        """Everything up to and at `t_ns`, and nothing after."""
        while self.fabric.reached_ns <= t_ns or self._next_ns() <= t_ns:
            horizon_ns = min(self.fabric.run(self._first_speech_ns(), t_ns + 1), t_ns + 1)
            waiting = self.fabric.gather(horizon_ns)
            for host in self.hosts:
                arrivals = self.fabric.collect(host.number)
                assert bool(arrivals) == (host.number in waiting)
                self.fabric.send(list(self._serve(host, arrivals, horizon_ns)))

    def _next_ns(self) -> int:
        times = [self.fabric.next_ns, self._first_speech_ns()]
        return min((t_ns for t_ns in times if t_ns is not None), default=1 << 62)

    def _first_speech_ns(self) -> int | None:
        return min((host.next_ns for host in self.hosts if host.next_ns is not None), default=None)

    @staticmethod
    def _serve(host: FabricHost, arrivals: list[HostFrame], horizon_ns: int) -> Iterator[HostFrame]:
        """All that arrives and that is due before the horizon: each at its time, frames before speech."""
        for place, arrival in enumerate(arrivals):
            yield from host.speak(arrival.t_ns - 1)
            host.take(arrival)
            if place + 1 == len(arrivals) or arrivals[place + 1].t_ns > arrival.t_ns:
                yield from host.speak(arrival.t_ns)
        yield from host.speak(horizon_ns - 1)


class Kind(NamedTuple):
    """A program, and what stands in place of chance: frames of hosts, what installs entries, delays of cables."""

    program: Program
    frames: Sequence[bytes] = ()
    populate: Callable[[Scenario], None] | None = None
    delays_ns: Sequence[int] = (1, 1000, 1000)


class SwitchLife(Scenario):
    """A switch in both fabrics. A cable takes time; little is unlimited, so that loops stay small."""

    kind: Kind
    cells_compared = 72  # ports 0..8 of eight classes

    def port_config(self) -> PortConfig:
        draw = self.rng.choice
        rate_bps = draw((80_000_000, 800_000_000, 8_000_000_000, 99_999_937))
        delay_ns = draw((*self.kind.delays_ns, 5000, 12_345))
        loss = draw((0.0, 0.0, 0.0, 0.25))
        return replace(self.control.port(), rate_bps=rate_bps, rate_pps=0, delay_ns=delay_ns, loss=loss)

    def populate(self) -> None:
        if self.kind.populate is None:
            super().populate()
        else:
            self.kind.populate(self)


class FabricLife:
    """`stepped` makes the engines of the slow side, one for each seed."""

    bytes_min = 0  # of a frame: one of no bytes takes no time where there is no delay, which only the fast side mends

    def __init__(self, seed: int, programs: Sequence[Kind], stepped: Callable[[int], Engine]) -> None:
        self.seed = seed
        self.fates: Counter[Fate] = Counter()
        self.random = random.Random(seed)
        draw = self.random
        seeds = [draw.getrandbits(64) for _ in range(draw.randint(1, 5))]
        host_count = draw.randint(1, 3)
        slow = SteppedFabric([stepped(seed) for seed in seeds], host_count, HOST_PORTS)
        self.fast = NativeFabric(seeds, host_count, HOST_PORTS)
        self.lives = []
        for number in range(len(seeds)):
            kind = draw.choice(programs)
            life = SwitchLife(kind.program, seed, (slow.switch(number), self.fast.switch(number)), draw, PORTS)
            life.kind = kind
            life.now_ns = 0
            self.lives.append(life)
        agendas = [self._agenda() for _ in range(host_count)]
        self.sides = [Side(slow, agendas), Side(self.fast, agendas)]
        self._wire(len(seeds), host_count)

    def _agenda(self) -> list[tuple[int, int, bytes]]:
        draw, agenda = self.random, []
        given = [frame for life in self.lives for frame in life.kind.frames]
        made = [life.packets.packet() for life in self.lives if not life.kind.frames for _ in range(40)]
        for _ in range(draw.randint(10, 120)):
            t_ns = draw.choice((0, 1000, draw.randrange(DURATION_NS), draw.randrange(DURATION_NS) // 1000 * 1000))
            frame = bytearray(draw.choice([*given, *made]))
            if frame and draw.random() < 0.4:
                frame[draw.randrange(len(frame))] = draw.getrandbits(8)
            if draw.random() < 0.1:
                del frame[draw.randrange(self.bytes_min, len(frame) + 1) :]
            agenda.append((t_ns, draw.randrange(HOST_PORTS), bytes(frame)))
        return agenda

    def _wire(self, switches: int, hosts: int) -> None:
        draw = self.random
        free = [End("switch", number, port) for number in range(switches) for port in PORTS]
        draw.shuffle(free)
        for host in range(hosts):
            for port in range(HOST_PORTS):
                self._connect_nic(End("host", host, port), free)
        while len(free) > 1 and draw.random() < 0.98:
            a, b = free.pop(), free.pop()
            for side in self.sides:
                side.fabric.connect(a, b)

    def _connect_nic(self, nic: End, free: list[End]) -> None:
        self._configure_nic(nic, up=True)
        if free and self.random.random() < 0.95:
            leaf = free.pop()
            for side in self.sides:
                side.fabric.connect(nic, leaf)

    def _configure_nic(self, nic: End, up: bool) -> None:
        draw = self.random.choice
        config = NicPort(
            up,
            draw((8_000_000, 80_000_000, 0)),
            draw((1000, 1000, 1, 3333)),
            draw((0, 0, 0.3)),
            draw((1, 2)),
            draw((0, 24)),
        )
        for side in self.sides:
            side.fabric.configure_nic_port(nic.node, nic.port, config)

    # --- what is done ---

    def live(self) -> int:
        """How many frames hosts got."""
        for life in self.lives:
            life.set_up()
        start_ns = random.Random(self.seed).choice((0, 0, DURATION_NS // 3))
        for side in self.sides:
            side.fabric.record_packets(start_ns, DURATION_NS)
        times = sorted(self.random.randrange(0, DURATION_NS, 1000) for _ in range(CONTROLS))
        for t_ns in times:
            self._run_through(t_ns)
            self._control(t_ns)
        self._run_through(DURATION_NS)
        for life in self.lives:
            life.now_ns = DURATION_NS
            life.compare()
        self.fast.close()
        return sum(len(host.got) for host in self.sides[0].hosts)

    def _run_through(self, t_ns: int) -> None:
        for side in self.sides:
            side.run_through(t_ns)
        for slow, fast in zip(self.sides[0].hosts, self.sides[1].hosts, strict=True):
            assert slow.got == fast.got, f"seed {self.seed}: host {slow.number} differs by {t_ns} ns"
        self._compare_records(t_ns)

    def _compare_records(self, t_ns: int) -> None:
        """What became of packets until now, both logs whole."""
        logs = []
        for side in self.sides:
            side.records += side.fabric.take_records()
            logs.append(in_order(record for record in side.records if record.t_ns <= t_ns))
            side.records = [record for record in side.records if record.t_ns > t_ns]
        assert logs[0] == logs[1], f"seed {self.seed}: packet logs differ by {t_ns} ns"
        self.fates.update(record.fate for record in logs[0])

    def _control(self, t_ns: int) -> None:
        draw = self.random
        if draw.random() < 0.2:
            nic = End("host", draw.randrange(len(self.sides[0].hosts)), draw.randrange(HOST_PORTS))
            self._configure_nic(nic, up=draw.random() < 0.7)
            return
        number = draw.randrange(len(self.lives))
        life = self.lives[number]
        for side in self.sides:
            side.fabric.switch(number)  # what is due happens before anything is changed
        life.now_ns = t_ns
        if draw.random() < 0.1:
            life.pair("reset")
            if draw.random() < 0.8:
                life.load()
                life.populate()
        else:
            life.change()
        for port in PORTS:
            life.pair("port_counters", port, t_ns)
