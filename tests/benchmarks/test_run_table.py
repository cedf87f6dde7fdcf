"""Runs of many subjects in one file: what is written is read again, by the same code only."""

import gzip
from pathlib import Path

import pytest

from benchmarks.algorithms import CONDITIONS, run_table, subjects_of, words_of
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
        assert table.load(tmp_path / "a.csv.gz", two) == 0
        keys = [subject.key(seed) for subject in table.subjects.values() for seed in (1, 2)]
        assert two.find(keys) == one.find(keys)
        assert len(two) == len(keys) == 16
        table.write(tmp_path / "b.csv.gz", two, [1, 2])
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_runs_of_other_code_count_only_where_they_are_asked_for(table: RunTable, tmp_path: Path) -> None:
    with stored(table, tmp_path / "one") as one:
        table.write(tmp_path / "a.csv.gz", one, [1, 2])
    first = next(iter(table.subjects.values()))
    text = gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).decode()
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.replace(code_of(first), "0" * 8).encode()))
    with RowStore(tmp_path / "two") as two:
        assert table.load(tmp_path / "a.csv.gz", two) == 2
        assert len(two) == 14
        assert table.load(tmp_path / "a.csv.gz", two, of_other_code=True) == 2
        assert len(two) == 16


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
    with RowStore(tmp_path / "store") as store:
        with pytest.raises(ValueError, match=r"a\.csv\.gz must be a table of runs") as raised:
            table.load(tmp_path / "a.csv.gz", store, of_other_code=True)
        assert said in str(raised.value)
        assert len(store) == 0
