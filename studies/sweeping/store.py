"""The rows of sweeps, in one SQLite file: each row is stored completely or not at all, whichever process is killed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from studies.sweeping.row import Row

NAME = "rows.sqlite"
WAIT_S = 60.0  # for another sweep that writes at this moment
ASKED_AT_ONCE = 500  # keys: SQLite allows 999 variables in a statement at least


class RowStore:
    """Rows by key, of all sweeps together. A context manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / NAME
        try:
            self._database = sqlite3.connect(self.path, timeout=WAIT_S)
        except sqlite3.Error as error:
            raise self._said(error) from None
        try:
            self._database.execute("CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, row TEXT NOT NULL)")
            columns = [name for _, name, *_ in self._database.execute("PRAGMA table_info(rows)")]
            (sound,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
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

    def __enter__(self) -> RowStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, *rows: Row) -> None:
        """Keep rows, all or none of them; one that is there already stays."""
        try:
            with self._database:
                texts = [(row.key, row.to_text()) for row in rows]
                self._database.executemany("INSERT OR IGNORE INTO rows VALUES (?, ?)", texts)
        except sqlite3.Error as error:
            raise self._said(error) from None

    def find(self, keys: Iterable[str]) -> dict[str, Row]:
        """The rows that there are among these keys."""
        wanted, found = list(keys), {}
        for start in range(0, len(wanted), ASKED_AT_ONCE):
            some = wanted[start : start + ASKED_AT_ONCE]
            marks = ",".join("?" * len(some))
            try:
                rows = self._database.execute(f"SELECT key, row FROM rows WHERE key IN ({marks})", some).fetchall()
            except sqlite3.Error as error:
                raise self._said(error) from None
            for key, text in rows:
                try:
                    found[key] = Row.from_text(text)
                except (ValueError, TypeError, RecursionError) as error:
                    raise ValueError(f"{self.path}: the row of key {key} must be one of a sweep ({error})") from None
        return found

    def __len__(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM rows").fetchone()[0])
