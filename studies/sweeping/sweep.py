"""The sweep: which runs are missing, which engine makes them, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from shlex import join

from studies.farm.engine import Engine
from studies.sweeping.row import Row
from studies.sweeping.store import RowStore
from studies.sweeping.subject import Subject
from studies.sweeping.task import Task
from studies.sweeping.until import Until
from studies.sweeping.variant import Variant

AHEAD = 2  # tasks for each worker: one that it makes and one that waits for it


class Sweep:
    """Every subject on every seed. `made` counts the runs that were made now, `broken` has those that an exception
    ended; the others were in the store.

    Rows are kept the moment they come, so a sweep that is broken off at any point goes on from there. Results do not
    depend on who made a run when: with `until`, a subject's rows end where its test does, in the order of seeds.
    ValueError for two subjects with the same runs: one row cannot count for both.
    """

    def __init__(
        self, subjects: Sequence[Subject], seeds: Sequence[int], store: RowStore, until: float | None = None
    ) -> None:
        self.subjects = subjects
        self.seeds = seeds
        self.store = store
        self.made = 0
        self.broken: list[tuple[Variant, Row]] = []
        self._target = until
        self._rows: list[dict[int, Row]] = [{} for _ in subjects]
        self._tests = [Until(until) if until is not None else None for _ in subjects]
        self._tested = [0] * len(subjects)
        self._keys: dict[str, tuple[int, int]] = {}
        for seed in seeds:
            for index, subject in enumerate(subjects):
                first, _ = self._keys.setdefault(subject.key(seed), (index, seed))
                if first != index:
                    one, other = (join(same.variant.words) for same in (subjects[first], subject))
                    raise ValueError(
                        f"variants must differ, and no two of them be the same run (got {one} and {other})"
                    )
        for key, row in store.find(self._keys).items():
            index, seed = self._keys[key]
            self._rows[index][seed] = row
        self.found = sum(map(len, self._rows))
        for index in range(len(subjects)):
            self._test(index)

    def run(self, engine: Engine[Task, Row], tell: Callable[[], None] = lambda: None) -> None:
        """Make what is missing; `tell` is called after each run. Leaves `engine` to its owner."""
        asked = self._missing()
        exhausted = False
        while True:
            while not exhausted and engine.pending < engine.workers * AHEAD:
                wanted = next(asked, None)
                if wanted is None:
                    exhausted = True
                    break
                index, seed = wanted
                engine.submit(self.subjects[index].task(seed))
            if not engine.pending or self.decided:
                return
            self._take(engine.next())
            tell()

    @property
    def decided(self) -> bool:
        """Whether nothing more has to be run."""
        return all(self.over(index) for index in range(len(self.subjects)))

    def over(self, index: int) -> bool:
        """Whether a subject needs no more runs."""
        test = self._tests[index]
        return (test is not None and test.known is not None) or len(self._rows[index]) == len(self.seeds)

    def rows(self, index: int) -> list[Row]:
        """A subject's rows in the order of seeds, as far as they count."""
        found, test = self._rows[index], self._tests[index]
        counted = self.seeds[: test.runs] if test is not None and test.known is not None else self.seeds
        return [found[seed] for seed in counted if seed in found]

    def test(self, index: int) -> Until | None:
        """What `--until` knows about a subject."""
        return self._tests[index]

    def _missing(self) -> Iterator[tuple[int, int]]:
        """Seed by seed, so that what is known grows evenly; never a subject about which enough is known."""
        for seed in self.seeds:
            for index in range(len(self.subjects)):
                if seed not in self._rows[index] and not self.over(index):
                    yield index, seed

    def _take(self, row: Row) -> None:
        index, seed = self._keys[row.key]
        self._rows[index][seed] = row
        if row.error:  # a full disk is no property of the run: it is made again the next time
            self.broken.append((self.subjects[index].variant, row))
        else:
            self.store.add(row)
            self.made += 1
        self._test(index)

    def _test(self, index: int) -> None:
        test, rows = self._tests[index], self._rows[index]
        while test is not None and self._tested[index] < len(self.seeds):
            row = rows.get(self.seeds[self._tested[index]])
            if row is None:
                return
            test.add(row.verdict)
            self._tested[index] += 1
