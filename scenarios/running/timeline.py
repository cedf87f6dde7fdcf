"""A timeline carried out: instants at which to inject a fault or undo one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.scenario import Fault


@dataclass(frozen=True, slots=True)
class Moment:
    """At `at_s` seconds into the run, begin or end `fault`."""

    at_s: float
    begin: bool
    fault: Fault


def moments(faults: Sequence[Fault], starts_s: dict[str, float]) -> list[Moment]:
    """All beginnings and ends in order of time. `starts_s` is when each phase starts.

    At the same instant ends come first, so that a target is whole before it breaks again.
    """
    result = []
    for fault in faults:
        if fault.phase not in starts_s:
            raise ValueError(f"{fault.verb} {fault.target}: no phase {fault.phase!r}: there is {', '.join(starts_s)}")
        at_s = starts_s[fault.phase] + fault.at_s
        result.append(Moment(at_s, True, fault))
        if fault.for_s is not None:
            result.append(Moment(at_s + fault.for_s, False, fault))
    return sorted(result, key=lambda moment: (moment.at_s, moment.begin))
