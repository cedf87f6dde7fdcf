"""The start of a prepared run, in the world that its spec names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from running.runner import MakeWorld, Runner
from running.worlds.simulated import SimulatedWorld


def launch(runner: Runner, opened: Callable[[MakeWorld], MakeWorld] = lambda make_world: make_world) -> None:
    """Carry the run out. `opened` wraps what makes the world, for a page that may interfere with it."""
    spec, directory = runner.spec, runner.directory
    given = spec.plan, spec.choices.transport, spec.seed, directory, runner.tell
    if spec.choices.world == "simulated":
        runner.run(opened(partial(SimulatedWorld, *given)))
        return
    from running.machine.processor import watched  # late: virtual time needs neither Mininet nor namespaces
    from running.worlds.emulated import EmulatedWorld

    runner.run(opened(partial(EmulatedWorld, *given)), partial(watched, directory))
