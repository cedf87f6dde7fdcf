"""Workloads that others wrote: connection matrices of htsim and GOAL programs, read into one form and written again."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from schedules.builder import RANKS_MAX
    from schedules.errors import ScheduleError, at
    from schedules.reading import SUFFIXES, digest_of, read, shared, watch_with
    from schedules.schedule import RankOperations, Schedule
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "RANKS_MAX", "SUFFIXES", "RankOperations", "Schedule", "ScheduleError", "at", "collectives", "digest_of",
    "operation", "patterns", "read", "shared", "training", "watch_with",
]  # fmt: skip
