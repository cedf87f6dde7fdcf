"""The first step of every run: refuse what this machine or these faults cannot do, before anything is built."""

from __future__ import annotations

import controller
from running import estimate
from running.estimate import Estimate
from running.rehearsal import rehearse
from running.runner import Choices
from scenarios.scenario import Scenario


def prepare(scenario: Scenario, choices: Choices) -> Estimate:
    """What the run will take. ValueError names what is wrong: memory, tables too small, impossible faults."""
    needed = estimate.check(scenario, choices)
    controller.check(choices.running_plan)
    rehearse(scenario, choices)
    return needed
