"""Hunting: random timelines, the invariants that must hold under all of them, and the smallest one that breaks one."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from studies.hunting.attempt import AttemptOutcome, AttemptPool
    from studies.hunting.case import Case
    from studies.hunting.hunt import Hunt, Shrinker
    from studies.hunting.progress import HuntProgress
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["AttemptOutcome", "AttemptPool", "Case", "Hunt", "HuntProgress", "Shrinker", "draw", "found"]
