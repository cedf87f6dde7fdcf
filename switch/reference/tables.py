"""Match-action tables: entries, and the lookup.

The winning entry: exact, the equal entry; lpm, the longest prefix; ternary and range, the largest priority and
among equals the one inserted first.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from p4c.entries import ActionCall, Entry, EntryAction
from p4c.model import Action
from p4c.model.expressions import FieldRef
from p4c.model.pipelines import Key, Table
from switch import rules
from switch.engine import EngineError, NoRoomError
from switch.reference.expressions import Reader
from switch.reference.externs import CounterCell, MeterCell
from switch.reference.packet import Packet
from switch.reference.profiles import Profiles
from switch.reference.runtime import Runtime


@dataclass(slots=True)
class InstalledEntry:
    handle: int
    pairs: tuple[rules.Pair, ...]
    priority: int
    action: EntryAction
    counter: CounterCell = field(default_factory=CounterCell)
    meter: MeterCell = field(default_factory=MeterCell)
    hit_ns: int = 0


def _precedence(entry: InstalledEntry) -> tuple[int, int]:
    return -entry.priority, entry.handle


class TableState:
    def __init__(self, table: Table, runtime: Runtime, profiles: Profiles) -> None:
        self.table = table
        self._profiles = profiles
        self.entries: dict[int, InstalledEntry] = {}
        self.actions = {a.name: a for a in table.actions}
        self.default: tuple[Action, tuple[int, ...]] | None = None
        self._program_default = None if table.default is None else (table.default.action, table.default.args)
        self._readers = [self._reader(key, runtime) for key in table.keys]
        self._next_handle = 0
        # Exact and lpm: per tuple of masks, masked key → entry; longest prefixes first. Others: by precedence.
        self._hashed: dict[tuple[int, ...], dict[tuple[int, ...], InstalledEntry]] = {}
        self._ordered: list[InstalledEntry] = []
        self._known: set[tuple[int, tuple[rules.Pair, ...]]] = set()  # priority and pairs of the ordered ones
        self._is_hashed = table.match in ("exact", "lpm")
        self.default = self._program_default
        for entry in table.entries:
            self._install(entry)

    # --- control ---

    def insert(self, entry: Entry) -> int:
        name = self.table.name
        if len(self.entries) >= self.table.max_size:
            raise NoRoomError(f"table {name}: full at {self.table.max_size} entries")
        self.check_action(entry.action)
        return self._install(entry)

    def _install(self, entry: Entry) -> int:
        pairs = rules.canonical(self.table, entry.matches)
        priority = 0 if self._is_hashed else entry.priority
        installed = InstalledEntry(self._next_handle, pairs, priority, entry.action)
        if self._is_hashed:
            values, masks = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
            if values in self._hashed.get(masks, {}):
                raise EngineError(f"table {self.table.name}: an entry with this key exists")
            if masks in self._hashed:
                self._hashed[masks][values] = installed
            else:  # longer prefixes are tried first; the masks of exact fields are all alike
                self._hashed = dict(sorted([*self._hashed.items(), (masks, {values: installed})], reverse=True))
        else:
            if (priority, pairs) in self._known:
                raise EngineError(f"table {self.table.name}: an entry with this key and priority exists")
            self._known.add((priority, pairs))
            insort(self._ordered, installed, key=_precedence)
        self.entries[installed.handle] = installed
        self._next_handle += 1
        return installed.handle

    def entry(self, handle: int) -> InstalledEntry:
        if handle not in self.entries:
            raise EngineError(f"table {self.table.name}: no entry has handle {handle}")
        return self.entries[handle]

    def modify(self, handle: int, action: EntryAction) -> None:
        entry = self.entry(handle)
        self.check_action(action)
        entry.action = action

    def delete(self, handle: int) -> None:
        entry = self.entry(handle)
        del self.entries[handle]
        if self._is_hashed:
            masks = tuple(p[1] for p in entry.pairs)
            del self._hashed[masks][tuple(p[0] for p in entry.pairs)]
            if not self._hashed[masks]:
                del self._hashed[masks]
        else:
            self._known.remove((entry.priority, entry.pairs))
            del self._ordered[bisect_left(self._ordered, _precedence(entry), key=_precedence)]

    def set_default(self, call: ActionCall | None) -> None:
        rules.check_default_changeable(self.table, call)
        if call is None:
            self.default = self._program_default
        else:
            self.default = (self._checked_call(call), call.args)

    def check_action(self, action: EntryAction) -> None:
        """Raises EngineError unless the table can have the action."""
        rules.check_kind_of_action(self.table, action)
        if isinstance(action, ActionCall):
            self._checked_call(action)

    def _checked_call(self, call: ActionCall) -> Action:
        return rules.checked_call(f"table {self.table.name}", self.actions, call)

    # --- lookup ---

    def _reader(self, key: Key, runtime: Runtime) -> Reader:
        target, mask = key.target, (1 << key.width_bits) - 1
        if key.mask is not None:
            mask &= key.mask
        if not isinstance(target, FieldRef):
            number = target.header.index
            return lambda packet: int(packet.valid[number])
        header, slot = target.header.index, runtime.layout.slot(target.header, target.field)
        return lambda packet: packet.values[slot] & mask if packet.valid[header] else 0

    def key(self, packet: Packet) -> tuple[int, ...]:
        return tuple([read(packet) for read in self._readers])

    def lookup(self, key: tuple[int, ...]) -> InstalledEntry | None:
        if self._is_hashed:
            for masks, entries in self._hashed.items():
                entry = entries.get(tuple([k & m for k, m in zip(key, masks, strict=True)]))
                if entry is not None:
                    return entry
            return None
        return next((e for e in self._ordered if self._matches(e, key)), None)

    def _matches(self, entry: InstalledEntry, key: tuple[int, ...]) -> bool:
        for part, pair, match_field in zip(key, entry.pairs, self.table.keys, strict=True):
            if match_field.match == "range":
                if not pair[0] <= part <= pair[1]:
                    return False
            elif part & pair[1] != pair[0]:
                return False
        return True

    def resolve(self, action: EntryAction, packet: Packet) -> tuple[Action, tuple[int, ...]] | None:
        """The action to run and its arguments; None for an empty group or a member that does not exist."""
        call: ActionCall | None
        if isinstance(action, ActionCall):
            call = action
        else:
            assert self.table.profile is not None
            call = self._profiles.choose(self.table.profile.name, action, packet)
        chosen = None if call is None else self.actions.get(call.name)
        return None if call is None or chosen is None else (chosen, call.args)
