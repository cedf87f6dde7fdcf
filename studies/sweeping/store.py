"""The rows of sweeps, in one SQLite file: each row is stored completely or not at all, whichever process is killed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from common import files, locks
from studies.sweeping.row import Row

NAME = "rows.sqlite"
WAIT_S = 60.0  # for another sweep that writes at this moment
T = TypeVar("T")
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
        try:
            columns, sound = self._patiently(self._checked)
        except sqlite3.Error as error:
            self._database.close()
            raise self._said(error) from None
        if columns != ["key", "row"] or sound != "ok":
            self._database.close()
            why = f"its table has the columns {', '.join(columns)}" if sound == "ok" else " ".join(sound.split())
            raise ValueError(f"{self.path} must be a store of rows ({why}): move it away, and a new one is made")

    def _said(self, error: sqlite3.Error) -> ValueError | OSError:
        """What is wrong: a full disk or another sweep's lock passes; only a file that is no database must go."""
        if isinstance(error, sqlite3.OperationalError):
            return OSError(f"{self.path} cannot be used now: {error}")
        return ValueError(f"{self.path} must be a store of rows ({error}): move it away, and a new one is made")

    def _checked(self) -> tuple[list[str], str]:
        """The columns of the table, which is made if it is missing, and what SQLite says of the file."""
        self._database.execute("CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, row TEXT NOT NULL)")
        columns = [name for _, name, *_ in self._database.execute("PRAGMA table_info(rows)")]
        (sound,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        return columns, str(sound)

    def _patiently(self, act: Callable[[], T]) -> T:
        """Carry out what another process may have locked the store against: a long wait is told, and ends."""
        try:
            return act()
        except sqlite3.OperationalError as error:
            left_s = max(0.0, WAIT_S - locks.TELL_S)
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or not left_s:
                raise
        locks.tell(f"waiting for {self.path}, at most {left_s:.0f} s more: {locks.holder(self.path)} holds its lock")
        self._database.execute(f"PRAGMA busy_timeout = {round(left_s * 1000)}")
        try:
            return act()
        finally:
            self._database.execute(f"PRAGMA busy_timeout = {round(locks.TELL_S * 1000)}")

    def __enter__(self) -> RowStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, *rows: Row) -> None:
        """Keep rows, all or none of them; one that is there already stays, unless `find` told that it is damaged."""
        texts = [(row.key, row.to_text()) for row in rows]
        again = [(row.key,) for row in rows if row.key in self._damaged]

        def insert() -> None:
            with self._database:
                self._database.executemany("DELETE FROM rows WHERE key = ?", again)
                self._database.executemany("INSERT OR IGNORE INTO rows VALUES (?, ?)", texts)

        try:
            self._patiently(insert)
        except sqlite3.Error as error:
            raise self._said(error) from None
        self._damaged -= {key for (key,) in again}

    def find(self, keys: Iterable[str]) -> dict[str, Row]:
        """The rows that there are among these keys. Damaged ones are told and left out."""
        wanted, found = list(keys), {}
        for start in range(0, len(wanted), ASKED_AT_ONCE):
            some = wanted[start : start + ASKED_AT_ONCE]
            marks = ",".join("?" * len(some))
            try:
                query = f"SELECT key, row FROM rows WHERE key IN ({marks})"
                rows = self._patiently(partial(self._selected, query, some))
            except sqlite3.Error as error:
                raise self._said(error) from None
            for key, text in rows:
                try:
                    found[key] = Row.from_text(text)
                except (ValueError, TypeError, RecursionError) as error:
                    self._damaged.add(key)
                    locks.tell(
                        f"{self.path}: the row of key {key} must be one of a sweep ({error}): its run is made again"
                    )
        return found

    def _selected(self, query: str, values: Sequence[str]) -> list[tuple[str, str]]:
        return self._database.execute(query, values).fetchall()

    def __len__(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM rows").fetchone()[0])
