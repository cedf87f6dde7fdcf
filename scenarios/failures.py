"""Failures drawn from published rates: a schedule of hours, from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from random import Random

from scenarios.scenario import TimedFault

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class FailureRate:
    """How often one kind of failure happens in a whole fabric, and how long each lasts, from the least to the most."""

    per_minute: float
    lasts_s: tuple[float, float]
    source: str


LINK_FLAPS = FailureRate(
    per_minute=4.2,
    lasts_s=(0.5, 60.0),
    source="the paper, figure 5: 250 minutes, mean 4.2 flaps per minute, lowest 1, highest 13; how long a flap lasts is"
    " assumed: from half a second to the minute in which most ports recover",
)


def drawn(
    rate: FailureRate, verb: str, targets: Sequence[str], seconds: float, rng: Random, phase: str = "faults"
) -> list[TimedFault]:
    """Failures of `targets` within `seconds`: a Poisson process, each of a length whose logarithm is uniform.

    A target is not hit while it is down, and every failure is over when the time is: one that would last longer ends
    then. ValueError without targets.
    """
    if not targets:
        raise ValueError(f"{verb} needs at least one target to draw from (got none)")
    low, high = (log(length_s) for length_s in rate.lasts_s)
    found: list[TimedFault] = []
    down_until_s: dict[str, float] = {}
    at_s = rng.expovariate(rate.per_minute / MINUTE_S)
    while at_s < seconds:
        lasts_s = min(exp(rng.uniform(low, high)), seconds - at_s)
        up = [target for target in targets if down_until_s.get(target, 0.0) < at_s]
        if up and lasts_s > 0:
            target = rng.choice(up)
            down_until_s[target] = at_s + lasts_s
            found.append(TimedFault(at_s, verb, target, lasts_s, phase=phase))
        at_s += rng.expovariate(rate.per_minute / MINUTE_S)
    return found


def per_minute(faults: Sequence[TimedFault], seconds: float) -> list[int]:
    """How many begin in each whole minute: the trace of the paper's figure 5."""
    counts = [0] * int(seconds // MINUTE_S)
    for fault in faults:
        minute = int(fault.at_s // MINUTE_S)
        if minute < len(counts):
            counts[minute] += 1
    return counts
