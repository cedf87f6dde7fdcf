"""A loaded program as the control calls see it: names to numbers, matches and arguments to 64-bit words."""

from __future__ import annotations

import ctypes
from typing import TypeVar

from switch.engine import ActionCall, EngineError, Entry, Exact, Lpm, Match, Optional, Range, Ternary
from switch.model import Program
from switch.model.actions import Action
from switch.model.externs import Register
from switch.model.pipelines import ActionProfile, Table
from switch.native.binding import words
from switch.native.emit.layout import words as word_count
from switch.native.emit.table import args_words

T = TypeVar("T")
Words = ctypes.Array[ctypes.c_uint64]
WORD_MASK = (1 << 64) - 1


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
            data += split(value & ((1 << parameter.width_bits) - 1), parameter.width_bits)
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
            a, b = self._bounds(match, key.width_bits, key.match)
            low += split(a, key.width_bits)
            high += split(b, key.width_bits)
            if isinstance(match, Lpm):
                prefix_len = match.prefix_len
        return words(low), words(high), prefix_len

    def _bounds(self, match: Match, width_bits: int, kind: str) -> tuple[int, int]:
        full = (1 << width_bits) - 1
        match match:
            case Exact(value):
                return (value, value) if kind == "range" else (value, full)
            case Lpm(value, prefix_len):
                mask = full ^ (full >> prefix_len)
                return value & mask, mask
            case Ternary(value, mask):
                return value & mask, mask
            case Range(low, high):
                if kind != "range":
                    raise EngineError(f"{self.name}: a range in a field that is matched {kind}")
                return low, high
            case Optional(value):
                return (0, 0) if value is None else (value, full)


class LoadedProfile(Callable):
    def __init__(self, program: Program, profile: ActionProfile) -> None:
        tables = [table for table in program.tables if table.profile is profile]
        actions = tuple(action for table in tables for action in table.actions)
        super().__init__(program, profile.name, actions, max((args_words(table) for table in tables), default=0))
        self.index = profile.index


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
