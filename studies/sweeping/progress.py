"""How far a sweep is, and what is known so far."""

import time
from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from common.terminal.counted import counted
from common.terminal.printable import printable
from studies.farm.engine import Engine
from studies.farm.progress import Progress
from studies.sweeping.proportion import share
from studies.sweeping.row import Row
from studies.sweeping.sweep import Sweep
from studies.sweeping.task import Task

NAMED = 10
"""Runs that were broken off, each named at the end; of more of them only the number."""


class SweepProgress(Progress):
    """A bar and what is known, for each variant."""

    def __init__(
        self,
        console: Console,
        sweep: Sweep,
        engine: Engine[Task, Row],
        plain: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sweep = sweep
        self._engine = engine
        super().__init__(console, plain, clock)

    def __exit__(self, *_: object) -> None:
        """Name the runs that were broken off, also where an error ends the sweep."""
        super().__exit__()
        broken = self._sweep.broken
        lines = [f"broken off: {variant.command(row.seed)}: {row.error}" for variant, row in broken[:NAMED]]
        lines += [f"and {len(broken) - NAMED} more were broken off"] if len(broken) > NAMED else []
        for line in lines:
            self._console.print(printable(line), highlight=False, soft_wrap=True, markup=False)

    def line(self) -> str:
        known = "; ".join(
            f"{subject.variant.title}: {self._known(index)}" for index, subject in enumerate(self._sweep.subjects)
        )
        return f"{self.pace()}; {known}"

    def pace(self) -> str:
        """Runs made and found, how fast, and how long it may take."""
        made, left = self._sweep.made, self._left()
        minutes = (self._clock() - self._began_s) / 60
        words = f"{counted(made, 'run')} made, {self._sweep.found} kept from before"
        if self._sweep.broken:
            words += f", {len(self._sweep.broken)} broken off"
        if made and minutes > 0:
            words += f", {made / minutes:.1f} a minute"
            if left:
                words += f", {left} to go: at most {max(1, round(left * minutes / made))} min"
        if self._engine.died:
            words += f"; {self._engine.died} workers died, and their runs were made again"
        return words

    def picture(self) -> RenderableType:
        grid = Table.grid(padding=(0, 2))
        for index, subject in enumerate(self._sweep.subjects):
            done = len(self._sweep.rows(index))
            total = done if self._sweep.over(index) else len(self._sweep.seeds)
            bar = ProgressBar(total=max(total, 1), completed=done, width=24)
            grid.add_row(Text(subject.variant.title), bar, f"{done}/{total}", self._known(index))
        return Group(grid, Text(self.pace(), style="dim"))

    def _known(self, index: int) -> str:
        rows, test = self._sweep.rows(index), self._sweep.test(index)
        if not rows:
            return "nothing known yet"
        words = f"true on {share(sum(row.passed for row in rows), len(rows)).describe()} of {len(rows)}"
        return words if test is None or test.known is None else f"{words}: {'known' if test.known else 'refuted'}"

    def _left(self) -> int:
        sweep = self._sweep
        return sum(len(sweep.seeds) - len(sweep.rows(i)) for i in range(len(sweep.subjects)) if not sweep.over(i))
