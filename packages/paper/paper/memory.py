"""Which runs of a reproduction are made when: the longest first, as many side by side as memory holds."""

from collections.abc import Callable, Iterable

from paper.perform import FigureTask
from running import estimate
from running.document import spec_of


def needed_bytes(task: FigureTask) -> int:
    """The most memory that the run takes."""
    return estimate.estimate(spec_of(task.run)).memory_bytes


def longest_first(tasks: Iterable[FigureTask]) -> list[FigureTask]:
    """The runs in an order in which no processor waits at the end for a long run on another."""
    return sorted(tasks, key=lambda task: -estimate.estimate(spec_of(task.run)).seconds)


class MemoryBudget:
    """Runs that wait for memory: `take` hands out what fits beside the runs that were handed out and have not ended.

    `refused` has a sentence for each run that would not fit alone. `available_bytes` is what processes may have in all.
    """

    def __init__(
        self, tasks: Iterable[FigureTask], available_bytes: int, memory_of: Callable[[FigureTask], int] = needed_bytes
    ) -> None:
        self._free = int(estimate.MEMORY_SHARE_MAX * available_bytes)
        self._needed: dict[str, int] = {}
        self._waiting: list[FigureTask] = []
        self.refused: list[str] = []
        for task in tasks:
            needed = memory_of(task)
            if needed <= self._free:
                self._needed[task.key] = needed
                self._waiting.append(task)
            else:
                self.refused.append(
                    f"{task.title}: about {estimate.size(needed)} of memory, and this"
                    f" machine has {estimate.size(available_bytes)} to spare"
                )

    def __bool__(self) -> bool:
        """Whether runs wait."""
        return bool(self._waiting)

    def take(self) -> FigureTask | None:
        """The first run that fits; None if none does before another has ended."""
        for at, task in enumerate(self._waiting):
            if self._needed[task.key] <= self._free:
                self._free -= self._needed[task.key]
                return self._waiting.pop(at)
        return None

    def ended(self, key: str) -> None:
        """A run that was taken has ended, and has given its memory back."""
        self._free += self._needed.pop(key)
