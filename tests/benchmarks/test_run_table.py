"""Runs of many subjects in one file: what is written is read again, by the same code only."""

import argparse
import gzip
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import algorithms as benchmark
from benchmarks.algorithms import CONDITIONS, differs, run_table, subjects_of, words_of
from benchmarks.rig.run_table import RunTable, code_of
from studies.contest.algorithm import parse
from studies.sweeping.row import Row
from studies.sweeping.store import RowStore

ALGORITHMS = "mrc,reps"
HEAD = b"rate_gbps,trimming,time,scenario,algorithm,code,seed,verdict\n"


@pytest.fixture(scope="module")
def table() -> RunTable:
    found = parse(ALGORITHMS)
    conditions = [subjects_of(found, ["smoke"], words_of(*one, 0.25)) for one in CONDITIONS]
    return run_table(conditions, found, ["smoke"], 0.25)


def stored(table: RunTable, folder: Path) -> RowStore:
    """A store with two seeds of each subject, whose goodputs all differ."""
    store = RowStore(folder)
    for number, subject in enumerate(table.subjects.values()):
        for seed in (1, 2):
            store.add(
                Row(subject.key(seed), seed, "true", metrics={"goodput": 1.23456e11 + 10_000 * number + 1000 * seed})
            )
    return store


def test_what_is_written_is_read_again_byte_for_byte(table: RunTable, tmp_path: Path) -> None:
    with stored(table, tmp_path / "one") as one, RowStore(tmp_path / "two") as two:
        table.write(tmp_path / "a.csv.gz", one, [1, 2])
        own, others = table.read(tmp_path / "a.csv.gz")
        assert (len(own), others) == (16, [])
        two.add(*own)
        keys = [subject.key(seed) for subject in table.subjects.values() for seed in (1, 2)]
        assert two.find(keys) == one.find(keys)
        table.write(tmp_path / "b.csv.gz", two, [1, 2])
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def of_other_code(table: RunTable, file: Path, rows: RowStore) -> None:
    """A file in which the runs of the first subject are of other code."""
    table.write(file, rows, [1, 2])
    first = next(iter(table.subjects.values()))
    text = gzip.decompress(file.read_bytes()).decode()
    file.write_bytes(gzip.compress(text.replace(code_of(first), "0" * 8).encode()))


def test_runs_of_other_code_are_told_apart(table: RunTable, tmp_path: Path) -> None:
    with stored(table, tmp_path / "one") as one:
        of_other_code(table, tmp_path / "a.csv.gz", one)
    own, others = table.read(tmp_path / "a.csv.gz")
    assert len(own) == 14
    assert [row.key for row in others] == [next(iter(table.subjects.values())).key(seed) for seed in (1, 2)]


def test_runs_of_other_code_count_once_a_sample_is_the_same(
    table: RunTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs made again are those of a store, so that nothing is run; then none, and then others."""
    monkeypatch.setattr("benchmarks.algorithms.make", lambda *_: None)
    conditions = [[subject] for subject in table.subjects.values()]
    file = tmp_path / "a.csv.gz"
    arguments = argparse.Namespace(again=0)
    with stored(table, tmp_path / "one") as one, RowStore(tmp_path / "empty") as empty:
        of_other_code(table, file, one)
        _, others = table.read(file)
        assert "--again N" in differs(others, conditions, arguments, one)
        arguments.again = 1
        assert differs(others, conditions, arguments, one) == ""
        changed = [replace(row, metrics={"goodput": 1e11}) for row in others]
        assert "not the same with this code: seed 1" in differs(changed, conditions, arguments, one)
        assert "only 0 of 1" in differs(others, conditions, arguments, empty)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no gzip", "BadGzipFile"),
        (gzip.compress(b"rate_gbps,seed\n100,1\n"), "KeyError: 'trimming'"),
        (gzip.compress(HEAD + b"100,true,0.25,smoke,mrc,0,x,true\n"), "'x'"),
        (gzip.compress(HEAD + b"100,true,0.25,smoke,mrc,0,1,yes\n"), "'yes'"),
        (gzip.compress(b"rate_gbps,trimming\n")[:-9], "EOFError"),
    ],
)
def test_what_is_no_table_of_runs_is_said(table: RunTable, tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.csv.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.csv\.gz must be a table of runs") as raised:
        table.read(tmp_path / "a.csv.gz")
    assert said in str(raised.value)


@pytest.mark.parametrize("algorithms", [ALGORITHMS, "mrc,oblivious"])
def test_a_call_for_other_runs_than_the_file_has_loses_none(
    algorithms: str,
    table: RunTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Fewer seeds: the others stay. Other algorithms: refused."""
    monkeypatch.setattr(benchmark, "make", lambda *_: None)
    file = tmp_path / "a.csv.gz"
    with stored(table, tmp_path / "one") as one:
        table.write(file, one, [1, 2])
    content = file.read_bytes()
    words = ["--algorithms", algorithms, "--scenarios", "smoke", "--seeds", "1", "--csv", str(file)]
    monkeypatch.setattr(sys, "argv", ["algorithms.py", *words, "--runs", str(tmp_path / "runs")])
    if algorithms == ALGORITHMS:
        benchmark.main()
    else:
        with pytest.raises(SystemExit, match="2"):
            benchmark.main()
        assert "has runs that this call would lose, such as 100/false/0.25/smoke/reps" in capsys.readouterr().err
    assert file.read_bytes() == content
