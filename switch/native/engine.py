"""`NativeEngine`: `switch.engine.Engine` over the C runtime, stepped with a given clock over ports in memory.

`NativeDevice` is its control plane alone, for a device that a fabric or a driver's thread runs."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple
from typing import TYPE_CHECKING

from common.garbage import not_collected
from p4c.entries import ActionCall, Entry, EntryAction, GroupRef, MemberRef
from switch import rules
from switch.engine import (
    ALWAYS_SAMPLED,
    FRAME_BYTES_MAX,
    PORT_DEFAULTS,
    PORT_SHARES,
    CounterValue,
    Digest,
    EngineError,
    MeterConfig,
    NoRoomError,
    PortConfig,
    PortCounters,
    Replica,
    Transmitted,
)
from switch.native import binding
from switch.native.binding import NO_ACTION, numbers, u64_array, zeros
from switch.native.program import LoadedProfile, LoadedProgram, LoadedTable
from switch.native.recorder import NativeRecorder
from switch.packet_log import PacketRecord

if TYPE_CHECKING:
    from p4c.model import Program

LOSS_UNIT = 1 << 53
COLLECT_BYTES = 1 << 16
CLOSED = "the engine is closed"
_COUNTERS = ctypes.c_uint64 * len(PortCounters._fields)
_ALWAYS = sum(1 << n for n, name in enumerate(PortCounters._fields) if name in ALWAYS_SAMPLED)
_RECORD = 16

_ERRORS = {
    binding.TABLE_FULL: "the table is full",
    binding.TABLE_DUPLICATE: "an entry with the same match (and priority) exists",
    binding.TABLE_NO_MEMORY: "out of memory",
    binding.TABLE_NO_SUCH: "no such entry, or the table has no action profile",
    binding.TABLE_WEIGHTS: "a weight is 0, or the weights do not fit 32 bits together",
}


@functools.cache
def _sampled_names(kept: int) -> tuple[str, ...]:
    """The names of the numbers behind a port's first word in `device_sample`."""
    return ("port", *(name for n, name in enumerate(PortCounters._fields) if kept >> n & 1))


