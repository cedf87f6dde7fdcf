"""The command line: one module per command, and what commands share."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from cli.command_table import COMPILER, VIRTUAL, CommandEntry, add
    from cli.commands.counters import show
    from cli.commands.run import refuse_second_lab
    from cli.compiled_form import LONG_S, want_compiled
    from cli.options import add_exercise, add_json, add_runs, add_workers, check_workers, workers_for
    from cli.ownership import hand_over, hand_over_below, handing_over
    from cli.root import need_root
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "COMPILER", "LONG_S", "VIRTUAL", "CommandEntry", "add", "add_exercise", "add_json", "add_runs", "add_workers",
    "capturing", "check_workers", "hand_over", "hand_over_below", "handing_over", "need_root", "refuse_second_lab",
    "show", "want_compiled", "workers_for",
]  # fmt: skip
