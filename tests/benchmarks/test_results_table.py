"""The tables of docs/results.md: made from rows that were kept, and only between the marks."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.results import Case, Row

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


def test_only_what_stands_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{results.BEGIN}\nold\n{results.END}\nafter\n")
    results.write(page, ["new"])
    assert page.read_text() == f"before\n{results.BEGIN}\nnew\n{results.END}\nafter\n"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match="lacks the lines"):
        results.write(page, ["new"])


def test_a_verdict_that_depends_on_the_rate_is_named() -> None:
    assert results.differing([ROW, replace(ROW, rate_mbps=10)]) == []
    assert results.differing([ROW, replace(ROW, rate_mbps=10, verdict="unknown")]) == ["incast with mrc"]
