"""What the tests of a switch found, rule by rule, and the results that follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from conform.result import CHOICE, FAIL, PASS, UNREACHED, Result
from conform.rule import Rule
from conform.switch.packets import HEADERS, Header


class Arrival(NamedTuple):
    """A frame that left the switch."""

    port: int
    frame: bytes

    @property
    def outer(self) -> Header:
        return Header.of(self.frame[14:HEADERS])


class Findings:
    """A rule is failed by what was seen first against it, and that frame is kept."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: dict[str, str] = {}
        self.chosen: dict[str, str] = {}
        self.unreached: dict[str, str] = {}
        self.frames: dict[str, Sequence[Arrival]] = {}
        """What left the switch, of rules that failed."""

    def judge(self, rule: str, right: bool, seen: str, arrivals: Sequence[Arrival] = ()) -> None:
        if right:
            self.passed.add(rule)
        elif rule not in self.failed:
            self.failed[rule], self.frames[rule] = seen, arrivals

    def same(self, rule: str, got: object, expected: object, arrivals: Sequence[Arrival] = ()) -> None:
        """Judge whether a value is as expected."""
        self.judge(rule, got == expected, f"{got} in place of {expected}", arrivals)

    def choice(self, rule: str, seen: str) -> None:
        self.chosen.setdefault(rule, seen)

    def unreachable(self, rule: str, why: str) -> None:
        self.unreached.setdefault(rule, why)

    def result(self, rule: Rule) -> Result:
        """The result of a rule; failures count more than all else."""
        if rule.id in self.failed:
            return Result(rule.id, FAIL, self.failed[rule.id])
        if rule.id in self.chosen:
            return Result(rule.id, CHOICE, self.chosen[rule.id])
        if rule.id in self.passed:
            return Result(rule.id, PASS)
        return Result(rule.id, UNREACHED, self.unreached.get(rule.id, "no packet of the test came to it"))
