"""A check: a function from a run to one finding, made of a rule and the thresholds that a scenario chooses."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from judging.run import Run
from judging.verdict import Finding

__all__ = ["Check", "check"]

Check = Callable[[Run], Finding]
Thresholds = ParamSpec("Thresholds")


def check(rule: Callable[Concatenate[Run, Thresholds], Finding]) -> Callable[Thresholds, Check]:
    """The rule as a maker of checks: a call with the rule's thresholds gives the check of a run."""

    @wraps(rule)
    def make(*thresholds: Thresholds.args, **named: Thresholds.kwargs) -> Check:
        @wraps(rule)
        def judged(run: Run) -> Finding:
            return rule(run, *thresholds, **named)

        return judged

    return make
