"""`NativeEngine`: `switch.engine.Engine` over the C runtime, stepped with a given clock over ports in memory."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, fields
from typing import TYPE_CHECKING

from switch.engine import (
    FRAME_BYTES_MAX,
    ActionCall,
    CounterValue,
    EngineError,
    Entry,
    EntryAction,
    GroupRef,
    MemberRef,
    MeterConfig,
    PortConfig,
    PortCounters,
    Replica,
    Transmitted,
)
from switch.native import binding
from switch.native.binding import NO_ACTION, numbers, words
from switch.native.program import LoadedProgram, LoadedTable

if TYPE_CHECKING:
    from switch.model import Program

LOSS_UNIT = 1 << 53
COLLECT_BYTES = 1 << 16
_COUNTER_FIELDS = len(fields(PortCounters))
_RECORD = 16

_ERRORS = {
    binding.TABLE_FULL: "the table is full",
    binding.TABLE_DUPLICATE: "an entry with the same match (and priority) exists",
    binding.TABLE_NO_MEMORY: "out of memory",
    binding.TABLE_NO_SUCH: "no such entry, or the table has no action profile",
}


class NativeEngine:
    """One device of the C runtime.

    Not thread-safe by itself: give a `guard` to take around each control call when another thread drives the device.
    """

    def __init__(
        self, *, seed: int = 0, pool: int | None = None, guard: AbstractContextManager[object] | None = None
    ) -> None:
        self._c = binding.runtime()
        self._own_pool = None if pool else self._c.pool_create()
        self.device: int | None = self._c.device_create(seed & binding.NEVER, pool or self._own_pool)
        if not self.device:
            raise EngineError("out of memory for a device")
        self._guard = guard if guard is not None else contextlib.nullcontext()
        self._program: LoadedProgram | None = None
        self._ports: dict[int, PortConfig] = {}
        self._buffer: ctypes.Array[ctypes.c_char] | None = None

    def close(self) -> None:
        """Give the memory back. The engine cannot be used afterwards."""
        with self._guard:
            if self.device:
                self._c.device_destroy(self.device)
                self.device = None
            if self._own_pool:
                self._c.pool_destroy(self._own_pool)
                self._own_pool = None

    def __del__(self) -> None:
        if getattr(self, "_own_pool", None):
            self.close()

    # --- program ----------------------------------------------------------------------------------------------

    def load(self, program: Program) -> None:
        """Raises EngineError when memory is out, UnsupportedError naming what the native engine does not have."""
        address = binding.load_program(program)
        loaded = LoadedProgram(program)
        with self._guard:
            if self._c.device_load(self.device, address):
                self._program = None
                raise EngineError("out of memory for the program's tables and externs")
            self._program = loaded
            for table in loaded.tables.values():
                self._set_default(table, table.initial_default)
                for entry in table.table.entries:
                    self._insert(table, entry)

    def reset(self) -> None:
        with self._guard:
            self._c.device_load(self.device, None)
            self._program = None

    def set_running(self, running: bool, now_ns: int) -> None:
        with self._guard:
            self._c.device_advance(self.device, now_ns)
            self._c.device_set_running(self.device, running)

    # --- tables -----------------------------------------------------------------------------------------------

    def insert_entry(self, table: str, entry: Entry) -> int:
        with self._guard:
            return self._insert(self._loaded.table(table), entry)

    def _insert(self, table: LoadedTable, entry: Entry) -> int:
        key, mask, prefix_len = table.match(entry)
        kind, action, args = self._target(table, entry.action)
        handle: int = self._c.access_insert(
            self.device, table.index, key, mask, prefix_len, entry.priority, kind, action, args
        )
        self._check(handle, table.name)
        return handle

    def modify_entry(self, table: str, handle: int, action: EntryAction) -> None:
        with self._guard:
            loaded = self._loaded.table(table)
            kind, number, args = self._target(loaded, action)
            self._check(self._c.access_modify(self.device, loaded.index, handle, kind, number, args), table)

    def delete_entry(self, table: str, handle: int) -> None:
        with self._guard:
            loaded = self._loaded.table(table)
            self._check(self._c.access_delete(self.device, loaded.index, handle), table)

    def set_default_action(self, table: str, action: ActionCall | None) -> None:
        with self._guard:
            loaded = self._loaded.table(table)
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
            raise EngineError(f"{what}: {_ERRORS[code]}")

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

    def delete_member(self, profile: str, member_id: int) -> None:
        with self._guard:
            index = self._loaded.profile(profile).index
            self._check(self._c.access_set_member(self.device, index, member_id, NO_ACTION, None), profile)

    def set_group(self, profile: str, group_id: int, members: Sequence[tuple[int, int]]) -> None:
        with self._guard:
            index = self._loaded.profile(profile).index
            ids, weights = numbers([m for m, _ in members]), numbers([w for _, w in members])
            self._check(self._c.access_set_group(self.device, index, group_id, ids, weights, len(members)), profile)

    def delete_group(self, profile: str, group_id: int) -> None:
        self.set_group(profile, group_id, ())

    # --- externs ----------------------------------------------------------------------------------------------

    def read_counter(self, name: str, index: int) -> CounterValue:
        return self._counter(False, self._loaded.counter(name), index, None, name)

    def write_counter(self, name: str, index: int, value: CounterValue) -> None:
        self._counter(False, self._loaded.counter(name), index, value, name)

    def read_direct_counter(self, table: str, handle: int) -> CounterValue:
        return self._counter(True, self._loaded.table(table).index, handle, None, table)

    def write_direct_counter(self, table: str, handle: int, value: CounterValue) -> None:
        self._counter(True, self._loaded.table(table).index, handle, value, table)

    def _counter(self, direct: bool, number: int, index: int, value: CounterValue | None, name: str) -> CounterValue:
        packets, count = words([value.packets if value else 0]), words([value.bytes if value else 0])
        with self._guard:
            if self._c.access_counter(self.device, direct, number, index, value is not None, packets, count):
                raise EngineError(f"{name}: no counter {index}")
        return CounterValue(packets[0], count[0])

    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None:
        self._meter(False, self._loaded.meter(name), index, config, name)

    def set_direct_meter(self, table: str, handle: int, config: MeterConfig | None) -> None:
        self._meter(True, self._loaded.table(table).index, handle, config, table)

    def _meter(self, direct: bool, number: int, index: int, config: MeterConfig | None, name: str) -> None:
        if config is not None and config.cir > config.pir:
            raise EngineError(f"{name}: the committed rate {config.cir} is above the peak rate {config.pir}")
        rates = words(list(astuple(config))) if config is not None else None
        with self._guard:
            if self._c.access_meter(self.device, direct, number, index, rates):
                raise EngineError(f"{name}: no meter {index}")

    def read_register(self, name: str, index: int) -> int:
        register = self._loaded.register(name)
        cell = words([0] * self._loaded.words(register.width_bits))
        with self._guard:
            if self._c.access_register(self.device, register.index, index, False, cell):
                raise EngineError(f"{name}: no cell {index}; it has {register.size}")
        return sum(word << (64 * place) for place, word in enumerate(cell))

    def write_register(self, name: str, index: int, value: int) -> None:
        register = self._loaded.register(name)
        cell = words(self._loaded.split(value & ((1 << register.width_bits) - 1), register.width_bits))
        with self._guard:
            if self._c.access_register(self.device, register.index, index, True, cell):
                raise EngineError(f"{name}: no cell {index}; it has {register.size}")

    # --- replication ------------------------------------------------------------------------------------------

    def set_multicast_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        self._replicas(False, group_id, replicas, 0)

    def delete_multicast_group(self, group_id: int) -> None:
        with self._guard:
            self._c.device_delete_replicas(self.device, False, group_id)

    def set_clone_session(self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int) -> None:
        self._replicas(True, session_id, replicas, truncate_bytes)

    def delete_clone_session(self, session_id: int) -> None:
        with self._guard:
            self._c.device_delete_replicas(self.device, True, session_id)

    def _replicas(self, session: bool, number: int, replicas: Sequence[Replica], truncate_bytes: int) -> None:
        ports, rids = numbers([r.port for r in replicas]), numbers([r.instance for r in replicas])
        with self._guard:
            if self._c.device_set_replicas(self.device, session, number, ports, rids, len(replicas), truncate_bytes):
                raise EngineError("out of memory for replicas")

    # --- ports ------------------------------------------------------------------------------------------------

    def configure_port(self, port: int, config: PortConfig, now_ns: int) -> None:
        values = [config.rate_bps, config.rate_pps, config.delay_ns, int(config.loss * LOSS_UNIT)]
        values += [config.loss_seed & binding.NEVER, int(config.up)]
        for queue in config.queues:
            values += [queue.depth_packets, queue.depth_bytes, queue.rate_pps]
        with self._guard:
            if self._c.device_configure_port(self.device, port, words(values), now_ns):
                raise EngineError(f"port {port}: not a port number below 511, or out of memory")
            self._ports[port] = config

    def port_counters(self, port: int, now_ns: int) -> PortCounters:
        values = words([0] * _COUNTER_FIELDS)
        with self._guard:
            if self._c.device_port_counters(self.device, port, now_ns, values):
                raise self._no_port(port)
        return PortCounters(*values)

    def _no_port(self, port: int) -> EngineError:
        return EngineError(f"no port {port}; configured are {sorted(self._ports)}")

    # --- time and packets -------------------------------------------------------------------------------------

    def receive(self, port: int, frame: bytes, now_ns: int) -> None:
        if port not in self._ports:
            raise self._no_port(port)
        if len(frame) > FRAME_BYTES_MAX:
            raise EngineError(f"a frame of {len(frame)} bytes; at most {FRAME_BYTES_MAX} fit")
        self._c.device_receive(self.device, port, frame, len(frame), now_ns)

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

    def next_event_ns(self) -> int | None:
        t_ns: int = self._c.device_next_event_ns(self.device)
        return None if t_ns == binding.NEVER else t_ns
