"""Which runs of a reproduction are made when: the longest first, as many side by side as memory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from paper import perform
from running import estimate
from studies.sweeping.task import Task


@cache
def _estimated(words: tuple[str, ...]) -> estimate.Estimate:
    return estimate.estimate(perform.choose(words))


def needed_bytes(task: Task) -> int:
    """The most memory that the run takes."""
    return _estimated(tuple(task.words)).memory_bytes


def longest_first(tasks: Iterable[Task]) -> list[Task]:
    """The runs in an order in which no processor waits at the end for a long run on another."""
    return sorted(tasks, key=lambda task: -_estimated(tuple(task.words)).seconds)


class MemoryBudget:
    """Runs that wait for memory: `take` hands out what fits beside the runs that were handed out and have not ended.

    `refused` has a sentence for each run that would not fit alone. `available_bytes` is what processes may have in all.
    """

    def __init__(
        self, tasks: Iterable[Task], available_bytes: int, memory_of: Callable[[Task], int] = needed_bytes
    ) -> None:
        self._free = int(estimate.MEMORY_SHARE_MAX * available_bytes)
        self._needed: dict[str, int] = {}
        self._waiting: list[Task] = []
        self.refused: list[str] = []
        for task in tasks:
            needed = memory_of(task)
            if needed <= self._free:
                self._needed[task.key] = needed
                self._waiting.append(task)
            else:
                self.refused.append(
                    f"figure {task.words[0]}, {task.words[1]}: about {estimate.size(needed)} of memory, and this"
                    f" machine has {estimate.size(available_bytes)} to spare"
                )

    def __bool__(self) -> bool:
        """Whether runs wait."""
        return bool(self._waiting)

    def take(self) -> Task | None:
        """The first run that fits; None if none does before another has ended."""
        for at, task in enumerate(self._waiting):
            if self._needed[task.key] <= self._free:
                self._free -= self._needed[task.key]
                return self._waiting.pop(at)
        return None

    def ended(self, key: str) -> None:
        """A run that was taken has ended, and has given its memory back."""
        self._free += self._needed.pop(key)
