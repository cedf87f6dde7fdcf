"""The entries and settings that the control plane has put into one device: reads, checks and copies start here.

The engine holds the same state in its own form; `StoredEntry.handle` ties the two. A store belongs to one loaded
pipeline and goes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TypeVar

from p4c.entries import ActionCall, Entry, Exact, GroupRef, Lpm, Match, MemberRef, Optional, Range, Ternary
from switch.device import Device
from switch.engine import EngineControl, EngineError, MeterConfig, Replica
from switch.p4rt.digests import Digests
from switch.p4rt.p4info import FieldInfo, MatchKind, TableInfo
from switch.p4rt.pipeline import ForwardingPipeline

T = TypeVar("T")
RowKey = tuple[int, tuple[Match, ...]]  # priority and matches, which identify an entry
CELLS_COPIED_MAX = 1 << 20
"""Of registers, by `copy_to`: about two seconds, in which the device waits."""


@dataclass(slots=True)
class StoredEntry:
    """A table entry. `handle` is None for a default entry."""

    entry: Entry
    handle: int | None
    const: bool = False
    metadata: bytes = b""
    controller_metadata: int = 0
    action_set: bytes | None = None  # a one-shot selector's TableAction as the client wrote it
    group: int = 0  # the group of that one-shot in the engine
    meter: MeterConfig | None = None
    meter_bytes: bytes = b""  # as the client wrote it
    idle_timeout_ns: int = 0  # 0: never
    since_ns: int = 0  # when it was inserted
    timer_ns: int = 0  # from when it must be idle for its timeout
    look_ns: int = 0  # when it may be
    encoded: bytes | None = None  # everything but direct resources, made when first read


@dataclass(slots=True)
class Member:
    action: ActionCall
    groups: int = 0  # how many groups hold it
    rows: int = 0  # how many entries refer to it


@dataclass(slots=True)
class Group:
    members: tuple[tuple[int, int], ...]  # (member id, weight)
    max_size: int
    rows: int = 0


@dataclass(slots=True)
class ActionProfileState:
    """One action profile. `one_shots` counts entries programmed with action sets, which exclude the other style."""

    members: dict[int, Member] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    one_shots: int = 0
    one_shot_next: int = 1


@dataclass(slots=True)
class CloneSessionRow:
    replicas: tuple[Replica, ...]
    class_of_service: int
    packet_length_bytes: int
    encoded: bytes


@dataclass(slots=True)
class MulticastGroup:
    replicas: tuple[Replica, ...]
    encoded: bytes


def loaded(device: Device) -> EntityStore | None:
    """What P4Runtime has put into a device; None without a pipeline."""
    store = device.store
    assert store is None or isinstance(store, EntityStore)
    return store


def chosen(items: Mapping[int, T], id_: int) -> Iterable[tuple[int, T]]:
    """The object with this id, if there is one; all objects for id 0."""
    if not id_:
        return items.items()
    return [(id_, items[id_])] if id_ in items else []


TIMEOUT_MIN_NS = 10_000_000
"""Of an idle timeout; shorter ones are taken for this. The specification's example looks at entries as often."""
_STALE_MAX = 64  # items of entries that are gone, or have another timeout, beside as many as there are others


class IdleTimers:
    """The entries with an idle timeout. Each is looked at when it could have been idle for it. Time is an argument."""

    def __init__(self, engine: EngineControl) -> None:
        self._engine = engine
        self._heap: list[tuple[int, int, TableInfo, StoredEntry]] = []  # when to look
        self._order = count()
        self._clean = 0  # items at the last look at all

    def start(self, table: TableInfo, row: StoredEntry) -> None:
        """The entry's timeout was set. One that is gone has none."""
        if not row.idle_timeout_ns:
            return
        if len(self._heap) > 2 * self._clean + _STALE_MAX:
            self._heap = [item for item in self._heap if item[3].idle_timeout_ns and item[0] == item[3].look_ns]
            heapify(self._heap)
            self._clean = len(self._heap)
        row.look_ns = row.timer_ns + max(row.idle_timeout_ns, TIMEOUT_MIN_NS)
        heappush(self._heap, (row.look_ns, next(self._order), table, row))

    def expired(self, now_ns: int) -> list[tuple[TableInfo, StoredEntry]]:
        """The entries that were idle for their timeout; each timer begins anew."""
        idle = []
        while self._heap and self._heap[0][0] <= now_ns:
            look_ns, _, table, row = heappop(self._heap)
            if look_ns != row.look_ns or not row.idle_timeout_ns:
                continue
            assert row.handle is not None
            row.timer_ns = max(row.timer_ns, self._engine.read_last_hit_ns(table.name, row.handle))
            if now_ns - row.timer_ns >= max(row.idle_timeout_ns, TIMEOUT_MIN_NS):
                row.timer_ns = now_ns
                idle.append((table, row))
            self.start(table, row)
        return idle

    @property
    def next_ns(self) -> int | None:
        """When to ask again; None when no entry has a timeout."""
        return self._heap[0][0] if self._heap else None


