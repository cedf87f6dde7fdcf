"""How the figures stand together: the numbers at the top of the page and of `reproduction.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paper.outcome import (
    BEYOND,
    CALIBRATION,
    INSIDE,
    JUDGED,
    NEAR_ENOUGH,
    NO_SPRAY,
    NOT_RUN,
    POWERLESS,
    UNREACHABLE,
    WITHIN_FAR,
    WITHIN_NEAR,
    WITHIN_READING,
    Comparison,
    Outcome,
    count,
    rounded,
)
from paper.report import causes


@dataclass(frozen=True, slots=True)
class Standing:
    """Counts of quantities of the paper by verdict, and of its orders; each quantity is in one of the first nine.

    `told_twice`: near or compatible rows with the number and interval of another row of their figure.
    `any_spray`: near rows that are only known to fail without spraying.
    """

    within_5: int
    within_15: int
    inside: int
    within_reading: int
    beyond: int
    calibrating: int
    without_power: int
    out_of_reach: int
    not_run: int
    order_compared: int
    order_agree: int
    told_twice: int
    any_spray: int

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Standing:
        """The counts of these figures together."""
        counts = count(outcomes)
        near = [
            (outcome.figure.name, comparison)
            for outcome in outcomes
            for comparison in outcome.comparisons
            if comparison.of_paper and comparison.verdict in (*NEAR_ENOUGH, INSIDE)
        ]
        facts = [(name, row.quantity.paper, row.interval) for name, row in near if row.interval is not None]
        orders = [order.agrees for outcome in outcomes for order in outcome.orders if order.agrees is not None]
        return cls(
            within_5=counts[WITHIN_NEAR],
            within_15=counts[WITHIN_FAR],
            inside=counts[INSIDE],
            within_reading=counts[WITHIN_READING],
            beyond=counts[BEYOND],
            calibrating=counts[CALIBRATION],
            without_power=counts[POWERLESS],
            out_of_reach=counts[UNREACHABLE],
            not_run=counts[NOT_RUN],
            order_compared=len(orders),
            order_agree=sum(orders),
            told_twice=len(facts) - len(set(facts)),
            any_spray=sum(row.verdict in NEAR_ENOUGH and NO_SPRAY in row.power for _, row in near),
        )

    @property
    def near(self) -> int:
        """The quantities that the bar counts."""
        return self.within_5 + self.within_15

    @property
    def judged(self) -> int:
        """Quantities that count."""
        return self.near + self.inside + self.within_reading + self.beyond


def document(outcomes: Sequence[Outcome]) -> str:
    """`reproduction.json`: the counts, then every row and every order."""
    standing = Standing.of(outcomes)
    content = {
        "judged": standing.judged,
        "within_5": standing.within_5,
        "within_15": standing.near,
        "compatible": standing.inside,
        "told_twice": standing.told_twice,
        "any_spray": standing.any_spray,
        "within_reading": standing.within_reading,
        "calibrating": standing.calibrating,
        "without_power": standing.without_power,
        "out_of_reach": standing.out_of_reach,
        "not_run": standing.not_run,
        "order_compared": standing.order_compared,
        "order_agree": standing.order_agree,
        "rows": all_rows(outcomes),
        "orders": [
            {
                "figure": outcome.figure.name,
                "first": order.order.first,
                "second": order.order.second,
                "paper": shortened(order.paper),
                "ours": shortened(order.ours),
                "agrees": order.agrees,
            }
            for outcome in outcomes
            for order in outcome.orders
        ],
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def all_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Every quantity of these figures, as `reproduction.json` has it."""
    return [row(outcome, comparison) for outcome in outcomes for comparison in outcome.comparisons]


def row(outcome: Outcome, comparison: Comparison) -> dict[str, Any]:
    """A quantity as `reproduction.json` has it; numbers that there are not are null."""
    quantity = comparison.quantity
    entries = {
        "figure": outcome.figure.name,
        "quantity": quantity.name,
        "unit": quantity.unit,
        "paper": shortened(quantity.paper),
        "reading_error": quantity.error,
        "source": quantity.source or outcome.figure.source,
        "ours": shortened(comparison.ours),
        "interval": None if comparison.interval is None else [shortened(value) for value in comparison.interval],
        "difference": shortened(comparison.difference),
        "verdict": comparison.verdict,
        "counts": comparison.of_paper and comparison.verdict in JUDGED,
        "fails_with": None if quantity.fails is None else quantity.fails.knob,
        "fails_at": shortened(comparison.failing),
    }
    return {**entries, "cause": causes.row_cause(entries)}


def shortened(value: float | None) -> float | None:
    """A number as `reproduction.json` has it."""
    return None if value is None else rounded(value)
