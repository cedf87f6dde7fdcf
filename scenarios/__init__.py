"""Experiments: a timeline of faults beside the checks that judge it."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from scenarios.scenario import (
        SAMPLE_S,
        Command,
        Load,
        Phase,
        PlainScenario,
        Program,
        Scenario,
        Setting,
        TimedFault,
        Workload,
        carried_out,
        only_training,
        phases,
        training_loop,
    )
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "SAMPLE_S", "Command", "Load", "Phase", "PlainScenario", "Program", "Scenario", "Setting", "TimedFault", "Workload",
    "carried_out", "ddp", "library", "only_training", "phases", "training_loop", "user_traffic",
]  # fmt: skip
