"""Two endpoints on a test bench: every frame is held in the hand, to be passed on, changed, dropped or looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.rig.profiles import profile as profile_data
from endpoint import profile as profiles
from endpoint.mrc.endpoint import Endpoint
from endpoint.mrc.paths.ev_set import EvRules, EvSet
from endpoint.nic import frame as frames, icrc, wire
from endpoint.transport import Completion
from tests.helpers.transport.virtual_wire import trim


@dataclass
class Packet:
    """A frame taken apart by the plain codecs."""

    port: int
    frame: bytes

    def __post_init__(self) -> None:
        self.outside = frames.parse(self.frame)
        self.bth = wire.Bth.unpack(self.frame, self.outside.bth)
        self.at = self.outside.bth + wire.BTH_BYTES

    @property
    def opcode(self) -> wire.Opcode:
        return wire.Opcode(self.bth.opcode)

    @property
    def psn(self) -> int:
        return self.bth.psn

    @property
    def ev(self) -> int:
        return self.outside.ev

    @property
    def retransmission(self) -> bool:
        return bool(self.bth.flags & wire.RETRANSMISSION)

    @property
    def seth(self) -> wire.Seth:
        assert self.opcode is wire.Opcode.SACK
        return wire.Seth.unpack(self.frame, self.at)

    @property
    def cc_state(self) -> wire.CcState:
        assert self.opcode is wire.Opcode.SACK
        return wire.CcState.unpack(self.frame, self.at + wire.SETH_BYTES)

    @property
    def neth(self) -> wire.Neth:
        assert self.opcode is wire.Opcode.NACK
        return wire.Neth.unpack(self.frame, self.at)

    @property
    def erth(self) -> wire.Erth:
        assert self.opcode is wire.Opcode.ENDPOINT_REQUEST
        return wire.Erth.unpack(self.frame, self.at)

    def trimmed(self, lasthop: bool = False, size: int = 128) -> Packet:
        return Packet(self.port, trim(self.frame, lasthop, size))

    def marked(self) -> Packet:
        return Packet(self.port, self.frame[:15] + bytes([self.frame[15] | 0x30]) + self.frame[16:])

    def with_path_mark(self, mark: int) -> Packet:
        """A SACK without a path mark, as it is with this one."""
        return self.with_bytes({self.at + 1: bytes([self.frame[self.at + 1] | mark << 5])})

    def with_bytes(self, changes: dict[int, bytes]) -> Packet:
        """With other bytes at these places, and a right ICRC."""
        changed = bytearray(self.frame)
        for at, data in changes.items():
            changed[at : at + len(data)] = data
        changed[-4:] = icrc.WIRE.pack(icrc.compute(bytes(changed[self.outside.offset : -4])))
        return Packet(self.port, bytes(changed))

    def with_dscp(self, dscp: int) -> Packet:
        changed = bytearray(self.frame)
        traffic_class = dscp << 2 | (changed[15] >> 4 & 3)
        changed[14] = 0x60 | traffic_class >> 4
        changed[15] = (traffic_class << 4 & 0xF0) | (changed[15] & 0x0F)
        return Packet(self.port, bytes(changed))


class Bench:
    """`a` writes to `b`. Time stands still unless a test moves it."""

    def __init__(
        self,
        *,
        planes: int = 4,
        evs_per_plane: int = 8,
        psn: int = 0,
        base_rtt_ns: int = 12_000,
        changes: dict[str, Any] | None = None,
        remote: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.now_ns = 1_000_000
        self.base_rtt_ns = base_rtt_ns
        data = {"planes": planes, "evs_per_plane": evs_per_plane, "rate_bps": 100_000_000_000}
        data |= {"base_rtt_ns": base_rtt_ns, "jitter_ns": 0, **(changes or {})}
        self.a = Endpoint(profiles.parse(profile_data(0, **data)), rng=Random(1), now_ns=self.now_ns, **settings)
        self.b = Endpoint(
            profiles.parse(profile_data(1, **data)), rng=Random(2), now_ns=self.now_ns, **{**settings, **(remote or {})}
        )
        self.source = bytearray(Random(3).randbytes(1 << 18))
        self.sink = bytearray(1 << 18)
        self.region = self.a.register_memory(self.source)
        self.target = self.b.register_memory(self.sink)
        self.cq_a, self.cq_b = self.a.create_cq(10_000), self.b.create_cq(10_000)
        self.qp_a, self.qp_b = self.pair({"psn": psn})
        self.posted = 0

    def pair(self, one: dict[str, Any] | None = None, other: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Two new connected QPs of `a` and `b` with these attributes."""
        qp_a, qp_b = self.a.create_qp(self.cq_a, **(one or {})), self.b.create_qp(self.cq_b, **(other or {}))
        qp_a.connect(qp_b.info(), self.now_ns)
        qp_b.connect(qp_a.info(), self.now_ns)
        return qp_a, qp_b

    def post(self, packets: int = 1, immediate: int | None = None, at: int = 0) -> None:
        """One write of so many full packets."""
        length = packets * 4096
        self.qp_a.post_write(self.posted, self.region, at, length, self.target.va + at, self.target.rkey, immediate)
        self.posted += 1

    def out(self, endpoint: Endpoint, *opcodes: wire.Opcode) -> list[Packet]:
        """Everything that `endpoint` sends now, at whatever rate; of these opcodes only if any are given."""
        found: list[Packet] = []
        for _ in range(10_000):
            batch = endpoint.packets_to_send(self.now_ns, 64)
            if not batch:
                due_ns = endpoint.scheduler.pacing_ns
                if due_ns > self.now_ns + 10 * self.base_rtt_ns:
                    break
                self.now_ns = due_ns
                continue
            found += [Packet(port, frame) for port, frame in batch]
        return [packet for packet in found if not opcodes or packet.opcode in opcodes]

    def writes(self) -> list[Packet]:
        return [packet for packet in self.out(self.a) if packet.opcode in wire.WRITES]

    def write(self, packets: int = 1, immediate: int | None = None, at: int = 0) -> list[Packet]:
        """Post one write of so many full packets; those of its packets that leave now."""
        self.post(packets, immediate, at)
        return self.writes()

    def to_b(self, *packets: Packet) -> None:
        for packet in packets:
            self.b.receive(packet.port, [packet.frame], self.now_ns)

    def to_a(self, *packets: Packet) -> None:
        for packet in packets:
            self.a.receive(packet.port, [packet.frame], self.now_ns)

    def answers(self, *opcodes: wire.Opcode) -> list[Packet]:
        return self.out(self.b, *opcodes)

    def wait(self, round_trips: float = 1.0) -> None:
        self.now_ns += int(round_trips * self.base_rtt_ns)

    def timers(self) -> None:
        """Let whatever is due at this moment fire, on both sides."""
        for endpoint in (self.a, self.b):
            due_ns = endpoint.next_timer_ns()
            if due_ns is not None and due_ns <= self.now_ns:
                endpoint.handle_timer(self.now_ns)

    def later(self, round_trips: float = 1.0) -> None:
        """Time passes, and whatever is due then fires."""
        self.wait(round_trips)
        self.timers()

    def completions(self) -> list[Completion]:
        return self.cq_a.poll(1000)

    def received(self) -> list[Completion]:
        return self.cq_b.poll(1000)


def ev_set(
    active: int = 128,
    backup: int = 0,
    *,
    shape: dict[str, int] | None = None,
    only: Callable[[Any], bool] = lambda route: True,
    on_change: Callable[..., None] = lambda *_: None,
    **rules: Any,
) -> EvSet:
    """EVs that lead from `h0` to `h1`, so many in rotation: of four planes with eight each, or of another shape."""
    routes = Endpoint(profiles.parse(profile_data(0, **(shape or {}))), rng=Random(1)).peers.named("h1").routes
    given = {"floor_share": 0.25, "probes_needed": 2, "probe_interval_ns": 1000, **rules}
    return EvSet(list(filter(only, routes)), Random(2), EvRules(active=active, backup=backup, **given), on_change)
