"""Published figures name what made them, and the page says which are older than the code that decides them."""

import pytest

from tests.helpers import records
from tests.helpers.records import DECIDING, PAGE, digest, files, sentence, stale


def test_each_file_of_figures_has_a_record() -> None:
    told = records.records()
    assert sorted(told) == files()
    assert {record["code"] for record in told.values()} <= set(DECIDING)


def test_no_record_claims_to_be_of_todays_code_when_that_has_moved() -> None:
    assert stale(records.records()) == [], "python -m tests.helpers.records marks them, or make the figures again"


def test_the_page_says_how_many_are_of_todays_code() -> None:
    assert sentence(records.records()) in PAGE.read_text()


def test_a_record_goes_stale_when_its_code_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"made": "2026-12-01", "revision": "x", "code": "runs", "digest": digest("runs"), "moved": False}
    assert stale({"a.csv": record}) == []
    assert sentence({"a.csv": record, "b.csv": record | {"moved": True}}).endswith("today's code: `a.csv`.")
    monkeypatch.setattr(records, "DECIDING", DECIDING | {"runs": (*records.RUNS, "judging")})
    assert stale({"a.csv": record}) == ["a.csv"]
    assert stale({"a.csv": record | {"moved": True}}) == []
