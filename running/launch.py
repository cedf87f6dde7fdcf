"""The start of a prepared run, in the world that its spec names; and the whole way from a spec to a folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from running.directory import RunDirectory
from running.preparation import prepare
from running.runner import MakeWorld, Runner
from running.spec import RunSpec
from running.worlds.simulated import SimulatedWorld, collecting

__all__ = ["launch", "made"]


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
