"""One host without I/O: a transport, its workloads and a path prober behind the control operations.

The agent puts a driver and a control socket around it; the simulated world calls it in virtual time. Order matters
in one place: arrivals are handed to the workloads before frames are taken to be sent, so no acknowledgement
leaves before the data it acknowledges has been looked at. Streams rely on it.
"""

from __future__ import annotations

import gc
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

from endpoint.denylist import BY_REQUEST, CONTROL, OWNERS, Denylist
from endpoint.nic.config import NEVER
from endpoint.nic.nic import Turns
from endpoint.packet_sampling import PacketSampler
from endpoint.prober import PathProber, ProberError
from endpoint.profile import NicProfile
from endpoint.transport import QueuePair, Transport
from endpoint.workloads import Workload, WorkloadError, defaults
from endpoint.workloads.table import Journal, Reply, RequestError, WorkloadTable, fields_of
from endpoint.workloads.workload import OVER

SAMPLE_INTERVAL_NS = 100_000_000
SAMPLE_INTERVAL_MIN_NS = 1_000_000  # or a round trip where that is shorter


class Guest(Protocol):
    """Somebody else who uses the host's transport: the programs of the host (`endpoint.uverbs`)."""

    def step(self, now_ns: int) -> None:
        """Something has arrived or become due: look for completions."""

    def next_timer_ns(self) -> int | None:
        """When `step` has something to do at the latest."""

    def qps(self) -> Sequence[tuple[str, QueuePair]]:
        """What it has, for samples, with the name of its owner."""

    def close(self, now_ns: int) -> None: ...


