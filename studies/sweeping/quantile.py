"""Quantiles of a metric over seeds, with intervals that assume nothing of its distribution.

The interval of a quantile lies between two order statistics whose ranks follow from the binomial distribution (H. A.
David, Order Statistics, 2.5); that of a whole ECDF is the band of Dvoretzky, Kiefer and Wolfowitz with Massart's
constant (Annals of Probability 18, 1990).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, sqrt

from studies.sweeping.proportion import CONFIDENCE


@dataclass(frozen=True, slots=True)
class Quantile:
    """`value` is the sample's; the interval holds the true one with 95 % confidence; None: too few runs for a bound."""

    value: float
    low: float | None
    high: float | None


def quantile(values: Sequence[float], p: float, confidence: float = CONFIDENCE) -> Quantile:
    """The p-quantile of at least one value: the smallest value that at least a share p of all do not exceed."""
    ordered, n = sorted(values), len(values)
    rank = min(n, max(1, -int(-p * n // 1)))
    low, high = ranks(n, p, confidence)
    return Quantile(
        ordered[rank - 1],
        ordered[low - 1] if low is not None else None,
        ordered[high - 1] if high is not None else None,
    )


def ranks(n: int, p: float, confidence: float = CONFIDENCE) -> tuple[int | None, int | None]:
    """The ranks, from 1, between which the true p-quantile of n values lies, each end with half of the error.

    None where even the smallest or the largest value is no bound.
    """
    tail = (1 - confidence) / 2
    low = high = None
    cumulated = 0.0  # the probability that at most k values are below the quantile
    for k in range(n):
        chosen = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)  # a logarithm: of 5,000 runs it would overflow
        cumulated += exp(chosen + k * log(p) + (n - k) * log(1 - p))
        if cumulated <= tail:
            low = k + 1
        if high is None and cumulated >= 1 - tail:
            high = k + 1
            break
    return low, high


def band(n: int, confidence: float = CONFIDENCE) -> float:
    """By how much the ECDF of n values may be off, anywhere."""
    return sqrt(log(2 / (1 - confidence)) / (2 * n))
