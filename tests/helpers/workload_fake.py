"""A network in memory for the workloads: whole messages, delayed and reordered, and hosts run in virtual time."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from benchmarks.rig.profiles import profile as example
from endpoint import profile
from endpoint.host import HostNic
from endpoint.nic.config import NEVER
from endpoint.nic.nic import Turns
from endpoint.transport import Completion, CompletionStatus, Event, MemoryRegion, QPInfo, QPState


class FakeCQ:
    def __init__(self) -> None:
        self.entries: list[Completion] = []

    def poll(self, limit: int = 16) -> list[Completion]:
        batch, self.entries = self.entries[:limit], self.entries[limit:]
        return batch


@dataclass
class FakeQP:
    transport: FakeTransport
    qpn: int
    cq: FakeCQ
    state: QPState = QPState.RESET
    peer: QPInfo | None = None
    receives: list[int] = field(default_factory=list)
    arrived: dict[int, int | None] = field(default_factory=dict)  # message -> immediate
    expected: int = 0
    sent: int = 0
    bytes_sent: int = 0

    def info(self) -> QPInfo:
        return QPInfo(self.transport.host, self.qpn, 0, 8, 128)

    def connect(self, peer: QPInfo, now_ns: int) -> None:
        self.peer, self.state = peer, QPState.RTS

    def post_recv(self, wr_id: int) -> None:
        self.receives.append(wr_id)

    def post_write(
        self,
        wr_id: int,
        region: MemoryRegion,
        offset: int,
        length: int,
        remote_va: int,
        rkey: int,
        immediate: int | None = None,
    ) -> None:
        assert self.state is QPState.RTS
        assert self.peer is not None
        assert 0 <= offset <= offset + length <= region.length
        memory = region.buffer
        data = bytes(length) if memory is None else bytes(memory[offset : offset + length])
        number, self.sent = self.sent, self.sent + 1
        self.bytes_sent += length
        self.transport.net.carry(self, number, wr_id, data, remote_va, rkey, immediate)

    def counters(self) -> Mapping[str, int]:
        return {"acked_bytes": 0}

    def paths(self) -> Mapping[int, int]:
        return {}


class FakeTransport(Turns):
    """Messages arrive whole after a random delay; a barrier completes when all before it have arrived."""

    def __init__(self, net: FakeNet, host: str) -> None:
        self.net = net
        self.host = host
        self.counted = net.counted
        self.regions: dict[int, tuple[MemoryRegion, bool]] = {}
        self.qps: dict[int, FakeQP] = {}
        self.due: list[tuple[int, int, Callable[[], None]]] = []

    def register_memory(self, buffer: bytearray | memoryview, *, remote_write: bool = True) -> MemoryRegion:
        key = next(self.net.numbers)
        region = MemoryRegion(key << 32, len(buffer), key, key, memoryview(buffer))
        self.regions[key] = (region, remote_write)
        return region

    def register_counted(self, length: int, *, remote_write: bool = True) -> MemoryRegion:
        key = next(self.net.numbers)
        region = MemoryRegion(key << 32, length, key, key, None)
        self.regions[key] = (region, remote_write)
        return region

    def deregister_memory(self, region: MemoryRegion) -> None:
        del self.regions[region.rkey]

    def create_cq(self, capacity: int) -> FakeCQ:
        return FakeCQ()

    def create_qp(self, cq: Any, **attributes: Any) -> FakeQP:
        qp = FakeQP(self, next(self.net.numbers), cq)
        self.qps[qp.qpn] = qp
        return qp

    def destroy_qp(self, qp: Any, now_ns: int) -> None:
        del self.qps[qp.qpn]

    def receive(self, port: int, frames: Sequence[bytes | memoryview], now_ns: int) -> bool:
        raise AssertionError("no frames here")

    def port_changed(self, port: int, up: bool, now_ns: int) -> None: ...

    def handle_timer(self, now_ns: int) -> None:
        while self.due and self.due[0][0] <= now_ns:
            heapq.heappop(self.due)[2]()

    def next_timer_ns(self) -> int | None:
        return self.due[0][0] if self.due else None

    def timers_ns(self) -> tuple[int, int]:
        return self.due[0][0] if self.due else NEVER, NEVER

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        return []

    def denied(self) -> set[tuple[str, int]]:
        return set()

    def set_denied(self, denied: Any, now_ns: int) -> None: ...

    def events_waiting(self) -> bool:
        return False

    def next_event(self) -> Event | None:
        return None

    def counters(self) -> Mapping[str, Any]:
        return {"ports": []}

    def later(self, delay_ns: int, what: Callable[[], None]) -> None:
        heapq.heappush(self.due, (self.net.now_ns + delay_ns, next(self.net.numbers), what))


class FakeNet:
    def __init__(self, seed: int, hosts: int, spread_ns: int = 1_000_000, *, counted: bool = False) -> None:
        self.counted = counted
        self.random = random.Random(seed)
        self.numbers = count(1)
        self.now_ns = 1_000_000_000
        self.spread_ns = spread_ns
        self.tamper: Callable[[bytes], bytes] = lambda data: data
        self.lines: list[dict[str, Any]] = []
        self.transports: dict[str, FakeTransport] = {}
        self.hosts: dict[str, HostNic] = {}
        for index in range(hosts):
            nic = profile.parse(example(index, hosts))
            transport: Any = FakeTransport(self, nic.host)
            self.transports[nic.host] = transport
            self.hosts[nic.host] = HostNic(
                nic, transport, self._journal(nic.host), clock=lambda: self.now_ns, now_ns=self.now_ns
            )

    def _journal(self, node: str) -> Callable[[int, str, Mapping[str, Any]], None]:
        return lambda t_ns, kind, fields: self.lines.append({"t_ns": t_ns, "node": node, "kind": kind, **fields})

    def carry(
        self, qp: FakeQP, number: int, wr_id: int, data: bytes, va: int, rkey: int, immediate: int | None
    ) -> None:
        assert qp.peer is not None
        target = self.transports[qp.peer.host]
        peer = target.qps[qp.peer.qpn]

        def arrive() -> None:
            if peer.qpn not in target.qps or peer.state is not QPState.RTS:
                return
            region, writable = target.regions[rkey]
            assert writable
            assert region.va <= va <= va + len(data) <= region.va + region.length
            at = va - region.va
            if region.buffer is None:
                region.landed.add(at, at + len(data))
            else:
                region.buffer[at : at + len(data)] = self.tamper(data)
            peer.arrived[number] = immediate
            while peer.expected in peer.arrived:
                found = peer.arrived.pop(peer.expected)
                peer.expected += 1
                if found is not None:
                    receive = peer.receives.pop(0)
                    done = Completion(receive, peer.qpn, CompletionStatus.SUCCESS, "recv_imm", 0, found)
                    peer.cq.entries.append(done)
            opcode = "write" if immediate is None else "write_imm"
            complete = Completion(wr_id, qp.qpn, CompletionStatus.SUCCESS, opcode, len(data), immediate)
            self._when_expected_passes(peer, number, qp, complete)

        target.later(self.random.randrange(1, self.spread_ns), arrive)

    def _when_expected_passes(self, peer: FakeQP, number: int, qp: FakeQP, complete: Completion) -> None:
        """An immediate is acknowledged when it was delivered in order; a plain write at once."""

        def look() -> None:
            if qp.qpn not in qp.transport.qps or qp.state is not QPState.RTS:
                return
            if complete.immediate is not None and peer.expected <= number:
                qp.transport.later(10_000, look)
            else:
                qp.cq.entries.append(complete)

        qp.transport.later(self.random.randrange(1, self.spread_ns), look)

    def kill(self, host: str, qpn: int) -> None:
        """The QP goes to ERROR and flushes its receives."""
        qp = self.transports[host].qps[qpn]
        qp.state = QPState.ERROR
        for wr_id in qp.receives:
            qp.cq.entries.append(Completion(wr_id, qpn, CompletionStatus.FLUSHED, "recv_imm", 0))
        qp.receives.clear()
        self.transports[host].later(1, lambda: None)

    def run(self, until: Callable[[], bool], limit_ns: int = 60_000_000_000) -> None:
        end_ns = self.now_ns + limit_ns
        while not until():
            times = {name: host.next_timer_ns() for name, host in self.hosts.items()}
            name, at_ns = min(
                ((name, at_ns) for name, at_ns in times.items() if at_ns is not None), key=lambda item: item[1]
            )
            self.now_ns = max(self.now_ns, at_ns)
            assert self.now_ns < end_ns, "nothing came of it in virtual time"
            self.hosts[name].handle_timer(self.now_ns)


class FakeClient:
    """The agent's control operations without a socket: `endpoint.group` runs on it."""

    def __init__(self, net: FakeNet, host: str) -> None:
        self._net, self._host = net, host
        self._answers: dict[int, dict[str, Any]] = {}
        self._ids = count(1)

    def send(self, op: str, **arguments: Any) -> int:
        ident = next(self._ids)

        def reply(answer: dict[str, Any]) -> None:
            self._answers[answer["id"]] = answer

        self._net.hosts[self._host].control({"id": ident, "op": op, **arguments}, self._net.now_ns, reply)
        return ident

    def result(self, ident: int, timeout_s: float | None = None) -> Any:
        from common.client import ControlError

        self._net.run(lambda: ident in self._answers)
        answer = self._answers.pop(ident)
        if not answer["ok"]:
            raise ControlError(answer["error"])
        return answer["result"]
