"""Other orders of a change: the same steps, at the same instants, in another sequence."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from common.seeds import Purpose, derive
from operations.rehearsal.change import ChangeStep, Planned
from operations.rehearsal.rehearse import RehearsalResult, compared, spec
from running import prepare
from studies.sweeping import PairedDifference

TRIES = 200
"""Sequences to draw before giving up: of a change with few steps most are drawn twice, or do not fit."""


def orders(planned: Planned, count: int) -> list[Planned]:
    """Up to `count` other orders, drawn from a fixed seed. An order that cannot be run is left out.

    Steps on one target overlap in some sequences, and some end after the change.
    """
    rng, known = Random(derive(0, Purpose.BACKGROUND)), {key(planned.steps)}
    drawn: list[Planned] = []
    for _ in range(TRIES):
        instants = [step.at_s for step in planned.steps]
        rng.shuffle(instants)
        steps = tuple(replace(step, at_s=at_s) for step, at_s in zip(planned.steps, instants, strict=True))
        if len(drawn) < count and key(steps) not in known:
            known.add(key(steps))
            candidate = replace(planned, name=f"{planned.name}, as {sequence(steps)}", steps=steps)
            if fits(candidate):
                drawn.append(candidate)
    return drawn


def key(steps: Sequence[ChangeStep]) -> frozenset[tuple[object, ...]]:
    """Equal for two orders in which the same happens at the same time."""
    return frozenset((step.action, step.target, step.at_s, step.for_s, step.value) for step in steps)


def sequence(steps: Sequence[ChangeStep]) -> str:
    """The steps in the order of their instants."""
    return ", ".join(f"{step.action} {step.target} at {step.at_s:g} s" for step in sorted(steps, key=lambda s: s.at_s))


def fits(planned: Planned) -> bool:
    """Whether all steps end with the change, and can be run."""
    if any(step.at_s + (step.for_s or 0.0) > planned.seconds for step in planned.steps):
        return False
    try:
        prepare(spec(planned, 1, 0))
    except ValueError:
        return False
    return True


def best(first: RehearsalResult, others: Sequence[RehearsalResult]) -> tuple[RehearsalResult, PairedDifference] | None:
    """The order with the shortest longest steps, and by how much those differ from the given order's, pair by pair."""
    comparable = [(other, difference) for other in others if (difference := compared(first, other)) is not None]
    return min(comparable, key=lambda pair: pair[1].mean, default=None)
