"""`switch.engine.Engine` in Python: slow, traced; the native engine is compared with this one."""

import heapq
from collections import deque
from collections.abc import Mapping, Sequence, Sized
from typing import TypeVar

from common.garbage import not_collected
from p4c.entries import ActionCall, Entry, EntryAction
from p4c.model import Program
from switch import rules
from switch.engine import (
    ALWAYS_SAMPLED,
    DIGESTS_WAITING_MAX,
    PRIORITIES,
    WAITING_PACKETS_MAX,
    CounterValue,
    Digest,
    EngineError,
    MeterConfig,
    PortConfig,
    PortCounters,
    Replica,
    Transmitted,
)
from switch.packet_log import NO_PORT, Fate, NodeKind, PacketRecord, Recorder
from switch.reference.machine import Machine, Outlets
from switch.reference.packet import Packet
from switch.reference.pfc import is_mac_control
from switch.reference.ports import ReferencePort
from switch.reference.rng import SplitMix64
from switch.reference.tables import InstalledEntry
from switch.reference.trace import Trace

Array = TypeVar("Array", bound=Sized)


class ReferenceEngine:
    """One switch. `seed` starts the device's random numbers; `trace`, if given, takes down every step."""

    def __init__(self, *, seed: int = 0, trace: Trace | None = None) -> None:
        self.trace = trace
        self._seed = seed
        self._rng = SplitMix64(seed)
        self._machine: Machine | None = None
        self._running = True
        self._ports: dict[int, ReferencePort] = {}
        self._now_ns = 0
        self._again: deque[Packet] = deque()
        self._leaving: list[tuple[int, int, Transmitted]] = []  # heap: time, order of dequeue, frame
        self._sent = 0
        self._digests: list[Digest] = []
        self._packets = 0
        self._recorder: Recorder | None = None

    # --- program ---

    @property
    def program(self) -> Program | None:
        return None if self._machine is None else self._machine.program

    @not_collected()
    def load(self, program: Program) -> None:
        """Start the program with its initial entries; the state of an earlier one and all queued packets are gone."""
        outlets = Outlets(self._enqueue, self._again.append, self._spent, self._new_id, self._dropped, self._digest)
        machine = Machine(program, self._rng, self.trace, outlets)  # may refuse the program: before anything is dropped
        self._wipe()
        self._digests.clear()
        self._machine = machine

    def reset(self) -> None:
        self._wipe()
        self._digests.clear()
        self._machine = None
        self._rng.state = SplitMix64(self._seed).state

    def set_running(self, running: bool, now_ns: int) -> None:
        """Stopped, the switch drops what it has queued and all it receives; tables and externs stay."""
        self._run(now_ns)
        self._running = running
        if not running:
            self._wipe()

    def _wipe(self) -> None:
        for _, port in sorted(self._ports.items()):
            self._note_waiting(port, Fate.WIPED)
            port.counts.drop_wiped += self._flush(port)
        for port in self._ports.values():
            port.forget_pauses(self._now_ns)

    @property
    def machine(self) -> Machine:
        if self._machine is None:
            raise EngineError("no program is loaded")
        return self._machine

    # --- tables ---

    def insert_entry(self, table: str, entry: Entry) -> int:
        return self.machine.table(table).insert(entry)

    def modify_entry(self, table: str, handle: int, action: EntryAction) -> None:
        self.machine.table(table).modify(handle, action)

    def delete_entry(self, table: str, handle: int) -> None:
        self.machine.table(table).delete(handle)

    def set_default_action(self, table: str, action: ActionCall | None) -> None:
        self.machine.table(table).set_default(action)

    # --- action profiles ---

    def set_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        state = self.machine.profiles.state(profile)
        actions = rules.profile_actions(self.machine.program.tables, state.profile)
        rules.checked_call(f"action profile {profile}", actions, action)
        state.members[member_id] = action

    def delete_member(self, profile: str, member_id: int) -> None:
        self.machine.profiles.delete_member(profile, member_id)

    def set_group(self, profile: str, group_id: int, members: Sequence[tuple[int, int]]) -> None:
        self.machine.profiles.set_group(profile, group_id, members)

    def delete_group(self, profile: str, group_id: int) -> None:
        self.machine.profiles.delete_group(profile, group_id)

    # --- externs ---

    def read_counter(self, name: str, index: int) -> CounterValue:
        return _array("counter", self.machine.runtime.externs.counters, name, index).read(index)

    def read_packet_counts(self, name: str, first: int, count: int) -> list[int]:
        cells = rules.find(self.machine.runtime.externs.counters, name, "counter")
        rules.check_cells("counter", name, len(cells), first, count)
        return [cells.read(index).packets for index in range(first, first + count)]

    def write_counter(self, name: str, index: int, value: CounterValue) -> None:
        _array("counter", self.machine.runtime.externs.counters, name, index).write(index, value)

    def _direct(self, table: str, handle: int, what: str) -> InstalledEntry:
        state = self.machine.table(table)
        if getattr(state.table, what) is None:
            raise EngineError(f"table {table} has no direct {what}")
        return state.entry(handle)

    def read_direct_counter(self, table: str, handle: int) -> CounterValue:
        return self._direct(table, handle, "counter").counter.read()

    def write_direct_counter(self, table: str, handle: int, value: CounterValue) -> None:
        self._direct(table, handle, "counter").counter.write(value)

    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None:
        _array("meter", self.machine.runtime.externs.meters, name, index).configure(index, config, self._now_ns)

    def set_direct_meter(self, table: str, handle: int, config: MeterConfig | None) -> None:
        self._direct(table, handle, "meter").meter.configure(config, self._now_ns)

    def read_register(self, name: str, index: int) -> int:
        return _array("register", self.machine.runtime.externs.registers, name, index)[index]

    def write_register(self, name: str, index: int, value: int) -> None:
        cells = _array("register", self.machine.runtime.externs.registers, name, index)
        rules.check_register(next(r for r in self.machine.program.registers if r.name == name), value)
        cells[index] = value

    def enable_digest(self, name: str, enabled: bool) -> None:
        rules.find({learned.name: learned for learned in self.machine.program.learn_lists}, name, "digest")
        if enabled:
            self.machine.digests.add(name)
        else:
            self.machine.digests.discard(name)

    def read_last_hit_ns(self, table: str, handle: int) -> int:
        rules.check_times_out(self.machine.table(table).table)
        return self.machine.table(table).entry(handle).hit_ns

    # --- replication ---

    def set_value_set(self, name: str, members: Sequence[tuple[int, ...]]) -> None:
        rules.check_value_set(self.machine.program, name, members)
        self.machine.parser.value_sets[name] = set(members)

    def set_multicast_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        self.machine.replication.set_group(group_id, replicas)

    def delete_multicast_group(self, group_id: int) -> None:
        self.machine.replication.delete_group(group_id)

    def set_clone_session(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int, class_of_service: int = 0
    ) -> None:
        self.machine.replication.set_session(session_id, replicas, truncate_bytes, class_of_service)

    def delete_clone_session(self, session_id: int) -> None:
        self.machine.replication.delete_session(session_id)

    # --- ports ---

    def _port(self, number: int) -> ReferencePort:
        if number not in self._ports:
            self._ports[number] = ReferencePort(number)
        return self._ports[number]

    def configure_port(self, port: int, config: PortConfig, now_ns: int) -> None:
        self._run(now_ns)
        rules.check_port(port, config)
        if not config.up:
            self._note_waiting(self._port(port), Fate.PORT_DOWN)
            self._port(port).counts.drop_port_down += self._flush(self._port(port))
        self._port(port).configure(config, self._now_ns)

    def port_counters(self, port: int, now_ns: int) -> PortCounters:
        self._run(now_ns)
        self._port(port).settle_pauses(self._now_ns)
        return self._port(port).counters()

    def sample(self, ports: Sequence[int], now_ns: int) -> list[dict[str, int]]:
        counted = ({"port": port, **self.port_counters(port, now_ns)._asdict()} for port in ports)
        return [{name: value for name, value in row.items() if value or name in ALWAYS_SAMPLED} for row in counted]

    # --- time and packets ---

    def receive(self, port: int, frame: bytes, now_ns: int) -> None:
        rules.check_frame(frame)
        self._run(now_ns)
        entry = self._ports.get(port)
        if entry is None or entry.config is None:
            raise EngineError(f"port {port} is not configured")
        if not entry.config.up:
            entry.counts.drop_port_down += 1
            self._note_refused(port, frame, Fate.PORT_DOWN)
        elif self._machine is None or not self._running:
            entry.counts.drop_no_program += 1
            self._note_refused(port, frame, Fate.NO_PROGRAM)
        elif entry.config.pfc_classes and is_mac_control(frame):
            self._note_refused(port, frame, Fate.RECEIVED)
            entry.obey(frame, self._now_ns)
            self._run(now_ns)
        else:
            entry.counts.rx_packets += 1
            entry.counts.rx_bytes += len(frame)
            self._machine.runtime.now_ns = self._now_ns
            self._machine.receive(bytes(frame), port)
            self._run(now_ns)

    def advance(self, now_ns: int) -> list[Transmitted]:
        self._run(now_ns)
        out = []
        while self._leaving and self._leaving[0][0] <= self._now_ns:
            out.append(heapq.heappop(self._leaving)[2])
        return out

    def take_digests(self) -> list[Digest]:
        taken, self._digests = self._digests, []
        return taken

    def next_event_ns(self) -> int | None:
        times = [t for p in self._ports.values() if (t := p.service_ns()) is not None]
        if self._leaving:
            times.append(self._leaving[0][0])
        return min(times) if times else None

    # --- inside ---

    def _digest(self, digest: Digest) -> None:
        if len(self._digests) < DIGESTS_WAITING_MAX:
            self._digests.append(digest)

    def _run(self, until_ns: int) -> None:
        """Everything that happens by `until_ns`: packets to process again first, then ports in order of time."""
        until_ns = max(until_ns, self._now_ns)
        while self._machine is not None:
            while self._again:
                self.machine.runtime.now_ns = self._now_ns
                self.machine.ingress(self._again.popleft())
            ready = [(t, n) for n, p in self._ports.items() if (t := p.service_ns()) is not None]
            if not ready or min(ready)[0] > until_ns:
                break
            t_ns, number = min(ready)
            self._now_ns = max(self._now_ns, t_ns)
            self._serve(self._ports[number], t_ns)
        self._now_ns = until_ns

    def _serve(self, port: ReferencePort, now_ns: int) -> None:
        if port.pfc.due_ns is not None and port.pfc.due_ns <= now_ns:
            self._speak(port, now_ns)
            return
        machine = self.machine
        machine.runtime.now_ns = now_ns
        packet, priority = port.pop(now_ns)
        if packet.charged:
            self._ports[packet.ingress_port].release(packet, now_ns)
        depth = len(port.queues[priority].packets)
        machine.runtime.record(packet, "dequeue", port=port.number, priority=priority, depth=depth)
        frame = machine.egress(packet, port.number, priority, depth)
        if frame is None:
            port.free_ns = now_ns
            return
        arrives_ns, arrives = port.transmit(len(frame), now_ns)
        self._note(packet, Fate.SENT if arrives else Fate.LOST, port.number, now_ns, frame, arrives_ns)
        if not arrives:
            machine.runtime.record(packet, "drop", reason=f"lost on the wire of port {port.number} (seeded loss)")
            return
        machine.runtime.record(packet, "transmit", port=port.number, bytes=len(frame), arrives_ns=arrives_ns)
        self._put_on_wire(port, frame, arrives_ns)

    def _put_on_wire(self, port: ReferencePort, frame: bytes, arrives_ns: int) -> None:
        heapq.heappush(self._leaving, (arrives_ns, self._sent, Transmitted(arrives_ns, port.number, frame)))
        self._sent += 1

    def _speak(self, port: ReferencePort, now_ns: int) -> None:
        """Send the PFC frame that is due at a port."""
        frame = port.speak(now_ns)
        arrives_ns, arrives = port.occupy(len(frame), now_ns)
        if self._recorder is not None:
            numbers = (now_ns, arrives_ns, now_ns, 0, 0, port.number, NO_PORT, len(frame), len(frame))
            fate = Fate.SENT if arrives else Fate.LOST
            self._recorder.note(PacketRecord(*numbers, NodeKind.SWITCH, fate, PRIORITIES - 1, frame))
        if arrives:
            self._put_on_wire(port, frame, arrives_ns)

    def _flush(self, port: ReferencePort) -> int:
        """Forget what waits at a port; how many packets that was."""
        for queue in port.queues:
            for packet in queue.packets:
                if packet.charged:
                    self._ports[packet.ingress_port].release(packet, self._now_ns)
        return port.flush()

    def _enqueue(self, packet: Packet, number: int) -> None:
        machine = self.machine
        port = self._port(number)
        priority = machine.get(packet, "priority")
        packet.queue_bytes = min(packet.ingress_length, packet.truncate)
        reason = port.refusal(priority, packet.queue_bytes)
        if reason is None and sum(p.waiting for p in self._ports.values()) >= WAITING_PACKETS_MAX:
            port.counts.drop_queue_full += 1
            reason = f"{WAITING_PACKETS_MAX} packets wait in the switch, the most it holds"
        source = self._port(packet.ingress_port)
        charged = reason is None and source.lossless(priority)
        if charged and not source.admits(priority, packet.queue_bytes):
            reason = f"port {source.number} holds xoff and headroom of priority {priority}"
        if reason is not None:
            if port.config is None:
                self._port(packet.ingress_port).counts.drop_no_port += 1
            machine.runtime.record(packet, "drop", reason=reason)
            self._note_unqueued(packet, port, priority)
            return
        depth = len(port.queues[priority].packets)
        packet.queue_depth, packet.priority = depth, priority
        packet.enqueued_ns = machine.runtime.now_ns
        machine.set(packet, "enq_timestamp", packet.enqueued_ns // 1000)
        machine.set(packet, "enq_qdepth", depth)
        machine.runtime.record(packet, "enqueue", port=number, priority=priority, depth=depth)
        port.push(packet, priority)
        if charged:
            source.charge(packet, packet.enqueued_ns)

    def _spent(self, packet: Packet, reason: str) -> None:
        self._port(packet.ingress_port).counts.drop_passes += 1
        self.machine.runtime.record(packet, "drop", reason=reason)

    # --- packet log ---

    def record_packets(self, start_ns: int, stop_ns: int) -> None:
        self._recorder = Recorder(start_ns, stop_ns)

    def take_records(self) -> list[PacketRecord]:
        return [] if self._recorder is None else self._recorder.take()

    def _note(
        self, packet: Packet, fate: Fate, port: int, t_ns: int, frame: bytes | None = None, arrives_ns: int = 0
    ) -> None:
        """How a packet left the queue of a port; `frame` is what it was then, if it was deparsed."""
        if self._recorder is None:
            return
        frame = packet.data if frame is None else frame
        numbers = (t_ns, arrives_ns, packet.enqueued_ns, 0, packet.queue_depth, port, packet.ingress_port)
        lengths = (len(frame), packet.ingress_length)
        self._recorder.note(PacketRecord(*numbers, *lengths, NodeKind.SWITCH, fate, packet.priority & 0xFF, frame))

    def _note_waiting(self, port: ReferencePort, fate: Fate) -> None:
        for queue in port.queues:
            for packet in queue.packets:
                self._note(packet, fate, port.number, self._now_ns)

    def _note_unqueued(self, packet: Packet, port: ReferencePort, priority: int) -> None:
        now_ns = self.machine.runtime.now_ns
        fate = Fate.QUEUE_FULL
        if port.config is None:
            fate = Fate.NO_PORT
        elif not port.config.up:
            fate = Fate.PORT_DOWN
        packet.queue_depth = len(port.queues[priority % PRIORITIES].packets)
        packet.enqueued_ns, packet.priority = now_ns, priority
        self._note(packet, fate, port.number, now_ns)

    def _note_refused(self, port: int, frame: bytes, fate: Fate) -> None:
        if self._recorder is not None:
            numbers = (self._now_ns, 0, self._now_ns, 0, 0, NO_PORT, port, len(frame), len(frame))
            self._recorder.note(PacketRecord(*numbers, NodeKind.SWITCH, fate, 0, frame))

    def _dropped(self, packet: Packet, port: int | None) -> None:
        now_ns = self.machine.runtime.now_ns
        if port is None:
            packet.enqueued_ns, packet.queue_depth, packet.priority = now_ns, 0, 0
        self._note(packet, Fate.DROPPED, NO_PORT if port is None else port, now_ns)

    def _new_id(self) -> int:
        self._packets += 1
        return self._packets


def _array(kind: str, arrays: Mapping[str, Array], name: str, index: int) -> Array:
    """The array of that name, which has such a cell."""
    cells = rules.find(arrays, name, kind)
    rules.check_cells(kind, name, len(cells), index)
    return cells
