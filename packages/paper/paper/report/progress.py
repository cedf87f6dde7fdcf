"""How far a reproduction is: a bar on a terminal, and a line per run."""

from rich.console import Console, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table

from paper.perform import FigureTask
from paper.reproduction import Reproduction
from studies.farm import Progress
from studies.sweeping import Row


class ReproductionProgress(Progress):
    """`ended` after each run."""

    def __init__(self, console: Console, reproduction: Reproduction, plain: bool = False) -> None:
        self._reproduction = reproduction
        self._ended = ""
        super().__init__(console, plain)

    def line(self) -> str:
        return f"[{self._done}/{self._reproduction.total}] {self._ended}"

    def picture(self) -> RenderableType:
        total, grid = self._reproduction.total, Table.grid(padding=(0, 1))
        grid.add_row(
            "figures", ProgressBar(total=max(total, 1), completed=self._done, width=40), f"{self._done}/{total}"
        )
        return grid

    @property
    def _done(self) -> int:
        return self._reproduction.made_before + self._reproduction.made

    def ended(self, task: FigureTask, row: Row) -> None:
        """A run has ended."""
        self._ended = f"{task.title}: {f'broken off: {row.error}' if row.error else f'{row.seconds:.1f} s'}"
        self.tell(now=True)
