"""Running: bring a lab up, drive its hosts, break things on time, and journal all of it."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from running.choices import SECONDS_MAX, Choices
    from running.directory import RunDirectory
    from running.launch import PreparedRun, prepare
    from running.live import Watcher
    from running.programs import check_command
    from running.runner import Runner, group
    from running.spec import RunSpec
    from running.timeline import moments, rehearse
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "SECONDS_MAX", "Choices", "PreparedRun", "RunDirectory", "RunSpec", "Runner", "Watcher", "assessment",
    "calibration", "check_command", "directory", "document", "estimate", "fault_words", "group", "identity", "launch",
    "moments", "options", "parallel", "prepare", "ranks", "rehearse", "sdk", "tracing", "traffic", "transport_choice",
    "view", "workers", "worlds",
]  # fmt: skip
