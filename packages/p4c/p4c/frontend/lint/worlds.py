"""What may hold of packets at one point of a program.

A walk has a focus, the bit of one header or variable. Paths on which it is set and paths on which it is not are kept
apart, and all else that holds on them is joined. So a flag that the program sets where a header is valid still tells
of that header, and there are never more than three cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

# Whether a field's value is among these values (True) or is none of them (False).
Fact = tuple[bool, frozenset[int]]
Facts = dict[int, Fact]  # by `field_key`; never changed once made
# The bits that are set for sure, those that may be set, and facts.
Case = tuple[int, int, Facts]

_VALUES_MAX = 16  # of a fact


@dataclass(frozen=True, slots=True)
class Worlds:
    """The cases by what they say of the focus; false if no packet comes here. Never changed once made."""

    focus: int
    cases: dict[tuple[int, int], Case]

    def __bool__(self) -> bool:
        return bool(self.cases)

    def of(self, cases: Iterable[Case]) -> Worlds:
        made: dict[tuple[int, int], Case] = {}
        for case in cases:
            key = case[0] & self.focus, case[1] & self.focus
            old = made.get(key)
            made[key] = case if old is None else (old[0] & case[0], old[1] | case[1], _joined(old[2], case[2]))
        return Worlds(self.focus, made)

    def join(self, *more: Worlds) -> Worlds:
        """What may hold where these paths meet."""
        worlds = self
        for other in more:
            if not worlds.cases:
                worlds = other
            elif other.cases and other.cases is not worlds.cases:
                worlds = worlds.of([*worlds.cases.values(), *other.cases.values()])
        return worlds

    @property
    def nowhere(self) -> Worlds:
        return Worlds(self.focus, {})

    @property
    def sure(self) -> int:
        found = -1
        for case in self.cases.values():
            found &= case[0]
        return found

    @property
    def possible(self) -> int:
        found = 0
        for case in self.cases.values():
            found |= case[1]
        return found

    def bits(self, clear: int, sure: int, possible: int) -> Worlds:
        """The worlds after the bits of `clear` have changed to what is set in the others."""
        possible |= sure
        if (clear | possible) & self.focus:
            return self.of([(s & ~clear | sure, p & ~clear | possible, f) for s, p, f in self.cases.values()])
        made = {k: (s & ~clear | sure, p & ~clear | possible, f) for k, (s, p, f) in self.cases.items()}
        return Worlds(self.focus, made)

    def where(self, bit: int, is_set: bool = True) -> Worlds:
        """The worlds in which the bit can be set, or can be not set."""
        cases = self.cases.items()
        return Worlds(self.focus, {k: case for k, case in cases if (case[1] & bit if is_set else not case[0] & bit)})

    def forget(self, gone: Callable[[int], bool]) -> Worlds:
        """The worlds without facts about fields that are `gone`."""
        made = self.cases
        if any(gone(key) for case in made.values() for key in case[2]):
            made = {k: (s, p, {i: x for i, x in f.items() if not gone(i)}) for k, (s, p, f) in made.items()}
        return Worlds(self.focus, made)

    def put(self, key: int, among: bool, values: frozenset[int]) -> Worlds:
        """The worlds after a value was written to the field."""
        return Worlds(self.focus, {k: (s, p, {**f, key: (among, values)}) for k, (s, p, f) in self.cases.items()})

    def learn(self, key: int, among: bool, values: frozenset[int]) -> Worlds:
        """The worlds in which the fact can hold, with the fact."""
        made: dict[tuple[int, int], Case] = {}
        for k, (sure, possible, facts) in self.cases.items():
            old = facts.get(key)
            if old is None:
                new = among, values
            elif old[0]:
                new = True, old[1] & values if among else old[1] - values
            else:
                new = among, values - old[1] if among else old[1] | values
            if new[1] or not new[0]:
                made[k] = sure, possible, {**facts, key: new}
        return Worlds(self.focus, made)


def _joined(one: Facts, other: Facts) -> Facts:
    if one is other or one == other:
        return one
    made = {}
    for key, (among, values) in one.items():
        if key not in other:
            continue
        among_too, values_too = other[key]
        if among and among_too:
            fact = True, values | values_too
        elif among or among_too:
            fact = False, values_too - values if among else values - values_too
        else:
            fact = False, values & values_too
        if fact[1] and len(fact[1]) <= _VALUES_MAX:
            made[key] = fact
    return made
