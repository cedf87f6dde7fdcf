"""A variant that is to be run: checked, with the key of each of its runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from running import RunSpec, prepare
from running.document import written
from studies.sweeping.task import Task, hashes_of, key_of
from studies.sweeping.variant import Variant

__all__ = ["subject", "with_journals"]

Chosen = Callable[[Mapping[str, Any]], RunSpec]
"""From options of `./lab run` to the run that they describe."""


@dataclass(frozen=True, slots=True)
class Subject:
    """`options` are those of `spec`, whose seed does not matter.

    `memory_bytes` is the most memory that one run takes, `seconds` the most time, interpreted.
    """

    variant: Variant
    spec: RunSpec
    options: Mapping[str, Any]
    memory_bytes: int
    seconds: float

    def task(self, seed: int) -> Task:
        """The run with this seed."""
        run = written(self.spec.with_seed(seed))
        return Task(self.key(seed), run, self.variant.command(seed), hashes_of(self.options))

    @property
    def title(self) -> str:
        """The scenario's claim."""
        return self.spec.scenario.title

    def key(self, seed: int) -> str:
        """The key of that run's row."""
        return key_of(self.options, seed)


def subject(variant: Variant, chosen: Chosen, seed: int) -> Subject:
    """The variant, gone through on paper with one seed. ValueError says what is wrong with it."""
    spec = chosen({**variant.asked, "seed": seed})
    needed = prepare(spec).needed
    return Subject(variant, spec, spec.options(), needed.memory_bytes, needed.seconds)


def with_journals(task: Task, runs: str) -> Task:
    """The same run, to be kept with its journals and report in a folder of runs."""
    return replace(task, keep=runs)
