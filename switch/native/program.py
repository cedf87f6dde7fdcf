"""A loaded program as the control calls see it: names to numbers, matches and arguments to 64-bit words."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TypeVar

from switch.engine import GROUP_WEIGHT_MAX, EngineError
from switch.entries import ActionCall, Entry, EntryAction, Exact, GroupRef, Lpm, Match, Optional, Range, Ternary
from switch.model import Program
from switch.model.actions import Action
from switch.model.pipelines import ActionProfile, Key, Table
from switch.model.registers import Register
from switch.native.binding import words
from switch.native.emit.layout import words as word_count
from switch.native.emit.table import args_words

T = TypeVar("T")
Words = ctypes.Array[ctypes.c_uint64]
WORD_MASK = (1 << 64) - 1

# What may be given for a match field of each kind; P4's `optional` is ternary in the JSON.
ACCEPTED: dict[str, tuple[type, ...]] = {
    "exact": (Exact,),
    "lpm": (Lpm,),
    "ternary": (Ternary, Optional, Exact, Lpm),
    "range": (Range,),
}


def split(value: int, width_bits: int) -> list[int]:
    """Least significant word first, as many as a value of that width takes."""
    return [value >> (64 * place) & WORD_MASK for place in range(word_count(width_bits))]


class Callable:
    """What can be called with action data: a table's actions, or those of the tables that share a profile."""

    def __init__(self, program: Program, name: str, actions: tuple[Action, ...], args_count: int) -> None:
        self.name = name
        self._numbers = {id(action): number for number, action in enumerate(program.actions)}
        self._actions = {action.name: action for action in actions}
        self._args_count = args_count
        self.no_args = words([0] * args_count)

    def action(self, call: ActionCall) -> tuple[int, Words]:
        """The action's number and its data."""
        action = self._actions.get(call.name)
        if action is None:
            raise EngineError(
                f"{self.name}: no action {call.name}; it has {', '.join(sorted(self._actions)) or 'none'}"
            )
        if len(call.args) != len(action.parameters):
            raise EngineError(
                f"{self.name}: {call.name} takes {len(action.parameters)} arguments, not {len(call.args)}"
            )
        if not call.args:
            return self._numbers[id(action)], self.no_args
        data: list[int] = []
        for parameter, value in zip(action.parameters, call.args, strict=True):
            if not 0 <= value < 1 << parameter.width_bits:
                where = f"{self.name}: {call.name}: {value:#x} for {parameter.name}"
                raise EngineError(f"{where} does not fit {parameter.width_bits} bits")
            data += split(value, parameter.width_bits)
        return self._numbers[id(action)], words(data + [0] * (self._args_count - len(data)))


