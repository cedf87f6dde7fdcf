"""The first step of every run: refuse what this machine or these faults cannot do, before anything is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import controller
from running import estimate
from running.directory import RunDirectory
from running.estimate import Estimate
from running.rehearsal import rehearse
from running.runner import Runner
from running.spec import RunSpec


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A spec that was checked, and what the run will take. Only `prepare` makes one, and only this makes runners."""

    spec: RunSpec
    needed: Estimate

    def runner(self, directory: RunDirectory, tell: Callable[[str], None] = lambda event: None) -> Runner:
        """The runner that carries the spec out in that folder."""
        return Runner(self.spec, directory, tell)


def prepare(spec: RunSpec) -> PreparedRun:
    """The run, checked. ValueError names what is wrong: memory, tables too small, impossible faults."""
    needed = estimate.check(spec)
    controller.check(spec.plan)
    rehearse(spec)
    return PreparedRun(spec, needed)
