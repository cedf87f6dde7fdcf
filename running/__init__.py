"""Running: bring a lab up, drive its hosts, break things on time, and journal all of it."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from running.directory import RunDirectory
    from running.options import SECONDS_MAX, Choices
    from running.programs import check_command
    from running.runner import Runner, group, prepare
    from running.spec import RunSpec, scenario_of
    from running.timeline import moments, rehearse
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "SECONDS_MAX", "Choices", "RunDirectory", "RunSpec", "Runner", "assessment", "calibration", "check_command",
    "directory", "document", "estimate", "fault_words", "group", "identity", "long_files", "moments", "options",
    "parallel", "prepare", "rehearse", "runner", "scenario_of", "sdk", "tracing", "transport_choice", "view", "workers",
    "worlds",
]  # fmt: skip
