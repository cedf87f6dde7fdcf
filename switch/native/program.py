"""A loaded program as the control calls see it: names to numbers, matches and arguments to 64-bit words."""

import ctypes
from collections.abc import Mapping
from functools import lru_cache

from p4c.entries import ActionCall, Lpm, Match
from p4c.model import Action, Program, Register
from p4c.model.externs import Counter
from p4c.model.memory import data_words, word_count
from p4c.model.pipelines import ActionProfile, Table
from switch import rules
from switch.native.binding import u64_array, zeros

Words = ctypes.Array[ctypes.c_uint64]
WORD_MASK = (1 << 64) - 1
WORDS_KEPT_MAX = 16_384
"""Matches, and calls, of a table whose words are kept: the switches of a fabric have most entries in common."""


def split(value: int, width_bits: int) -> list[int]:
    """Least significant word first, as many as a value of that width takes."""
    return [value >> (64 * place) & WORD_MASK for place in range(word_count(width_bits))]


class Callable:
    """What can be called with action data: a table's actions, or those of the tables that share a profile."""

    def __init__(self, program: Program, where: str, actions: Mapping[str, Action], args_count: int) -> None:
        self._where = where
        self._numbers = {id(action): number for number, action in enumerate(program.actions)}
        self._actions = actions
        self._args_count = args_count
        self.no_args = zeros(args_count)
        self.action = lru_cache(WORDS_KEPT_MAX)(self._action)
        """The number of a call's action and its data, which is not to be changed."""

    def _action(self, call: ActionCall) -> tuple[int, Words]:
        action = rules.checked_call(self._where, self._actions, call)
        if not call.args:
            return self._numbers[id(action)], self.no_args
        data: list[int] = []
        for parameter, value in zip(action.parameters, call.args, strict=True):
            data += split(value, parameter.width_bits)
        return self._numbers[id(action)], u64_array(data + [0] * (self._args_count - len(data)))


class LoadedTable(Callable):
    """A table, the same for all devices that run the program. Raises EngineError for initial entries that cannot be."""

    def __init__(self, program: Program, table: Table) -> None:
        rules.check_initial(table)
        actions = {action.name: action for action in table.actions}
        super().__init__(program, f"table {table.name}", actions, data_words(table))
        self.table, self.name, self.index = table, table.name, table.index
        default = table.default
        self.initial_default = ActionCall(default.action.name, default.args) if default else None
        self.match = lru_cache(WORDS_KEPT_MAX)(self._match)
        """Key words, mask words (for a range its high end) and the prefix length; the words are not to be changed."""

    def _match(self, matches: tuple[Match, ...]) -> tuple[Words, Words, int]:
        low: list[int] = []
        high: list[int] = []
        for key, (a, b) in zip(self.table.keys, rules.canonical(self.table, matches), strict=True):
            low += split(a, key.width_bits)
            high += split(b, key.width_bits)
        prefix_len = next((match.prefix_len for match in matches if isinstance(match, Lpm)), 0)
        return u64_array(low), u64_array(high), prefix_len


class LoadedProfile(Callable):
    def __init__(self, program: Program, profile: ActionProfile) -> None:
        actions = rules.profile_actions(program.tables, profile)
        sizes = (data_words(table) for table in program.tables if table.profile is profile)
        super().__init__(program, f"action profile {profile.name}", actions, max(sizes, default=0))
        self.profile, self.name, self.index = profile, profile.name, profile.index
        self.members: set[int] = set()
        self.groups: set[int] = set()


@lru_cache(maxsize=16)
def _tables(program: Program) -> Mapping[str, LoadedTable]:
    """The tables of a program, once for all devices that run it."""
    return {table.name: LoadedTable(program, table) for table in program.tables}


class LoadedProgram:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.tables = _tables(program)
        self._profiles = {profile.name: LoadedProfile(program, profile) for profile in program.profiles}
        self._counters = {counter.name: counter for counter in program.counters if not counter.direct}
        self._meters = {meter.name: meter.index for meter in program.meters if not meter.direct}
        self._registers = {register.name: register for register in program.registers}

    split = staticmethod(split)
    words = staticmethod(word_count)

    def table(self, name: str) -> LoadedTable:
        return rules.find(self.tables, name, "table")

    def profile(self, name: str) -> LoadedProfile:
        return rules.find(self._profiles, name, "action profile")

    def counter(self, name: str) -> Counter:
        return rules.find(self._counters, name, "counter")

    def meter(self, name: str) -> int:
        return rules.find(self._meters, name, "meter")

    def register(self, name: str) -> Register:
        return rules.find(self._registers, name, "register")
