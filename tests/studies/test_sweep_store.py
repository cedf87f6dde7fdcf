"""The store of rows: what is said of a file that is none, and of a good one that cannot be used at the moment."""

import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from common import locks
from studies.sweeping import sweep as stores
from studies.sweeping.row import Row
from studies.sweeping.sweep import NAME, RowStore

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
def test_a_file_that_is_no_store_is_to_be_moved_away(make, tmp_path: Path) -> None:
    make(tmp_path / NAME)
    with pytest.raises(ValueError, match=r"rows\.sqlite must be a store of rows .*: move it away"):
        RowStore(tmp_path)


def test_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(OSError, match=r"rows\.sqlite must be a regular file"):
        RowStore(tmp_path)


def test_a_store_that_another_sweep_holds_is_not_to_be_moved_away(tmp_path, monkeypatch) -> None:
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


def test_a_long_wait_for_a_store_names_the_process_that_holds_it(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(locks, "TELL_S", 0.05)
    monkeypatch.setattr(stores, "WAIT_S", 0.1)
    hold = (
        "import sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "database.execute('BEGIN EXCLUSIVE')\n"
        "print('held', flush=True)\n"
        "input()"
    )
    with RowStore(tmp_path) as store:
        words = [sys.executable, "-c", hold, str(store.path)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            with pytest.raises(OSError, match="database is locked"):
                store.find(["k1"])
            assert f"rows.sqlite, at most 0 s more: process {other.pid} of user" in capsys.readouterr().err
            other.communicate("\n")
        store.add(ROW)
    assert capsys.readouterr().err == ""


def test_a_store_is_its_owners_alone(tmp_path: Path) -> None:
    """A user who can read it could hold a lock of SQLite's, and no sweep could write."""
    (tmp_path / NAME).touch(0o644)
    with RowStore(tmp_path) as store:
        store.add(ROW)
        assert store.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("verdict", ["true", "false", "unknown", "made"])
def test_rows_of_sweeps_and_of_reproductions_come_back_as_they_were(verdict: str, tmp_path: Path) -> None:
    row = Row("k1", 1, verdict, {}, {}, {})
    with RowStore(tmp_path) as store:
        store.add(row)
        assert store.find(["k1"]) == {"k1": row}


@pytest.mark.parametrize(
    "text", ["[]", "{}", "{", '{"key": "k1"}', ROW.to_text().replace("true", "perhaps"), "5", "\xff"]
)
def test_a_row_that_is_none_is_named_by_its_key_and_made_again(text: str, tmp_path, capsys) -> None:
    with RowStore(tmp_path) as store:
        store.add(replace(ROW, key="k2"))
        database = sqlite3.connect(tmp_path / NAME)
        with database:
            database.execute("INSERT INTO rows VALUES ('k1', CAST(? AS TEXT))", (text.encode("latin-1"),))
        database.close()
        assert list(store.find(["k1", "k2"])) == ["k2"]
        assert "the row of key k1 must be one of a sweep" in capsys.readouterr().err
        store.add(ROW)
        assert store.find(["k1"]) == {"k1": ROW}
        assert capsys.readouterr().err == ""


def test_a_view_in_place_of_the_table_is_refused_and_not_read(tmp_path: Path) -> None:
    """An endless one held the sweep of root in another user's folder, deaf to signals."""
    database = sqlite3.connect(tmp_path / "rows.sqlite")
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS key, x AS row FROM c"
    database.execute(f"CREATE VIEW rows AS {endless}")
    database.close()
    with pytest.raises(ValueError, match=r"must be a store of rows \(its view rows is not the lab's\)"):
        RowStore(tmp_path)


STORE = "CREATE TABLE rows (key TEXT PRIMARY KEY, row TEXT NOT NULL)"
TRIGGER = "CREATE TRIGGER g AFTER INSERT ON rows BEGIN INSERT INTO"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        ((STORE, "CREATE TABLE t (x)", f"{TRIGGER} t {ENDLESS}; END"), "table t"),
        ((STORE, "CREATE TABLE t (x, CHECK (length(hex(zeroblob(450000000 + x))) > 0))"), "table t"),
        ((f"{STORE[:-1]}, z AS (hex(zeroblob(400000000))) VIRTUAL NOT NULL)",), "table rows"),
        (("CREATE TABLE other (name)",), "table other"),
    ],
)  # fmt: skip
def test_a_store_with_more_than_rows_is_refused_and_nothing_of_it_is_carried_out(statements, named, tmp_path) -> None:
    with sqlite3.connect(tmp_path / NAME) as database:
        for statement in statements:
            database.execute(statement)
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(ValueError, match=rf"must be a store of rows \(its {named} is not the lab's\): move it away"):
        RowStore(tmp_path)
    assert (tmp_path / NAME).read_bytes() == before


def test_a_trigger_that_comes_later_is_not_carried_out(tmp_path: Path) -> None:
    """Its owner may change the store at any moment of a sweep."""
    with RowStore(tmp_path) as store:
        with sqlite3.connect(tmp_path / NAME) as other:
            other.execute(f"{TRIGGER} rows {ENDLESS}; END")
        with pytest.raises(ValueError, match="its trigger g is not the lab's"):
            store.add(ROW)
        with pytest.raises(ValueError, match="its trigger g is not the lab's"):
            store.find(["k1"])


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_a_fifo_in_place_of_sqlites_own_files_is_named(end: str, tmp_path: Path) -> None:
    with RowStore(tmp_path) as store:
        os.mkfifo(tmp_path / f"{NAME}{end}")
        with pytest.raises(OSError, match=rf"rows\.sqlite{end} must be a regular file \(it is a FIFO\)"):
            store.add(ROW)
        with pytest.raises(OSError, match=rf"rows\.sqlite{end} must be a regular file \(it is a FIFO\)"):
            RowStore(tmp_path)


def test_a_row_that_would_take_all_memory_is_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = ROW.to_text().replace('"curves":{}', f'"curves":{{"a":[{"[]," * 1_500_000}[]]}}')
    with RowStore(tmp_path) as store:
        with sqlite3.connect(tmp_path / NAME) as other:
            other.execute("INSERT INTO rows VALUES ('k1', ?)", (many,))
        assert store.find(["k1"]) == {}
        assert "at most 2000000 commas, colons, [ and { are allowed (got 30000" in capsys.readouterr().err


def test_a_row_longer_than_any_is_not_read(tmp_path: Path) -> None:
    with RowStore(tmp_path) as store:
        with sqlite3.connect(tmp_path / NAME) as other:
            other.execute("INSERT INTO rows VALUES ('k1', zeroblob(20000000))")
        with pytest.raises(ValueError, match=r"must be a store of rows \(string or blob too big\)"):
            store.find(["k1"])
