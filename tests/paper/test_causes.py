"""The causes of misses: each miss has one, and the page has the table that its rows make."""

import csv
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from paper import catalogue, kept_runs
from paper.outcome import BEYOND, WITHIN_NEAR, WITHIN_READING, Outcome
from paper.random_loss import PROFILE
from paper.report import causes, standing

DOCS = Path(__file__).resolve().parents[2] / "docs"


@cache
def recorded() -> list[Outcome]:
    return kept_runs.outcomes(kept_runs.read(kept_runs.RECORDED), catalogue.figures())


def kept() -> list[dict[str, Any]]:
    return standing.all_rows(recorded())


def changed() -> causes.Changed:
    return causes.experiments(recorded())


def row(figure: str, quantity: str, difference: float, verdict: str = BEYOND, counts: bool = True) -> dict[str, Any]:
    return {"figure": figure, "quantity": quantity, "difference": difference, "verdict": verdict, "counts": counts}


def test_every_miss_has_one_cause_and_every_cause_has_misses() -> None:
    found = [one["cause"] for one in kept()]
    named = [name for name in found if name]
    assert len(named) == sum(one["counts"] and one["verdict"] == BEYOND for one in kept())
    assert set(named) == {cause.name for cause in causes.CAUSES}


def test_every_sentence_of_a_cause_finds_its_numbers_among_the_runs() -> None:
    for cause in causes.CAUSES:
        for one in cause.sentences:
            assert causes.sentence(one, kept(), changed()), one


def test_the_page_in_docs_counts_the_misses_by_cause() -> None:
    counts = [(row[0].partition(":")[0], int(row[1])) for row in causes.table(kept())]
    told = re.findall(r"^\| (.+?)(?::.*)? \| (\d+) \|$", (DOCS / "reproduction.md").read_text(), re.MULTILINE)
    assert [(name, int(count)) for name, count in told[:-1]] == counts[: len(told) - 1]
    assert int(told[-1][1]) == sum(count for _, count in counts[len(told) - 1 :])


def test_a_sentence_has_the_numbers_of_its_rows_and_is_left_out_without_them() -> None:
    text = "{7: rate: changed} for {7: rate: same}, {7: rate: here} ({7: rate: interval}),\nnot {7: rate: paper}"
    one = {"figure": "7", "quantity": "rate", "paper": 1234.5, "ours": 0.94513, "interval": [0.9, 2.0]}
    experiment = {("7", "rate"): ("0.94", "63.83")}
    assert causes.sentence(text, [one], experiment) == "63.83 for 0.94, 0.9451 (0.9 to 2), not 1,234"
    assert causes.sentence(text, [one], {}) is None
    assert causes.sentence(text, [{**one, "interval": None}], experiment) is None
    assert causes.sentence(text, [{**one, "ours": None}], experiment) is None
    assert causes.sentence(text, [{**one, "figure": "8"}], experiment) is None


def test_no_number_is_typed_but_the_losses() -> None:
    texts = [one for cause in causes.CAUSES for one in cause.sentences]
    assert {found for text in texts for found in re.findall(r"\d+\.\d+", causes.CELL.sub("", text))} == {"0.1"}


@pytest.mark.parametrize(("loss", "least", "most"), [("0.1", 0.24, 0.29), ("1", 0.16, 0.22)])
def test_the_repair_time_that_the_paper_asks_for_follows_from_the_rows(loss: str, least: float, most: float) -> None:
    """Losses lengthen a ring: the paper's added time over ours, times the repair time of the profile."""
    rates = {one["quantity"]: (one["paper"], one["ours"]) for one in kept() if one["figure"] == "16"}
    asked = []
    for size in (2, 4, 8, 16, 32):
        lossy, clean = rates[f"MRC, {loss} % loss, {size} MB"], rates[f"MRC, 0 % loss, {size} MB"]
        paper, ours = (1 / with_loss - 1 / without for with_loss, without in zip(lossy, clean, strict=True))
        asked.append(PROFILE.mrc["loss_patience_ns"] / 1e6 * paper / ours)
    assert (round(min(asked), 2), round(max(asked), 2)) == (least, most)
    assert causes.BESIDE[{"0.1": "asked_ms_tenth", "1": "asked_ms_one"}[loss]] == f"{least} to {most}"


def test_no_miss_has_a_cause_and_an_unknown_reason() -> None:
    reasons = {(figure.name, one.name): one.why for figure in catalogue.figures() for one in figure.quantities}
    assert [one["quantity"] for one in kept() if one["cause"] and not reasons[one["figure"], one["quantity"]]] == []


def test_two_queue_pairs_per_peer_are_nearer_to_the_paper_as_the_reason_says() -> None:
    off = {one["quantity"]: abs(one["difference"]) for one in kept() if one["figure"] == "17" and one["counts"]}
    assert all(off[f"RoCE 16 QP, 0 % loss, {size} MB"] < off[f"RoCE 1 QP, 0 % loss, {size} MB"] for size in (32, 64))


def test_causes_are_counted_by_direction_the_most_frequent_first() -> None:
    made = [
        row("17", "MRC, 1 % loss, 2 MB", 0.18),
        row("16", "RoCE 1 QP, 0.1 % loss, 2 MB", -0.2),
        row("17", "RoCE 16 QP, 0.1 % loss, 4 MB", 1.7),
        row("17", "RoCE 16 QP, 1 % loss, 8 MB", 0.01, WITHIN_NEAR),
        row("17", "RoCE 16 QP, 1 % loss, 16 MB", 0.2, WITHIN_READING),
        row("18", "MRC, fastest incast flow", 0.2, counts=False),
        row("99", "anything", 0.2),
    ]
    table = causes.table(made)
    assert [line[1:5] for line in table] == [["2", "16, 17", "1", "1"], ["1", "17", "0", "1"], ["1", "99", "0", "1"]]
    assert table[2][0] == causes.UNKNOWN
    assert causes.bar(made) == (
        "1 of 6 judged rows are within 15 % or inside their interval. The bar is 5 (75%), so 4 rows are missing."
    )
    assert causes.bar(made[:1]).endswith(", so 1 row is missing.")
    assert causes.bar(made[3:4]).endswith("; the bar is 1 (75%).")
    assert causes.table(made[3:6]) == []


def test_a_miss_that_two_causes_claim_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "CAUSES", (*causes.CAUSES, causes.Cause("again", (), {"21": "PFC"})))
    with pytest.raises(ValueError, match="a miss has one cause"):
        causes.cause_of("21", "PFC alone, 8 QPs, victim")


def test_the_numbers_that_causes_have_of_dcqcns_constants_are_in_their_file() -> None:
    rows = list(csv.reader((DOCS / "reproduction" / "dcqcn.csv").open()))[1:]
    without = {name: float(peers) for name, _, _, peers, _ in rows}
    settings = [value for name, value in without.items() if not re.search("hash|MRC|paper", name)]
    assert f"{min(settings):.1f}" == causes.BESIDE["dcqcn_least_gbps"]
    assert f"{max(settings):.1f}" == causes.BESIDE["dcqcn_most_gbps"]
    assert str(without["no DCQCN, priority flow control alone"]) == causes.BESIDE["without_dcqcn_gbps"]
