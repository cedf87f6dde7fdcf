"""The causes of misses: each miss has one, and the page has the table that its rows make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paper.outcome import BEYOND, WITHIN_NEAR
from paper.report import causes, document

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reproduction.md"


def kept() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(PAGE.with_suffix(".json").read_text())["rows"]
    return rows


def row(figure: str, quantity: str, difference: float, verdict: str = BEYOND, counts: bool = True) -> dict[str, Any]:
    return {"figure": figure, "quantity": quantity, "difference": difference, "verdict": verdict, "counts": counts}


def test_every_miss_of_the_page_has_one_cause_and_every_cause_has_misses() -> None:
    found = [causes.row_cause(one) for one in kept()]
    assert [one["cause"] for one in kept()] == found
    named = [name for name in found if name]
    assert len(named) == sum(one["counts"] and one["verdict"] == BEYOND for one in kept())
    assert set(named) == {cause.name for cause in causes.CAUSES}


def test_the_page_has_the_table_that_its_rows_make() -> None:
    assert "\n".join(document.missed(kept())).strip() in PAGE.read_text()


def test_causes_are_counted_by_direction_the_most_frequent_first() -> None:
    made = [
        row("17", "MRC, 1 % loss, 2 MB", 0.18),
        row("16", "RoCE 1 QP, 0.1 % loss, 2 MB", -0.2),
        row("17", "RoCE 16 QP, 1 % loss, 4 MB", 1.7),
        row("17", "RoCE 16 QP, 1 % loss, 8 MB", 0.01, WITHIN_NEAR),
        row("18", "MRC, fastest incast flow", 0.2, counts=False),
        row("99", "anything", 0.2),
    ]
    table = causes.table(made)
    assert [line[1:5] for line in table] == [["2", "16, 17", "1", "1"], ["1", "17", "0", "1"], ["1", "99", "0", "1"]]
    assert table[2][0] == causes.UNKNOWN
    assert causes.bar(made) == (
        "1 of 5 judged rows are within 15 %, within the reading's error or inside their interval."
        " The bar is 4 (75%), so 3 rows are missing."
    )
    assert causes.bar(made[:1]).endswith(", so 1 row is missing.")
    assert causes.bar(made[3:4]).endswith("; the bar is 1 (75%).")
    assert document.missed(made[3:5]) == []


def test_a_miss_that_two_causes_claim_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "CAUSES", (*causes.CAUSES, causes.Cause("again", "nothing", {"21": "PFC"})))
    with pytest.raises(ValueError, match="a miss has one cause"):
        causes.cause_of("21", "PFC alone, 8 QPs, victim")
