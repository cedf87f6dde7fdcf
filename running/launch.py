"""The way from a spec to a folder: refuse what this machine or these faults cannot do, then start the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import controller
from running import estimate
from running.directory import RunDirectory
from running.estimate import Estimate
from running.runner import MakeWorld, Runner
from running.spec import RunSpec
from running.timeline import rehearse
from running.worlds.simulated import SimulatedWorld, collecting

__all__ = ["launch", "made"]


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


def launch(runner: Runner, opened: Callable[[MakeWorld], MakeWorld] = lambda make_world: make_world) -> None:
    """Carry the run out. `opened` wraps what makes the world, for a page that may interfere with it."""
    spec, directory = runner.spec, runner.directory
    given = spec.plan, spec.choices.transport, spec.seed, directory, runner.tell
    if spec.choices.world == "simulated":
        with collecting():
            runner.run(opened(partial(SimulatedWorld, *given)))
        return
    from running.worlds.emulated import EmulatedWorld  # late: virtual time needs neither Mininet nor namespaces

    runner.run(opened(partial(EmulatedWorld, *given)))


def made(spec: RunSpec, root: Path) -> Path:
    """The folder, below `root`, of the run that was made. ValueError for a run that cannot be made here."""
    prepared = prepare(spec)
    directory = RunDirectory.create(root, spec.scenario.name, spec.seed)
    launch(prepared.runner(directory))
    return directory.path
