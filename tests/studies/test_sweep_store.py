"""The store of rows: what is said of a file that is none, and of a good one that cannot be used at the moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from studies.sweeping import store as stores
from studies.sweeping.row import Row
from studies.sweeping.store import NAME, RowStore

ROW = Row("k1", 1, "true", {}, {}, {})


def noise(path: Path) -> None:
    path.write_bytes(b"no database at all" * 500)


def other_table(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE rows (name TEXT)")


def damaged(path: Path) -> None:
    with RowStore(path.parent) as store:
        store.add(*(Row(f"k{number}", number, "true", {}, {}, {}) for number in range(2000)))
    whole = bytearray(path.read_bytes())
    whole[8192:40960] = b"\xff" * 32768
    path.write_bytes(whole)


@pytest.mark.parametrize("make", [noise, other_table, damaged])
def test_a_file_that_is_no_store_is_to_be_moved_away(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / NAME)
    with pytest.raises(ValueError, match=r"rows\.sqlite must be a store of rows .*: move it away"):
        RowStore(tmp_path)


def test_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(OSError, match=r"rows\.sqlite cannot be used now"):
        RowStore(tmp_path)


def test_a_store_that_another_sweep_holds_is_not_to_be_moved_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "WAIT_S", 0.05)
    with RowStore(tmp_path) as store:
        other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(OSError, match="cannot be used now: database is locked"):
            store.add(ROW)
        other.execute("ROLLBACK")
        other.close()
        store.add(ROW)
        assert store.find(["k1"]) == {"k1": ROW}


@pytest.mark.parametrize("verdict", ["true", "false", "unknown", "made"])
def test_rows_of_sweeps_and_of_reproductions_come_back_as_they_were(verdict: str, tmp_path: Path) -> None:
    row = Row("k1", 1, verdict, {}, {}, {})
    with RowStore(tmp_path) as store:
        store.add(row)
        assert store.find(["k1"]) == {"k1": row}


@pytest.mark.parametrize("text", ["[]", "{}", "{", '{"key": "k1"}', ROW.to_text().replace("true", "perhaps"), "5"])
def test_a_row_that_is_none_is_named_by_its_key(text: str, tmp_path: Path) -> None:
    with RowStore(tmp_path) as store:
        database = sqlite3.connect(tmp_path / NAME)
        with database:
            database.execute("INSERT INTO rows VALUES ('k1', ?)", (text,))
        database.close()
        with pytest.raises(ValueError, match="the row of key k1 must be one of a sweep"):
            store.find(["k1"])
