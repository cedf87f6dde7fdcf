"""A share of runs, and the interval in which the true share lies with 95 % confidence.

Wilson's score interval (E. B. Wilson, JASA 22, 1927; the method 3 of R. G. Newcombe, Statistics in Medicine 17, 1998).
Where all runs or none count, it is replaced by the exact one-sided bound: with n runs and no failure the true share of
successes is at least 0.05^(1/n), which is 99 % from 299 runs on.
"""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `of` runs, and the interval from `low` to `high`, all of it in 0 to 1. Of no runs nothing is known."""

    count: int
    of: int
    low: float
    high: float

    @property
    def value(self) -> float | None:
        return self.count / self.of if self.of else None

    def describe(self) -> str:
        """Such as 99.0 % (97.1 to 99.7)."""
        if not self.of:
            return "–"
        low, high = down(self.low), up(self.high)
        if self.count == self.of:
            return f"{100:g} % (at least {low})"
        if not self.count:
            return f"0 % (at most {high})"
        return f"{rounded(100 * self.count / self.of)} % ({low} to {high})"

    def interval(self) -> str:
        """Such as 95 % interval 22.3 to 100 %."""
        return f"95 % interval {down(self.low).removesuffix('.0')} to {up(self.high).removesuffix('.0')} %"


def share(count: int, of: int, confidence: float = CONFIDENCE) -> Share:
    """The share with its interval. ValueError unless 0 <= count <= of."""
    if not 0 <= count <= of:
        raise ValueError(f"{count} of {of} is no share")
    if not of:
        return Share(0, 0, 0.0, 1.0)
    least = (1 - confidence) ** (1 / of)
    if count == of:
        return Share(count, of, least, 1.0)
    if not count:
        return Share(count, of, 0.0, 1 - least)
    return Share(count, of, *wilson(count, of, confidence))


def wilson(count: int, of: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's score interval, without correction for continuity."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p = count / of
    centre, half = p + z * z / (2 * of), z * sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    scale = 1 + z * z / of
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def rounded(percent: float) -> str:
    """A share between 0 and 100 %, with so many digits that it is neither."""
    digits = 1
    while float(text := f"{percent:.{digits}f}") in (0.0, 100.0):
        digits += 1
    return text


def down(value: float) -> str:
    """A lower bound in per cent, rounded so that it still is one."""
    return f"{int(value * 1000 + 1e-9) / 10:.1f}"


def up(value: float) -> str:
    """An upper bound in per cent, rounded so that it still is one."""
    return f"{-int(-value * 1000 // 1) / 10:.1f}"
