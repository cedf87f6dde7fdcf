"""The reproduction: which runs of which figures are missing, who makes them, and what they gave."""

from collections.abc import Callable, Iterable, Sequence

from paper.breaking import worded
from paper.figure import Figure
from paper.memory import MemoryBudget
from paper.outcome import Outcome
from paper.perform import FigureTask, task
from studies.farm import Engine
from studies.sweeping import Row, RowStore

Place = tuple[str, str]
"""The name of a figure, and of one of its runs."""


class Reproduction:
    """Runs of some figures. Rows are kept the moment they come, so that what is broken off goes on from there."""

    def __init__(
        self,
        figures: Sequence[Figure],
        store: RowStore,
        short: bool = False,
        *,
        intervals: bool = False,
        ocp: bool = False,
    ) -> None:
        """`intervals`: with the long runs once more, with other seeds. `ocp`: MRC alone, as its specification words
        it."""
        self.figures = figures
        self.made = 0
        self._store = store
        self._parts: dict[str, list[str]] = {}
        self._tasks: dict[str, FigureTask] = {}
        for figure in figures:
            parts = [part for part in figure.parts(short) if intervals or not part.again]
            if ocp:
                parts = [worded(part) for part in parts if part.transport.agent == "mrc"]
            self._parts[figure.name] = [part.name for part in parts]
            for part in parts:
                wanted = task(figure, part, short)
                self._tasks[wanted.key] = wanted
        self._rows: dict[str, Row] = store.find(self._tasks)

    def take(self, rows: Iterable[Row]) -> None:
        """Keep runs of these figures that were made elsewhere; runs of other code have other keys. ValueError names
        a number that one of them lacks, and then none is kept."""
        known, had = [row for row in rows if row.key in self._tasks], self._rows
        self._rows = {row.key: row for row in known} | had
        if lacking := [f"figure {o.figure.name}, {name}" for o in self.outcomes() for name in o.lacking]:
            self._rows = had
            raise ValueError(f"each run must have its figure's numbers and curves (missing: {', '.join(lacking[:3])})")
        self._store.add(*known)

    @property
    def missing(self) -> list[FigureTask]:
        """The runs that nobody has made yet, in the order of the figures."""
        return [task for key, task in self._tasks.items() if key not in self._rows]

    @property
    def made_before(self) -> int:
        """The runs that were made before."""
        return len(self._rows) - self.made

    @property
    def total(self) -> int:
        """How many runs there are."""
        return len(self._tasks)

    @property
    def rows(self) -> dict[Place, Row]:
        """The runs that there are, but for those that were broken off."""
        return {
            (task.figure, task.part): self._rows[key]
            for key, task in self._tasks.items()
            if key in self._rows and not self._rows[key].error
        }

    def run(
        self,
        engine: Engine[FigureTask, Row],
        budget: MemoryBudget,
        tell: Callable[[FigureTask, Row], None] = lambda task, row: None,
    ) -> None:
        """Make the runs that wait for memory; `tell` is called after each."""
        while budget or engine.pending:
            while engine.pending < engine.workers and (task := budget.take()):
                engine.submit(task)
            row = engine.next()
            budget.ended(row.key)
            self.made += 1
            self._rows[row.key] = row
            if not row.error:
                self._store.add(row)
            tell(self._tasks[row.key], row)

    def outcomes(self) -> list[Outcome]:
        """The outcome of each figure so far."""
        by_part = {(task.figure, task.part): key for key, task in self._tasks.items()}
        outcomes = []
        for figure in self.figures:
            parts = self._parts[figure.name]
            keys = {part: by_part[figure.name, part] for part in parts}
            rows = {part: self._rows[key] for part, key in keys.items() if key in self._rows}
            outcomes.append(Outcome(figure, rows, parts))
        return outcomes