class NativeDevice:
    """`switch.engine.EngineControl` of one device of the C runtime.

    Not thread-safe by itself: give a `guard` to take around each control call when another thread drives the device.
    """

    def __init__(
        self, *, seed: int = 0, pool: int | None = None, guard: AbstractContextManager[object] | None = None
    ) -> None:
        self._c = binding.runtime()
        self._own_pool = None if pool else self._c.pool_create()
        self._device: int | None = self._c.device_create(seed & binding.NEVER, pool or self._own_pool)
        if not self._device:
            raise NoRoomError("out of memory for a device")
        self._guard = guard if guard is not None else contextlib.nullcontext()
        self._program: LoadedProgram | None = None
        self._ports: dict[int, PortConfig] = {}
        self._groups: set[int] = set()
        self._sessions: set[int] = set()
        self._packets, self._bytes = zeros(1), zeros(1)  # of one counter, inside the guard

    @property
    def device(self) -> int:
        """The `struct device`, to be asked for inside the guard. Raises EngineError once the engine is closed."""
        if self._device is None:
            raise EngineError(CLOSED)
        return self._device

    def close(self) -> None:
        """Give the memory back. Every later call raises EngineError."""
        with self._guard:
            if self._device:
                self._c.device_destroy(self._device)
                self._device = None
            if self._own_pool:
                self._c.pool_destroy(self._own_pool)
                self._own_pool = None

    def __del__(self) -> None:
        if getattr(self, "_own_pool", None):
            self.close()

    # --- program ----------------------------------------------------------------------------------------------

    @not_collected()
    def load(self, program: Program) -> None:
        """Raises UnsupportedError for what the native engine does not have, EngineError for initial entries that cannot
        be: the engine then keeps its program. Raises EngineError when memory is out.
        """
        address = binding.load_program(program)
        loaded = LoadedProgram(program)
        with self._guard:
            self._forget()
            if self._c.device_load(self.device, address):
                raise NoRoomError("out of memory for the program's tables and externs")
            self._program = loaded
            for table in loaded.tables.values():
                self._set_default(table, table.initial_default)
                for entry in table.table.entries:
                    self._insert(table, entry)

    def reset(self) -> None:
        with self._guard:
            self._c.device_load(self.device, None)
            self._forget()

    def _forget(self) -> None:
        self._program = None
        self._groups.clear()
        self._sessions.clear()

    def set_running(self, running: bool, now_ns: int) -> None:
        with self._guard:
            self._c.device_advance(self.device, now_ns)
            self._c.device_set_running(self.device, running)

    # --- tables -----------------------------------------------------------------------------------------------

    def insert_entry(self, table: str, entry: Entry) -> int:
        with self._guard:
            loaded = self._loaded.table(table)
            rules.check_kind_of_action(loaded.table, entry.action)
            return self._insert(loaded, entry)

    def _insert(self, table: LoadedTable, entry: Entry) -> int:
        key, mask, prefix_len = table.match(entry.matches)
        kind, action, args = self._target(table, entry.action)
        handle: int = self._c.access_insert(
            self.device, table.index, key, mask, prefix_len, entry.priority, kind, action, args
        )
        self._check(handle, table.name)
        return handle

    def modify_entry(self, table: str, handle: int, action: EntryAction) -> None:
        with self._guard:
            loaded = self._loaded.table(table)
            rules.check_kind_of_action(loaded.table, action)
            kind, number, args = self._target(loaded, action)
            self._check(self._c.access_modify(self.device, loaded.index, handle, kind, number, args), table)

    def delete_entry(self, table: str, handle: int) -> None:
        with self._guard:
            loaded = self._loaded.table(table)
            self._check(self._c.access_delete(self.device, loaded.index, handle), table)

    def set_default_action(self, table: str, action: ActionCall | None) -> None:
        with self._guard:
            loaded = self._loaded.table(table)
            rules.check_default_changeable(loaded.table, action)
            self._set_default(loaded, action if action is not None else loaded.initial_default)

    def _set_default(self, table: LoadedTable, action: ActionCall | None) -> None:
        number, args = table.action(action) if action is not None else (NO_ACTION, table.no_args)
        self._check(self._c.access_set_default(self.device, table.index, number, args), table.name)

    @staticmethod
    def _target(table: LoadedTable, action: EntryAction) -> tuple[int, int, ctypes.Array[ctypes.c_uint64]]:
        match action:
            case MemberRef(member_id):
                return binding.TARGET_MEMBER, member_id, table.no_args
            case GroupRef(group_id):
                return binding.TARGET_GROUP, group_id, table.no_args
        number, args = table.action(action)
        return binding.TARGET_ACTION, number, args

    @staticmethod
    def _check(code: int, what: str) -> None:
        if code < 0:
            kind = NoRoomError if code in (binding.TABLE_FULL, binding.TABLE_NO_MEMORY) else EngineError
            raise kind(f"{what}: {_ERRORS[code]}")

    @property
    def _loaded(self) -> LoadedProgram:
        if self._program is None:
            raise EngineError("no program is loaded")
        return self._program

    # --- action profiles --------------------------------------------------------------------------------------

    def set_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        with self._guard:
            loaded = self._loaded.profile(profile)
            number, args = loaded.action(action)
            self._check(self._c.access_set_member(self.device, loaded.index, member_id, number, args), profile)
            loaded.members.add(member_id)

    def delete_member(self, profile: str, member_id: int) -> None:
        with self._guard:
            loaded = self._loaded.profile(profile)
            rules.check_known(loaded.members, f"member of action profile {profile}", member_id)
            self._check(self._c.access_set_member(self.device, loaded.index, member_id, NO_ACTION, None), profile)
            loaded.members.discard(member_id)

    def set_group(self, profile: str, group_id: int, members: Sequence[tuple[int, int]]) -> None:
        with self._guard:
            loaded = self._loaded.profile(profile)
            rules.check_group(loaded.profile, loaded.members, members)
            self._set_group(loaded, group_id, members)
            loaded.groups.add(group_id)

    def delete_group(self, profile: str, group_id: int) -> None:
        with self._guard:
            loaded = self._loaded.profile(profile)
            rules.check_known(loaded.groups, f"group of action profile {profile}", group_id)
            self._set_group(loaded, group_id, ())
            loaded.groups.discard(group_id)

    def _set_group(self, profile: LoadedProfile, group_id: int, members: Sequence[tuple[int, int]]) -> None:
        ids, weights = numbers([m for m, _ in members]), numbers([w for _, w in members])
        code = self._c.access_set_group(self.device, profile.index, group_id, ids, weights, len(members))
        self._check(code, profile.name)

    # --- externs ----------------------------------------------------------------------------------------------

    def read_counter(self, name: str, index: int) -> CounterValue:
        return self._array_counter(name, index, None)

    def read_packet_counts(self, name: str, first: int, count: int) -> list[int]:
        packets = zeros(count)
        with self._guard:
            counter = self._loaded.counter(name)
            rules.check_cells("counter", name, counter.size, first, count)
            self._c.access_packet_counts(self.device, counter.index, first, count, packets)
        counts: list[int] = packets[:count]
        return counts

    def write_counter(self, name: str, index: int, value: CounterValue) -> None:
        self._array_counter(name, index, value)

    def _array_counter(self, name: str, index: int, value: CounterValue | None) -> CounterValue:
        counter = self._loaded.counter(name)
        rules.check_cells("counter", name, counter.size, index)
        return self._counter(False, counter.index, index, value, name)

    def read_direct_counter(self, table: str, handle: int) -> CounterValue:
        return self._counter(True, self._direct(table, "counter"), handle, None, table)

    def write_direct_counter(self, table: str, handle: int, value: CounterValue) -> None:
        self._counter(True, self._direct(table, "counter"), handle, value, table)

    def _direct(self, table: str, what: str) -> int:
        loaded = self._loaded.table(table)
        if getattr(loaded.table, what) is None:
            raise EngineError(f"{table}: it has no direct {what}")
        return loaded.index

    def _counter(self, direct: bool, number: int, index: int, value: CounterValue | None, name: str) -> CounterValue:
        packets, count = self._packets, self._bytes
        with self._guard:
            if value is not None:
                packets[0], count[0] = value.packets, value.bytes
            if self._c.access_counter(self.device, direct, number, index, value is not None, packets, count):
                raise EngineError(f"{name}: no counter {index}")
            return CounterValue(packets[0], count[0])

    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None:
        self._meter(False, self._loaded.meter(name), index, config, name)

    def set_direct_meter(self, table: str, handle: int, config: MeterConfig | None) -> None:
        self._meter(True, self._direct(table, "meter"), handle, config, table)

    def _meter(self, direct: bool, number: int, index: int, config: MeterConfig | None, name: str) -> None:
        rules.check_meter(config)
        rates = u64_array(list(astuple(config))) if config is not None else None
        with self._guard:
            if self._c.access_meter(self.device, direct, number, index, rates):
                raise EngineError(f"{name}: no meter {index}")

    def read_register(self, name: str, index: int) -> int:
        register = self._loaded.register(name)
        cell = zeros(self._loaded.words(register.width_bits))
        with self._guard:
            if self._c.access_register(self.device, register.index, index, False, cell):
                raise EngineError(f"{name}: no cell {index}; it has {register.size}")
        return sum(word << (64 * place) for place, word in enumerate(cell))

    def write_register(self, name: str, index: int, value: int) -> None:
        register = self._loaded.register(name)
        rules.check_register(register, value)
        cell = u64_array(self._loaded.split(value, register.width_bits))
        with self._guard:
            if self._c.access_register(self.device, register.index, index, True, cell):
                raise EngineError(f"{name}: no cell {index}; it has {register.size}")

    def enable_digest(self, name: str, enabled: bool) -> None:
        with self._guard:
            lists = self._loaded.program.learn_lists
            rules.find({learned.name: learned for learned in lists}, name, "digest")
            for place, learned in enumerate(lists, 1):
                if learned.name == name:
                    self._c.device_enable_digest(self.device, place, enabled)

    def read_last_hit_ns(self, table: str, handle: int) -> int:
        with self._guard:
            loaded = self._loaded.table(table)
            rules.check_times_out(loaded.table)
            last_ns: int = self._c.access_last_hit(self.device, loaded.index, handle)
        if last_ns < 0:
            raise EngineError(f"{table}: {_ERRORS[binding.TABLE_NO_SUCH]}")
        return last_ns

    # --- parser -----------------------------------------------------------------------------------------------

    def set_value_set(self, name: str, members: Sequence[tuple[int, ...]]) -> None:
        with self._guard:
            program = self._loaded.program
            number = rules.check_value_set(program, name, members)
            state = next((s for s in program.parser.states for t in s.transitions if t.value_set == name), None)
            sizes = [(part.width_bits + 63) // 64 for part in state.key] if state is not None else []
            parts = [
                v >> 64 * w & binding.NEVER for m in members for v, s in zip(m, sizes, strict=False) for w in range(s)
            ]
            if self._c.device_set_value_set(self.device, number, u64_array(parts), len(members), sum(sizes)):
                raise NoRoomError("out of memory for value sets")

    # --- replication ------------------------------------------------------------------------------------------

    def set_multicast_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        rules.check_multicast_group(group_id)
        self._set_replicas(self._groups, group_id, replicas)

    def delete_multicast_group(self, group_id: int) -> None:
        self._delete_replicas(self._groups, group_id, "multicast group")

    def set_clone_session(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int, class_of_service: int = 0
    ) -> None:
        rules.check_clone_session(session_id, truncate_bytes, class_of_service)
        self._set_replicas(self._sessions, session_id, replicas, truncate_bytes, class_of_service)

    def delete_clone_session(self, session_id: int) -> None:
        self._delete_replicas(self._sessions, session_id, "clone session")

    def _set_replicas(
        self, known: set[int], number: int, replicas: Sequence[Replica], truncate_bytes: int = 0, priority: int = 0
    ) -> None:
        ports, rids = numbers([r.port for r in replicas]), numbers([r.instance for r in replicas])
        sessions = known is self._sessions
        with self._guard:
            made = (self.device, sessions, number, ports, rids, len(replicas), truncate_bytes, priority)
            if self._c.device_set_replicas(*made):
                raise NoRoomError("out of memory for replicas")
            known.add(number)

    def _delete_replicas(self, known: set[int], number: int, what: str) -> None:
        with self._guard:
            rules.check_known(known, what, number)
            self._c.device_delete_replicas(self.device, known is self._sessions, number)
            known.discard(number)

    # --- ports ------------------------------------------------------------------------------------------------

    def configure_port(self, port: int, config: PortConfig, now_ns: int) -> None:
        rules.check_port(port, config)
        values = []
        for name in PORT_DEFAULTS:
            value = getattr(config, name) * (LOSS_UNIT if name in PORT_SHARES else 1)
            values.append(int(value) & binding.NEVER)
        for queue in config.queues:
            values += queue.limits
        with self._guard:
            if self._c.device_configure_port(self.device, port, u64_array(values), now_ns):
                raise NoRoomError(f"port {port}: out of memory")
            self._ports[port] = config

    def port_counters(self, port: int, now_ns: int) -> PortCounters:
        values = _COUNTERS()
        with self._guard:
            self._collect_drops(port)
            if self._c.device_port_counters(self.device, port, now_ns, values):
                raise self._no_port(port)
        return PortCounters._make(values[:])

    def sample(self, ports: Sequence[int], now_ns: int) -> list[dict[str, int]]:
        values = zeros(len(ports) * (2 + len(PortCounters._fields)))
        with self._guard:
            for port in ports:
                self._collect_drops(port)
            filled = (numbers(ports), len(ports), now_ns, _ALWAYS, values)
            if (words := self._c.device_sample(self.device, *filled)) < 0:
                raise self._no_port(next(port for port in ports if port not in self._ports))
        told, rows, at = values[:words], [], 0
        for _ in ports:
            names = _sampled_names(told[at])
            rows.append(dict(zip(names, told[at + 1 : at + 1 + len(names)], strict=True)))
            at += 1 + len(names)
        return rows

    def next_event_ns(self) -> int | None:
        with self._guard:
            t_ns: int = self._c.device_next_event_ns(self.device)
        return None if t_ns == binding.NEVER else t_ns

    def _collect_drops(self, port: int) -> None:
        """A driver fetches what its socket lost here; ports in memory lose nothing."""

    def _arrive(self, port: int, frame: bytes, now_ns: int) -> None:
        if port not in self._ports:
            raise self._no_port(port)
        rules.check_frame(frame)
        self._c.device_receive(self.device, port, frame, len(frame), now_ns)

    def _no_port(self, port: int) -> EngineError:
        return EngineError(f"no port {port}; configured are {sorted(self._ports)}")


class NativeEngine(NativeDevice):
    """A device that its caller steps."""

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self._buffer: ctypes.Array[ctypes.c_char] | None = None
        self._recorder = NativeRecorder()

    def close(self) -> None:
        super().close()
        self._recorder.close()

    # --- time and packets -------------------------------------------------------------------------------------

    def receive(self, port: int, frame: bytes, now_ns: int) -> None:
        self._arrive(port, frame, now_ns)

    def advance(self, now_ns: int) -> list[Transmitted]:
        left: list[Transmitted] = []
        if self._buffer is None:
            self._buffer = ctypes.create_string_buffer(COLLECT_BYTES)
        while used := self._c.access_collect(self.device, now_ns, self._buffer, COLLECT_BYTES):
            data, at = self._buffer.raw[:used], 0
            while at < used:
                t_ns = int.from_bytes(data[at : at + 8], "little")
                port = int.from_bytes(data[at + 8 : at + 12], "little")
                length = int.from_bytes(data[at + 12 : at + 16], "little")
                left.append(Transmitted(t_ns, port, data[at + _RECORD : at + _RECORD + length]))
                at += _RECORD + (length + 7) // 8 * 8
        return left

    def take_digests(self) -> list[Digest]:
        taken: list[Digest] = []
        data, size = ctypes.create_string_buffer(FRAME_BYTES_MAX), numbers([0])
        with self._guard:
            while number := self._c.access_digest(self.device, data, size):
                taken.append(Digest(number, data.raw[: size[0]]))
        return taken

    # --- packet log -------------------------------------------------------------------------------------------

    def record_packets(self, start_ns: int, stop_ns: int) -> None:
        with self._guard:
            self._recorder.begin(start_ns, stop_ns, lambda address: self._c.device_record(self.device, address, 0))

    def take_records(self) -> list[PacketRecord]:
        with self._guard:
            return self._recorder.take()
