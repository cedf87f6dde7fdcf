"""Outcomes of a rule, and the exceptions by which a test says them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from conform.rule import Rule

PASS, FAIL, INTERMITTENT, UNREACHED, CHOICE = "pass", "fail", "intermittent", "not reachable", "device's choice"
OUTCOMES = (PASS, FAIL, INTERMITTENT, UNREACHED, CHOICE)
BROKEN = (FAIL, INTERMITTENT)


class Verdict(Exception):  # noqa: N818 (an answer, not an error)
    """How a test ends if the rule does not simply hold; the text is the evidence."""

    outcome = FAIL


class Broken(Verdict):
    """The device breaks the rule."""


class NotReachable(Verdict):
    """The rule cannot be tried on this device, and why."""

    outcome = UNREACHED


class Choice(Verdict):
    """The device's choice where the sources are open."""

    outcome = CHOICE


def must(right: object, words: str) -> None:
    """Raise `Broken` with these words unless this is right."""
    if not right:
        raise Broken(words)


def none(found: Sequence[object], words: str) -> None:
    """Raise `Broken` if there is one of these, named before the words."""
    if found:
        raise Broken(f"{found[0]} {words}")


@dataclass(slots=True)
class Result:
    """The outcome of a rule."""

    rule: str
    outcome: str
    text: str = ""
    captures: list[str] = field(default_factory=list)
    """Files of the bundle."""
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def line(self) -> str:
        return f"{self.rule}  {self.outcome:15}  {self.text}".rstrip()


def judge(rule: Rule, subject: Any, function: Callable[[Any], str | None]) -> Result:
    """Run one test of a rule. Any other exception is a defect of the test."""
    begun = time.monotonic()
    try:
        text, outcome = function(subject) or "", PASS
        if rule.level == "open":
            outcome = CHOICE
    except Verdict as said:
        text, outcome = str(said), said.outcome
        if rule.level == "open" and outcome == FAIL:
            outcome = CHOICE
    return Result(rule.id, outcome, text, seconds=round(time.monotonic() - begun, 3))


def joined(results: Sequence[Result]) -> Result:
    """The result of a rule with several tests: the worst of them."""
    worst = min(results, key=lambda one: (FAIL, INTERMITTENT, UNREACHED, PASS, CHOICE).index(one.outcome))
    captures = [name for one in results for name in one.captures]
    return Result(worst.rule, worst.outcome, worst.text, captures, sum(one.seconds for one in results))


def summary(results: Sequence[Result]) -> str:
    """One line: how many rules came to what."""
    counts = Counter(one.outcome for one in results)
    told = [name for name in OUTCOMES if counts[name] or name != INTERMITTENT]
    return f"{len(results)} rules: " + ", ".join(f"{counts[name]} {name}" for name in told)
