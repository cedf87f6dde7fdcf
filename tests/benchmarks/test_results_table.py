"""The tables of ten scenarios at four rates: made from rows that were kept, those of docs/results among them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.results import Case, Row

ROOT = Path(__file__).resolve().parents[2]
ROW = Row(
    "incast", "mrc", 100_000, 7, "true", {}, 1.989, None, 75_968, 431, 431, 7.1, 16.6, 140.0, 6.2, "abc1234"
)  # fmt: skip
FALSE = replace(ROW, transport="roce", verdict="false", failed={"incast flows even": "7 flows …"})


def test_rows_are_kept_and_a_torn_line_counts_as_no_run(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(asdict(ROW)) + "\n" + json.dumps(asdict(FALSE)) + "\n" + '{"scenario": "inc')
    assert results.read(file) == {ROW.case: ROW, FALSE.case: FALSE}
    assert ROW.case == Case("incast", "mrc", 100_000, 7)
    assert results.read(tmp_path / "none.jsonl") == {}


def test_tables_name_what_does_not_hold_and_what_was_not_run() -> None:
    lines = results.tables([replace(ROW, rate_mbps=10), FALSE])
    assert lines[:4] == [
        "| scenario | transport | 10 Mb/s | 100 Gb/s |",
        "|---|---|---|---|",
        "| `incast` | mrc | true | not run |",
        "| `incast` | roce | not run | false: incast flows even |",
    ]
    assert lines[-1] == ("| `incast` | roce | 100 Gb/s | 198.9% |  | 75,968 | 431 | 431 | 7 | 17 | 6.2 | 140 |")


def test_the_file_in_docs_is_read_and_mrc_is_true_at_every_rate(capsys: pytest.CaptureFixture[str]) -> None:
    file = ROOT / "docs" / "results" / "rates.jsonl"
    rows = results.read(file)
    assert len(rows) == len(results.TRANSPORTS) * len(results.RATES_MBPS) * 10
    assert {row.verdict for row in rows.values() if row.transport == "mrc"} == {"true"}
    assert results.main(["--rows", str(file), "--at-most", "0"]) == 1
    assert capsys.readouterr().err == "incast with roce: the verdict depends on the rate\n"


def test_a_verdict_that_depends_on_the_rate_is_named() -> None:
    assert results.differing([ROW, replace(ROW, rate_mbps=10)]) == []
    assert results.differing([ROW, replace(ROW, rate_mbps=10, verdict="unknown")]) == ["incast with mrc"]
