"""The sweep: which runs are missing, which engine makes them, and when to stop."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from shlex import join
from typing import TypeVar

from common import files, locks, plain_file
from studies.farm.engine import Engine
from studies.sweeping.row import Row
from studies.sweeping.subject import Subject
from studies.sweeping.task import Task
from studies.sweeping.until import Until
from studies.sweeping.variant import Variant

NAME = "rows.sqlite"
WAIT_S = 60.0  # for another sweep that writes at this moment
T = TypeVar("T")
TABLE = "CREATE TABLE rows (key TEXT PRIMARY KEY, row TEXT NOT NULL)"
SCHEMA = (("table", "rows", TABLE), ("index", "sqlite_autoindex_rows_1", None))
HEAP_BYTES = 256 << 20
"""Of SQLite in this process: a file of a million tables takes more."""
ASKED_AT_ONCE = 500  # keys: SQLite allows 999 variables in a statement at least


class RowStore:
    """Rows by key, of all sweeps together. A context manager."""

    def __init__(self, folder: Path) -> None:
        self._damaged: set[str] = set()  # keys of rows that no reader takes: the run is made again
        files.make_folder(folder)
        self.path = folder / NAME
        locks.close_to_others(self.path)  # a user who can read it could lock it
        try:
            self._database = sqlite3.connect(self.path, timeout=min(locks.TELL_S, WAIT_S))
        except sqlite3.Error as error:
            raise self._said(error) from None
        self._database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, plain_file.LINE_BYTES_MAX)
        try:
            self._database.execute(f"PRAGMA hard_heap_limit = {HEAP_BYTES}")
            sound = self._patiently(lambda: str(self._database.execute("PRAGMA quick_check(1)").fetchone()[0]))
            if sound != "ok":
                raise sqlite3.DatabaseError(" ".join(sound.split()))
        except BaseException as error:
            self._database.close()
            if isinstance(error, sqlite3.Error | MemoryError):
                raise self._said(error) from None
            raise

    def _said(self, error: sqlite3.Error | MemoryError) -> ValueError | OSError:
        """The right error: a full disk or another sweep's lock passes; only a file that is no database must go."""
        if isinstance(error, sqlite3.OperationalError):
            return OSError(f"{self.path} cannot be used now: {error}")
        return ValueError(f"{self.path} must be a store of rows ({error}): move it away, and a new one is made")

    def _patiently(self, act: Callable[[], T], begin: str = "BEGIN") -> T:
        """Carry out what another process may have locked the store against: a long wait is told, and ends."""
        try:
            return self._checked(act, begin)
        except sqlite3.OperationalError as error:
            left_s = max(0.0, WAIT_S - locks.TELL_S)
            # Python's own errors, such as of a text that is not UTF-8, have no code.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY or not left_s:
                raise
        locks.tell(f"waiting for {self.path}, at most {left_s:.0f} s more: {locks.holder(self.path)} holds its lock")
        self._database.execute(f"PRAGMA busy_timeout = {round(left_s * 1000)}")
        try:
            return self._checked(act, begin)
        finally:
            self._database.execute(f"PRAGMA busy_timeout = {round(locks.TELL_S * 1000)}")

    def _checked(self, act: Callable[[], T], begin: str) -> T:
        """Carry out `act` in a transaction, in which the store is the lab's own: a trigger, a check or a computed
        column of another user would be carried out with it, and might never end. An empty file becomes a store."""
        for end in ("-journal", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                plain_file.open_plain(f"{self.path}{end}").close()  # SQLite would wait at a FIFO for ever
        if not self._schema():
            self._database.execute(TABLE.replace("TABLE", "TABLE IF NOT EXISTS", 1))
        with self._database:
            self._database.execute(begin)
            for kind, name in (item[:2] for item in self._schema() if item not in SCHEMA):
                raise sqlite3.DatabaseError(f"its {kind} {str(name)[:80]} is not the lab's")
            return act()

    def _schema(self) -> list[tuple[object, ...]]:
        return self._database.execute("SELECT type, name, sql FROM sqlite_master LIMIT 3").fetchall()

    def __enter__(self) -> RowStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, *rows: Row) -> None:
        """Keep rows, all or none of them; one that is there already stays, unless `find` told that it is damaged."""
        texts = [(row.key, row.to_text()) for row in rows]
        again = [(row.key,) for row in rows if row.key in self._damaged]

        def insert() -> None:
            self._database.executemany("DELETE FROM rows WHERE key = ?", again)
            self._database.executemany("INSERT OR IGNORE INTO rows VALUES (?, ?)", texts)

        try:
            self._patiently(insert, "BEGIN IMMEDIATE")
        except (sqlite3.Error, MemoryError) as error:
            raise self._said(error) from None
        self._damaged -= {key for (key,) in again}

    def find(self, keys: Iterable[str]) -> dict[str, Row]:
        """The rows that there are among these keys. Damaged ones are told and left out."""
        wanted, stored = list(keys), {}

        def select(some: Sequence[str]) -> None:
            marks = ",".join("?" * len(some))
            query = f"SELECT key, CAST(row AS BLOB) FROM rows WHERE key IN ({marks})"  # a text may be no UTF-8
            for key, text in self._database.execute(query, some):
                try:
                    stored[key] = Row.from_text(text)
                except (ValueError, TypeError, RecursionError) as error:
                    self._damaged.add(key)
                    locks.tell(
                        f"{self.path}: the row of key {key} must be one of a sweep ({error}): its run is made again"
                    )

        for start in range(0, len(wanted), ASKED_AT_ONCE):
            try:
                self._patiently(partial(select, wanted[start : start + ASKED_AT_ONCE]))
            except (sqlite3.Error, MemoryError) as error:
                raise self._said(error) from None
        return stored

    def __len__(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM rows").fetchone()[0])


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
                    first_words, other = (join(same.variant.arguments) for same in (subjects[first], subject))
                    raise ValueError(
                        f"variants must differ, and no two of them be the same run (got {first_words} and {other})"
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
        by_seed, test = self._rows[index], self._tests[index]
        counted = self.seeds[: test.runs] if test is not None and test.known is not None else self.seeds
        return [by_seed[seed] for seed in counted if seed in by_seed]

    def test(self, index: int) -> Until | None:
        """The knowledge of `--until` about a subject."""
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