class HostNic:
    """A `driver.Device` with the control operations of `endpoint/README.md`."""

    def __init__(
        self,
        profile: NicProfile,
        transport: Transport,
        journal: Journal,
        *,
        transport_name: str = "mrc",
        clock: Callable[[], int],
        port_counts: Callable[[], Mapping[int, Mapping[str, int]]] = dict,
        on_shutdown: Callable[[], None] = lambda: None,
        now_ns: int,
        sample_ns: int = SAMPLE_INTERVAL_NS,
        lost: Callable[[], int] = lambda: 0,
    ) -> None:
        self.profile = profile
        self.transport = transport
        assert isinstance(transport, Turns)  # as every transport is
        self._turns: Turns = transport
        self.port_counts = port_counts
        self.on_shutdown = on_shutdown
        self.on_sample: Callable[[int], None] = lambda now_ns: None
        self.guest: Guest | None = None
        self.sampler: PacketSampler | None = None
        """The sampler of packets, where it is asked for (`sample_packets`)."""
        self._journal = journal
        self._transport_name = transport_name
        self._clock = clock
        self._now_ns = now_ns
        self._workloads = WorkloadTable(profile, transport, journal, clock)
        self._in_turn = self._workloads.in_turn
        self._prober: PathProber | None = None
        self._denylist = Denylist(transport.set_denied)
        self._lost = lost
        """How many journal lines could not be written."""
        self._sample_interval_ns = sample_ns
        self._sample_ns = now_ns + sample_ns
        self._sample_paths = False
        self._arrived = False
        """Frames have come since the last step that asked for something."""
        self._quiet_until_ns = 0
        """Before then nothing but the transport's pacing is due, unless something happens."""
        self._operations: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "ping": self._ping,
            "kinds": lambda request: defaults(),
            "workload.prepare": self._prepare,
            "workload.connect": self._connect,
            "workload.start": self._workloads.start,
            "workload.status": lambda request: self._workloads.named(request).status(),
            "workload.stop": lambda request: self._workloads.stop(request, self._now_ns),
            "workload.remove": self._remove,
            "counters": lambda request: self.counters(),
            "records": self._records,
            "sample": self._set_sample,
            "denylist.get": self._get_denied,
            "denylist.set": self._set_denied,
            "prober.start": self._start_prober,
            "prober.stop": self._stop_prober,
            "prober.map": self._map,
            "shutdown": self._shutdown,
        }

    # driver.Device

    def receive(self, port: int, frames: Sequence[bytes | memoryview], now_ns: int) -> bool:
        """True: the frames ask for nothing, as `Transport.receive` has it."""
        if self.sampler is not None:
            self.sampler.received(port, frames, now_ns)
        idle = self._turns.receive(port, frames, now_ns) and self.guest is None and self._prober is None
        if not idle:
            # A step for the frames of all ports together is soon enough: before timers, or sending.
            self._arrived = True
        return idle

    def receive_probes(self, port: int, frames: Sequence[bytes], now_ns: int) -> None:
        """Frames to the prober's UDP port."""
        if self._prober is not None:
            self._prober.receive(port, frames, now_ns)

    def port_changed(self, port: int, up: bool, now_ns: int) -> None:
        self._quiet_until_ns = 0
        self.transport.port_changed(port, up, now_ns)
        if self._prober is not None:
            self._prober.port_changed(port, up)
        self._step(now_ns)

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """Nothing of this host ran for so long: everything that waits for answers has to know, and so has the judge."""
        self._quiet_until_ns = 0
        self.transport.host_was_late(late_ns, now_ns)
        if self._prober is not None:
            self._prober.host_was_late(late_ns, now_ns)
        self._journal(now_ns, "stall", {"late_ns": late_ns})

    def handle_timer(self, now_ns: int) -> None:
        if now_ns < self._quiet_until_ns and not self._arrived and not self._turns.events_waiting():
            return
        if self._arrived:
            self._step(now_ns)
        deadline_ns = self._turns.next_timer_ns()
        if deadline_ns is not None and deadline_ns <= now_ns:
            self._turns.handle_timer(now_ns)
        if self._prober is not None:
            self._prober.handle_timer(now_ns)
        self._step(now_ns)
        if self._sample_interval_ns and now_ns >= self._sample_ns:
            self._sample_ns = max(self._sample_ns + self._sample_interval_ns, now_ns)
            self._sample(now_ns)

    def _sample(self, now_ns: int) -> None:
        self._journal(now_ns, "sample", self.counters())
        self.on_sample(now_ns)

    def next_timer_ns(self) -> int | None:
        due_ns = self.due_ns()
        return None if due_ns >= NEVER else due_ns

    def due_ns(self) -> int:
        """The same; NEVER for never."""
        earliest, pacing_ns = self._turns.timers_ns()
        if self._sample_interval_ns and self._sample_ns < earliest:
            earliest = self._sample_ns
        for workload in self._in_turn:
            earliest = min(earliest, workload.deadline_ns())
        if self._prober is not None:
            earliest = min(earliest, self._prober.next_timer_ns())
        if self.guest is not None:
            deadline_ns = self.guest.next_timer_ns()
            if deadline_ns is not None and deadline_ns < earliest:
                earliest = deadline_ns
        self._quiet_until_ns = earliest if self.guest is None and self._prober is None else 0
        return pacing_ns if pacing_ns < earliest else earliest

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        if self._arrived:
            self._step(now_ns)
        frames = self._turns.packets_to_send(now_ns, limit)
        if self.sampler is not None:
            self.sampler.sent(frames, now_ns)
        if self._prober is not None and (probes := self._prober.packets_to_send(now_ns)):
            frames = [*frames, *probes]
        return frames

    # Control.

    def control(self, request: Mapping[str, Any], now_ns: int, reply: Reply) -> None:
        """Carry out one request; `reply` gets the answer, now or (workload.wait) later."""
        self._now_ns = now_ns
        self._quiet_until_ns = 0
        ident = request.get("id")
        try:
            name = request.get("op")
            if name == "workload.wait":
                self._workloads.wait(request, ident, reply)
                return
            operation = self._operations.get(name) if isinstance(name, str) else None
            if operation is None:
                known = ", ".join(sorted([*self._operations, "workload.wait"]))
                raise RequestError(f"there is no operation {name!r}; valid: {known}")
            result = operation(request)
        except (RequestError, WorkloadError, ProberError) as error:
            reply({"id": ident, "ok": False, "error": str(error)})
            return
        reply({"id": ident, "ok": True, "result": result})
        self._step(now_ns)

    def forget(self, replies: Iterable[Reply]) -> None:
        """The clients that wait for these replies have left."""
        self._workloads.forget(replies)

    def sample_packets(self, dialect: str = "") -> None:
        """Journal what is seen of one data packet in `ONE_IN`, and memory that peers write to."""
        if self.sampler is not None:
            return
        self.sampler = PacketSampler(self.profile, self._journal, self._living_qps, dialect)
        for workload in self._in_turn:
            self._tell_memory(workload.setup.name, workload.offers())
            self._tell_pairs(workload)

    def counters(self) -> dict[str, Any]:
        """The fields of a `sample` line."""
        transport_ports = {row["port"]: row for row in self.transport.counters().get("ports", ())}
        driver_ports = self.port_counts()
        paths = {"paths": self._paths()} if self._sample_paths else {}
        return {
            **paths,
            "ports": [
                {"plane": port.plane, **transport_ports.get(port.port, {}), **driver_ports.get(port.port, {})}
                for port in self.profile.ports
            ],
            "qps": [
                {"qp": qp.qpn, "peer": peer, "workload": workload.setup.name, **qp.counters()}
                for workload in self._in_turn
                for peer, link in workload.links.items()
                for qp in link.qps
            ]
            + [{"qp": qp.qpn, "workload": name, **qp.counters()} for name, qp in self._guest_qps()],
        }

    def close(self, now_ns: int) -> None:
        """End every workload: a last sample and their `stop` lines are written, their QPs destroyed."""
        for workload in self._in_turn:
            workload.fail("the agent ended", now_ns)
        if self._sample_interval_ns:
            self._sample(now_ns)
        for workload in self._in_turn:
            workload.close(now_ns)
        if self.guest is not None:
            self.guest.close(now_ns)
            self.guest = None
        self._step(now_ns)
        self._workloads.clear()

    def _step(self, now_ns: int) -> None:
        self._arrived = False
        for workload in self._in_turn:
            while workload.step(now_ns):
                pass
            if self._workloads.waiting and workload.state in OVER:
                self._workloads.answer(workload)
        if self.guest is not None:
            self.guest.step(now_ns)
        while self._turns.events_waiting() and (event := self._turns.next_event()) is not None:
            self._journal(event.t_ns, event.kind, event.fields)
        if self._prober is not None:
            for event in self._prober.events():
                self._journal(event.t_ns, event.kind, event.fields)

    def _paths(self) -> dict[int, int]:
        """Packets sent per EV, of all QPs together."""
        packets: Counter[int] = Counter()
        for workload in self._in_turn:
            for qp in workload.qps():
                packets.update(qp.paths())
        for _, qp in self._guest_qps():
            packets.update(qp.paths())
        return dict(packets)

    def _guest_qps(self) -> Sequence[tuple[str, QueuePair]]:
        return self.guest.qps() if self.guest is not None else ()

    def _living_qps(self) -> set[int]:
        """The numbers of all queue pairs."""
        own = {qp.qpn for workload in self._in_turn for qp in workload.qps()}
        return own | {qp.qpn for _, qp in self._guest_qps()}

    # Operations.

    def _records(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Count what this host keeps, for who wants to know whether anything grows; journalled under `label`."""
        roots = [self.transport, *self._in_turn, self._denylist, self._prober]
        records = count_records(roots)
        self._journal(self._now_ns, "records", {"label": fields_of(request).string("label"), "records": records})
        return {"records": records}

    def _ping(self, request: Mapping[str, Any]) -> dict[str, Any]:
        said = {"host": self.profile.host, "transport": self._transport_name, "now_ns": self._now_ns}
        return {**said, "journal_lines_lost": self._lost()}

    def _prepare(self, request: Mapping[str, Any]) -> dict[str, Any]:
        report_ns = min(self._sample_interval_ns or SAMPLE_INTERVAL_NS, SAMPLE_INTERVAL_NS)
        workload = self._workloads.prepare(request, report_ns)
        offers = workload.offers()
        if self.sampler is not None:
            self._tell_memory(workload.setup.name, offers)
        return {"offers": offers}

    def _connect(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._tell_pairs(self._workloads.connect(request, self._now_ns))
        return {}

    def _remove(self, request: Mapping[str, Any]) -> dict[str, Any]:
        workload = self._workloads.named(request)
        if self._sample_interval_ns:  # the last counters of its queue pairs
            self._sample(self._now_ns)
        workload.fail("removed before it was over", self._now_ns)
        status = workload.status()
        self._step(self._now_ns)  # callers that wait for the workload are answered
        self._workloads.remove(workload, self._now_ns)
        if self.sampler is not None:
            self.sampler.forget_destroyed()
        return status

    def _tell_pairs(self, workload: Workload) -> None:
        """Which queue pairs belong together, for who looks at acknowledgements."""
        if self.sampler is not None:
            for peer, link in workload.links.items():
                for own, qpn in link.pairs():
                    self.sampler.joined(peer, own, qpn)

    def _tell_memory(self, name: str, offers: Mapping[str, Mapping[str, Any]]) -> None:
        """Where peers' payloads are placed."""
        for peer, offer in offers.items():
            if offer["length"]:
                fields = {"workload": name, "peer": peer, "va": offer["va"], "length": offer["length"]}
                self._journal(self._clock(), "memory", fields)

    def _set_sample(self, request: Mapping[str, Any]) -> dict[str, Any]:
        fields = fields_of(request)
        interval_ns = fields.integer("interval_ns", default=self._sample_interval_ns)
        least_ns = min(SAMPLE_INTERVAL_MIN_NS, self.profile.base_rtt_ns)
        if interval_ns < 0 or 0 < interval_ns < least_ns:
            least = "a millisecond" if least_ns == SAMPLE_INTERVAL_MIN_NS else f"a round trip, {least_ns} ns"
            raise RequestError(f"interval_ns is {interval_ns}; it must be 0 for none, or at least {least}")
        self._sample_interval_ns = interval_ns
        self._sample_paths = fields.boolean("paths", self._sample_paths)
        self._sample_ns = self._now_ns + interval_ns
        return {}

    def _get_denied(self, request: Mapping[str, Any]) -> dict[str, Any]:
        owner = fields_of(request).choice("owner", ("all", *OWNERS), "all")
        denied = self.transport.denied() if owner == "all" else self._denylist.of(owner)
        return {"denied": [{"host": host, "ev": ev} for host, ev in sorted(denied)]}

    def _set_denied(self, request: Mapping[str, Any]) -> dict[str, Any]:
        denied: set[tuple[str, int]] = set()
        for row in fields_of(request).items("denied"):
            host, ev = (row.get("host"), row.get("ev")) if isinstance(row, dict) else (None, None)
            destination = self.profile.destinations.get(host) if isinstance(host, str) else None
            if destination is None or type(ev) is not int or all(path.ev != ev for path in destination.paths):
                raise RequestError(
                    f"denied holds {row!r}; each row names a destination's host and an EV of a path to it"
                )
            denied.add((destination.host, ev))
        self._denylist.set(fields_of(request).choice("owner", BY_REQUEST, CONTROL), denied, self._now_ns)
        return {}

    def _start_prober(self, request: Mapping[str, Any]) -> dict[str, Any]:
        fields = fields_of(request)
        denylist = self._denylist if fields.boolean("deny", False) else None
        self._prober = PathProber(
            self.profile,
            interval_ns=fields.integer("interval_ns", default=PathProber.INTERVAL_NS),
            window=fields.integer("window", default=PathProber.WINDOW),
            denylist=denylist,
            now_ns=self._now_ns,
        )
        return {}

    def _stop_prober(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._prober = None
        return {}

    def _map(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._prober is None:
            raise RequestError("the prober is not running; start it with prober.start")
        return {"links": self._prober.link_map()}

    def _shutdown(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.on_shutdown()
        return {}


CONTAINERS = (list, dict, set, deque)
# What is code, or leads out of the host to what drives it.
PASSED_OVER = (
    type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.CodeType,
    types.FrameType, types.CellType, Enum,
)  # fmt: skip


def count_records(roots: Iterable[Any]) -> dict[str, int]:
    """Entries of all containers by `Class.container`, each container once: a leak that grows is found here.

    Containers whose class says that they are not `OF_ONE_HOST` are left out, with all that is in them alone.
    """
    counted: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: list[tuple[Any, str]] = [(root, type(root).__name__) for root in roots]
    kept = [root for root, _ in waiting]  # an id names an object only while the object lives
    while waiting:
        thing, owner = waiting.pop()
        if id(thing) in seen or isinstance(thing, PASSED_OVER) or not gc.is_tracked(thing):
            continue
        if not getattr(type(thing), "OF_ONE_HOST", True):
            continue
        seen.add(id(thing))
        kept.append(thing)
        if isinstance(thing, CONTAINERS):
            counted[f"{owner}.{type(thing).__name__}"] += len(thing)
        elif not isinstance(thing, tuple):
            owner = type(thing).__name__
        waiting += [(other, owner) for other in gc.get_referents(thing)]
    return dict(sorted(counted.items()))