class LoadedTable(Callable):
    def __init__(self, program: Program, table: Table) -> None:
        super().__init__(program, table.name, table.actions, args_words(table))
        self.table = table
        self.index = table.index
        default = table.default
        self.initial_default = ActionCall(default.action.name, default.args) if default else None

    def match(self, entry: Entry) -> tuple[Words, Words, int]:
        """Key words, mask words (for a range its high end) and the prefix length."""
        keys = self.table.keys
        if len(entry.matches) != len(keys):
            raise EngineError(f"{self.name}: {len(keys)} match fields, not {len(entry.matches)}")
        low: list[int] = []
        high: list[int] = []
        prefix_len = 0
        for key, match in zip(keys, entry.matches, strict=True):
            a, b = self._bounds(key, match)
            low += split(a, key.width_bits)
            high += split(b, key.width_bits)
            if isinstance(match, Lpm):
                prefix_len = match.prefix_len
        return words(low), words(high), prefix_len

    def _bounds(self, key: Key, match: Match) -> tuple[int, int]:
        """Value and mask, or for a range its ends."""
        full = (1 << key.width_bits) - 1
        where = f"{self.name}, field {key.name}"
        if not isinstance(match, ACCEPTED[key.match]):
            raise EngineError(f"{where}: a {key.match} match is expected, not {type(match).__name__}")
        match match:
            case Exact(value) | Optional(int(value)):
                low, high = value, full
            case Lpm(value, prefix_len):
                if not 0 <= prefix_len <= key.width_bits:
                    raise EngineError(f"{where}: a prefix length is 0 to {key.width_bits}, not {prefix_len}")
                high = full ^ (full >> prefix_len)
                low = value
            case Ternary(value, mask):
                low, high = value, mask
            case Range(low, high):
                if low > high:
                    raise EngineError(f"{where}: the range {low:#x}..{high:#x} is empty")
            case Optional(None):
                low, high = 0, 0
        if not (0 <= low <= full and 0 <= high <= full):
            raise EngineError(f"{where}: {low:#x} or {high:#x} does not fit {key.width_bits} bits")
        return (low, high) if key.match == "range" else (low & high, high)

    def check_target(self, action: EntryAction) -> None:
        """Raises EngineError when the table's entries cannot do that."""
        profile = self.table.profile
        if isinstance(action, ActionCall):
            if profile is not None:
                raise EngineError(f"{self.name}: an action profile member or group is expected")
        elif profile is None:
            raise EngineError(f"{self.name}: it has no action profile")
        elif isinstance(action, GroupRef) and not profile.has_groups:
            raise EngineError(f"{self.name}: its action profile has no selector, so no groups")

    def check_not_constant(self) -> None:
        if self.table.const_entries:
            raise EngineError(f"{self.name}: its entries are constant")


class LoadedProfile(Callable):
    def __init__(self, program: Program, profile: ActionProfile) -> None:
        tables = [table for table in program.tables if table.profile is profile]
        actions = tuple(action for table in tables for action in table.actions)
        super().__init__(program, profile.name, actions, max((args_words(table) for table in tables), default=0))
        self.index = profile.index
        self.has_groups = profile.has_groups
        self.members: set[int] = set()
        self.groups: set[int] = set()

    def check_group(self, members: Sequence[tuple[int, int]]) -> None:
        if not self.has_groups:
            raise EngineError(f"{self.name}: it has no selector, so no groups")
        for member, weight in members:
            self.check_known(self.members, "member", member)
            if weight < 1:
                raise EngineError(f"{self.name}: the weight {weight} of member {member} is not positive")
        total = sum(weight for _, weight in members)
        if total > GROUP_WEIGHT_MAX:
            raise EngineError(f"{self.name}: the weights of a group add up to {total}; at most {GROUP_WEIGHT_MAX} do")

    def check_known(self, ids: set[int], kind: str, number: int) -> None:
        if number not in ids:
            raise EngineError(f"{self.name}: no {kind} has id {number}")


class LoadedProgram:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.tables = {table.name: LoadedTable(program, table) for table in program.tables}
        self._profiles = {profile.name: LoadedProfile(program, profile) for profile in program.profiles}
        self._counters = {counter.name: counter.index for counter in program.counters if not counter.direct}
        self._meters = {meter.name: meter.index for meter in program.meters if not meter.direct}
        self._registers = {register.name: register for register in program.registers}

    split = staticmethod(split)
    words = staticmethod(word_count)

    def table(self, name: str) -> LoadedTable:
        return _find(self.tables, name, "table")

    def profile(self, name: str) -> LoadedProfile:
        return _find(self._profiles, name, "action profile")

    def counter(self, name: str) -> int:
        return _find(self._counters, name, "counter")

    def meter(self, name: str) -> int:
        return _find(self._meters, name, "meter")

    def register(self, name: str) -> Register:
        return _find(self._registers, name, "register")


def _find(objects: dict[str, T], name: str, kind: str) -> T:
    try:
        return objects[name]
    except KeyError:
        raise EngineError(f"no {kind} {name}; the program has {', '.join(sorted(objects)) or 'none'}") from None
