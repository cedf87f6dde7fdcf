"""The start of a prepared run, in the world that its spec names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from running.machine.watch import watched
from running.runner import MakeWorld, Runner
from running.worlds.emulated import EmulatedWorld
from running.worlds.simulated import SimulatedWorld


def launch(runner: Runner, opened: Callable[[MakeWorld], MakeWorld] = lambda make_world: make_world) -> None:
    """Carry the run out. `opened` wraps what makes the world, for a page that may interfere with it."""
    spec, directory = runner.spec, runner.directory
    simulated = spec.choices.world == "simulated"
    kind = SimulatedWorld if simulated else EmulatedWorld
    make_world = partial(kind, spec.plan, spec.choices.transport, spec.seed, directory, runner.tell)
    runner.run(opened(make_world), None if simulated else partial(watched, directory))