class EntityStore:
    """Mutable; every access holds the device's lock, and the engine has loaded the pipeline's program by the first."""

    def __init__(
        self, pipeline: ForwardingPipeline, engine: EngineControl, now_ns: Callable[[], int] = lambda: 0
    ) -> None:
        """`now_ns` is the engine's time."""
        self.pipeline = pipeline
        self.engine = engine
        self.now_ns = now_ns
        info = pipeline.p4info
        self.rows: dict[int, dict[RowKey, StoredEntry]] = {table_id: {} for table_id in info.tables}
        self.defaults: dict[int, StoredEntry] = {}  # of the tables whose default was changed
        self.profiles = {profile_id: ActionProfileState() for profile_id in info.profiles}
        self.meters: dict[int, dict[int, tuple[MeterConfig, bytes]]] = {meter_id: {} for meter_id in info.meters}
        self.value_sets: dict[int, tuple[tuple[int, ...], ...]] = {}  # those that were written
        self.multicast: dict[int, MulticastGroup] = {}
        self.clones: dict[int, CloneSessionRow] = {}
        self.digests = Digests(info, pipeline.program, engine)
        self.idle = IdleTimers(engine)
        for table in info.tables.values():
            self._add_initial_entries(table)

    def _add_initial_entries(self, table: TableInfo) -> None:
        compiled = self.pipeline.program_tables[table.name]
        for handle, entry in enumerate(compiled.entries):
            matches = tuple(_as_declared(info, match) for info, match in zip(table.fields, entry.matches, strict=True))
            entry = Entry(matches, entry.action, entry.priority if table.needs_priority else 0)
            self.rows[table.id][entry.priority, matches] = row = StoredEntry(entry, handle, const=table.const)
            row.since_ns = row.timer_ns = self.now_ns()

    @property
    def program_name(self) -> str:
        return self.pipeline.name

    def entry_count(self) -> int:
        return sum(map(len, self.rows.values()))

    def copy_to(self, engine: EngineControl) -> None:
        """Bring a fresh engine to the same program, entries, groups, meters, registers and replication.

        The device waits meanwhile, so EngineError when registers have more than `CELLS_COPIED_MAX` cells.
        """
        info = self.pipeline.p4info
        sizes = {register.name: register.size for register in info.registers.values()}
        if (cells := sum(sizes.values())) > CELLS_COPIED_MAX:
            largest = max(sizes, key=sizes.__getitem__)
            raise EngineError(
                f"{self.program_name}: registers must have at most {CELLS_COPIED_MAX} cells together to be copied"
                f" (got {cells}; the largest is {largest}, with {sizes[largest]}): trace a program with smaller ones"
            )
        engine.load(self.pipeline.program)
        for profile_id, state in self.profiles.items():
            self._copy_profile(engine, info.profiles[profile_id].name, state)
        for table_id, row in self.defaults.items():
            assert isinstance(row.entry.action, ActionCall)
            engine.set_default_action(info.tables[table_id].name, row.entry.action)
        for table_id, rows in self.rows.items():
            name = info.tables[table_id].name
            initial = len(self.pipeline.program_tables[name].entries)
            kept = {row.handle for row in rows.values() if row.handle is not None and row.handle < initial}
            for handle in set(range(initial)) - kept:
                engine.delete_entry(name, handle)
            for row in rows.values():
                if row.handle in kept:
                    assert row.handle is not None
                    if not row.const:
                        engine.modify_entry(name, row.handle, row.entry.action)
                    handle = row.handle
                else:
                    handle = engine.insert_entry(name, row.entry)
                if row.meter is not None:
                    engine.set_direct_meter(name, handle, row.meter)
        for meter_id, configs in self.meters.items():
            for index, (config, _) in configs.items():
                engine.set_meter(info.meters[meter_id].name, index, config)
        for register in info.registers.values():
            for index in range(register.size):
                value = self.engine.read_register(register.name, index)
                if value:
                    engine.write_register(register.name, index, value)
        for set_id, members in self.value_sets.items():
            engine.set_value_set(info.value_sets[set_id].name, members)
        for group_id, group in self.multicast.items():
            engine.set_multicast_group(group_id, group.replicas)
        for session_id, session in self.clones.items():
            cut, service = session.packet_length_bytes, session.class_of_service
            engine.set_clone_session(session_id, session.replicas, cut, service)

    @staticmethod
    def _copy_profile(engine: EngineControl, name: str, state: ActionProfileState) -> None:
        for member_id, member in state.members.items():
            engine.set_member(name, member_id, member.action)
        for group_id, group in state.groups.items():
            engine.set_group(name, group_id, group.members)

    def references(self, table: TableInfo, action: object, change: int) -> None:
        """Count that an entry starts (+1) or ceases (-1) to refer to a member or group."""
        if table.profile is None:
            return
        state = self.profiles[table.profile.id]
        if isinstance(action, MemberRef):
            state.members[action.member_id].rows += change
        elif isinstance(action, GroupRef):
            state.groups[action.group_id].rows += change

    def all_rows(self) -> Iterator[tuple[TableInfo, StoredEntry]]:
        for table_id, rows in self.rows.items():
            table = self.pipeline.p4info.tables[table_id]
            for row in rows.values():
                yield table, row


def _as_declared(info: FieldInfo, match: Match) -> Match:
    """BMv2 JSON writes optional (and, in a ternary table, other) keys as ternary; P4Info has what the program says."""
    if isinstance(match, Ternary):
        if info.kind is MatchKind.OPTIONAL:
            return Optional(match.value if match.mask else None)
        if info.kind is MatchKind.EXACT:
            return Exact(match.value)
        if info.kind is MatchKind.LPM:
            return Lpm(match.value, match.mask.bit_count())
    if isinstance(match, Range) and info.kind is MatchKind.EXACT:
        return Exact(match.low)
    return match
