"""Where rows are kept: one SQLite file, so that a row is there whole or not at all, whoever is killed when."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from studies.sweeping.row import Row

NAME = "rows.sqlite"
WAIT_S = 60.0  # for another sweep that writes at this moment
ASKED_AT_ONCE = 500  # keys: SQLite allows 999 variables in a statement at least


class Store:
    """Rows by key, of all sweeps together. A context manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / NAME
        self._database = sqlite3.connect(self.path, timeout=WAIT_S)
        try:
            self._database.execute("CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, row TEXT NOT NULL)")
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise ValueError(
                f"{self.path} is no store of rows ({error}): move it away, and a new one is made"
            ) from None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, row: Row) -> None:
        """Keep a row; one that is there already stays."""
        with self._database:
            self._database.execute("INSERT OR IGNORE INTO rows VALUES (?, ?)", (row.key, row.to_text()))

    def find(self, keys: Iterable[str]) -> dict[str, Row]:
        """The rows that there are among these keys."""
        wanted, found = list(keys), {}
        for start in range(0, len(wanted), ASKED_AT_ONCE):
            some = wanted[start : start + ASKED_AT_ONCE]
            marks = ",".join("?" * len(some))
            for key, text in self._database.execute(f"SELECT key, row FROM rows WHERE key IN ({marks})", some):
                found[key] = Row.from_text(text)
        return found

    def __len__(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM rows").fetchone()[0])
