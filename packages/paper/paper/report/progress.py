"""How far a reproduction is: a bar on a terminal, a line per run elsewhere."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from paper.reproduction import Reproduction
from studies.sweeping.row import Row
from studies.sweeping.task import Task


class Told:
    """A context manager; `tell` after each run. With `plain`, or without a terminal, lines and no bar."""

    def __init__(self, console: Console, reproduction: Reproduction, plain: bool = False) -> None:
        self._console = console
        self._reproduction = reproduction
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        live = console.is_terminal and not plain
        self._bar = Progress(*columns, console=console) if live else None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            reproduction = self._reproduction
            self._job = self._bar.add_task("figures", total=reproduction.total, completed=reproduction.found)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, task: Task, row: Row) -> None:
        """A run has ended."""
        done = self._reproduction.found + self._reproduction.made
        if self._bar is not None:
            self._bar.update(self._job, completed=done)
        ended = f"broken off: {row.error}" if row.error else f"{row.seconds:.1f} s"
        line = f"[{done}/{self._reproduction.total}] figure {task.words[0]}, {task.words[1]}: {ended}"
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)
