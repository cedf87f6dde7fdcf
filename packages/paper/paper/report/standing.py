"""How the figures stand together: the numbers at the top of the page and of `reproduction.json`."""

import json
from collections.abc import Sequence
from typing import Any

from paper import outcome as verdict
from paper.outcome import Comparison, Outcome, count, rounded
from paper.report import causes


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Counts of quantities of the paper by verdict, and of its orders, for these figures together.

    `told_twice`: near or compatible rows with the number and interval of another row of their figure.
    `any_spray`: near rows that are only known to fail without spraying.
    """
    verdicts = count(outcomes)
    near = [
        (outcome.figure.name, comparison)
        for outcome in outcomes
        for comparison in outcome.comparisons
        if comparison.of_paper and comparison.verdict in (*verdict.NEAR_ENOUGH, verdict.INSIDE)
    ]
    facts = [(name, row.quantity.paper, row.interval) for name, row in near if row.interval is not None]
    orders = [order.agrees for outcome in outcomes for order in outcome.orders if order.agrees is not None]
    return {
        "judged": sum(verdicts[known] for known in verdict.JUDGED),
        "within_5": verdicts[verdict.WITHIN_NEAR],
        "within_15": verdicts[verdict.WITHIN_NEAR] + verdicts[verdict.WITHIN_FAR],
        "compatible": verdicts[verdict.INSIDE],
        "told_twice": len(facts) - len(set(facts)),
        "any_spray": sum(row.verdict in verdict.NEAR_ENOUGH and verdict.NO_SPRAY in row.power for _, row in near),
        "within_reading": verdicts[verdict.WITHIN_READING],
        "calibrating": verdicts[verdict.CALIBRATION],
        "without_power": verdicts[verdict.POWERLESS],
        "out_of_reach": verdicts[verdict.UNREACHABLE],
        "not_run": verdicts[verdict.NOT_RUN],
        "order_compared": len(orders),
        "order_agree": sum(orders),
    }


def document(outcomes: Sequence[Outcome]) -> str:
    """`reproduction.json`: the counts, then every row and every order."""
    content = {
        **counts(outcomes),
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
        "counts": comparison.of_paper and comparison.verdict in verdict.JUDGED,
        "fails_with": None if quantity.fails is None else quantity.fails.knob,
        "fails_at": shortened(comparison.failing),
    }
    return {**entries, "cause": causes.row_cause(entries)}


def shortened(value: float | None) -> float | None:
    """A number as `reproduction.json` has it."""
    return None if value is None else rounded(value)
