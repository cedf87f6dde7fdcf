"""The ablation over the hunt's check list: the same cases with all rules of the lab, without each, without any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from endpoint.mrc.presets import LAB, RULES, STRICT
from paper.report.document import rows, wrapped
from studies.hunting.attempt import Tried
from studies.sweeping.paired import difference
from studies.sweeping.proportion import share

TITLE = "# The lab's rules on random cases\n"
INTRODUCTION = (
    "A case is a random fabric with random loads, faults and settings, drawn by its seed as in `./lab hunt`. Each is"
    " run with all of the lab's rules, without each of them, and without any. The hunt's check list judges it"
    " (`docs/reference/confidence.md`). Shares have 95 % intervals. The difference is paired: the share of broken cases"
    " less that with all rules, on the same seeds."
)
HEAD = ["MRC with", "broken cases", "more than with all rules", "checks that broke, and in how many cases"]


@dataclass(frozen=True, slots=True)
class Tally:
    """The cases of a variant: by seed, the checks that were broken."""

    title: str
    broken: Mapping[int, Sequence[str]]
    silent: int = 0
    """Cases that showed nothing, such as those that were over before a fault was felt."""

    @property
    def failures(self) -> dict[int, float]:
        """By seed: 1 for a broken case, else 0."""
        return {seed: float(bool(checks)) for seed, checks in self.broken.items()}


def variants() -> list[tuple[str, Mapping[str, Any]]]:
    """The rows of the page and the settings of each."""
    without = [(f"without `{rule.setting}`", {**LAB, rule.setting: rule.strict}) for rule in RULES]
    return [("all rules", LAB), *without, ("none of them", STRICT)]


def tallied(title: str, seeds: Iterable[int], made: Iterator[Tried], tell: Callable[[str], None]) -> Tally:
    """The outcomes of these seeds, in their order; `tell` hears of each case that broke."""
    broken: dict[int, Sequence[str]] = {}
    silent = 0
    for seed, (_, outcome) in zip(seeds, made, strict=True):
        broken[seed] = list(outcome.broken)
        silent += outcome.silent
        if outcome.failed:
            check, reason = next(iter(outcome.broken.items()))
            tell(f"{title}, seed {seed}: {check}: {reason}")
    return Tally(title, broken, silent)


def markdown(found: Sequence[Tally], made_by: str) -> str:
    """The page. The first tally is the one that all others are compared with; `made_by`: the command."""
    told = wrapped(f"`{made_by}` made this page. {INTRODUCTION}")
    return "\n".join([TITLE, told, rows(HEAD, [line(one, found[0]) for one in found])])


def line(one: Tally, first: Tally) -> list[str]:
    """A row of the table."""
    failures = one.failures
    counted = Counter(check for checks in one.broken.values() for check in checks)
    checks = ", ".join(f"{name}: {count}" for name, count in counted.most_common())
    silent = f"; {one.silent} showed nothing" if one.silent else ""
    shown = share(round(sum(failures.values())), len(failures)).words()
    return [one.title, f"{shown}{silent}", "–" if one is first else more(first.failures, failures), checks or "–"]


def more(first: Mapping[int, float], second: Mapping[int, float]) -> str:
    """The difference in points with its interval, as far as the cases tell one."""
    gap = difference(first, second)
    if gap is None or gap.low is None or gap.high is None:
        return "too few cases"
    if first == second:
        return "the same cases"
    return f"{100 * gap.mean:+.1f} points ({100 * gap.low:+.1f} to {100 * gap.high:+.1f})".replace("-", "−")
