"""Algorithms against each other on the same seeds: `./lab contest`."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from studies.contest.algorithm import Algorithm, parse, variants
    from studies.contest.report import Kept
    from studies.contest.result import Match, ranks, records
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["Algorithm", "Kept", "Match", "parse", "ranks", "records", "report", "text", "variants", "worst"]
