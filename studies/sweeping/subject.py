"""A variant that is to be run: checked, with the key of each of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from running.preparation import prepare
from studies.sweeping.task import Choose, Task, hashes_of, key_of
from studies.sweeping.variant import Variant


@dataclass(frozen=True, slots=True)
class Subject:
    """`options` are those of a run of it, whose seed does not matter; `title` is the scenario's claim.

    `memory_bytes` is the most memory that one run takes, `seconds` the most time, interpreted.
    """

    variant: Variant
    title: str
    options: Mapping[str, Any]
    memory_bytes: int
    seconds: float

    def task(self, seed: int) -> Task:
        """The run with this seed."""
        return Task(self.key(seed), tuple(self.variant.words), seed, hashes_of(self.options))

    def key(self, seed: int) -> str:
        """The key of that run's row."""
        return key_of(self.options, seed)


def subject(variant: Variant, choose: Choose, seed: int) -> Subject:
    """The variant, gone through on paper with one seed. ValueError says what is wrong with it."""
    spec = choose([*variant.words, "--seed", str(seed)])
    needed = prepare(spec).needed
    return Subject(variant, spec.scenario.title, spec.options(), needed.memory_bytes, needed.seconds)


def whole(task: Task, runs: str) -> Task:
    """The same run, to be kept with its journals and report in a folder of runs."""
    return replace(task, keep=runs)
