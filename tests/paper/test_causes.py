"""The causes of misses: each miss has one, and the page has the table that its rows make."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from paper import catalogue
from paper.outcome import BEYOND, WITHIN_NEAR, WITHIN_READING
from paper.random_loss import PROFILE
from paper.report import causes, cited, document

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reproduction.md"


def kept() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(PAGE.with_suffix(".json").read_text())["rows"]
    return rows


def changed() -> cited.Changed:
    """The experiments' numbers as the page's tables have them, each behind that of the run with the same seed."""
    found = {}
    for chapter in PAGE.read_text().split("\n## "):
        figure, _, text = chapter.partition(": ")
        for line in text.partition(document.KNOBS)[2].splitlines()[4:]:
            if line.startswith("| "):
                knob, quantity, *_, same, value = line.strip("| ").split(" | ")
                found[figure, knob, quantity] = same, value
    return found


def row(figure: str, quantity: str, difference: float, verdict: str = BEYOND, counts: bool = True) -> dict[str, Any]:
    return {"figure": figure, "quantity": quantity, "difference": difference, "verdict": verdict, "counts": counts}


def test_every_miss_of_the_page_has_one_cause_and_every_cause_has_misses() -> None:
    found = [causes.row_cause(one) for one in kept()]
    assert [one["cause"] for one in kept()] == found
    named = [name for name in found if name]
    assert len(named) == sum(one["counts"] and one["verdict"] == BEYOND for one in kept())
    assert set(named) == {cause.name for cause in causes.CAUSES}


def test_the_page_has_the_table_that_its_rows_make() -> None:
    assert "\n".join(document.missed(kept(), changed())).strip() in PAGE.read_text()


def test_every_sentence_of_a_cause_finds_its_numbers_on_the_page() -> None:
    for cause in causes.CAUSES:
        for sentence in cause.sentences:
            assert sentence.filled(kept(), changed()), sentence.text


def test_a_sentence_has_the_numbers_of_its_rows_and_is_left_out_without_them() -> None:
    sentence = cited.Sentence(
        "{a[changed]} for {a[same]}, {a[here]} ({a[interval]}), not {a[paper]}", {"a": ("7", "rate")}, "knob"
    )
    one = {"figure": "7", "quantity": "rate", "paper": 1234.5, "ours": 0.94513, "interval": [0.9, 2.0]}
    experiment = {("7", "knob", "rate"): ("0.94", "63.83")}
    assert sentence.filled([one], experiment) == "63.83 for 0.94, 0.9451 (0.9 to 2), not 1,234"
    assert sentence.filled([one], {}) is None
    assert sentence.filled([{**one, "interval": None}], experiment) is None
    assert sentence.filled([{**one, "ours": None}], experiment) is None
    assert sentence.filled([{**one, "figure": "8"}], experiment) is None


def test_a_number_of_a_row_is_written_as_a_field() -> None:
    """Typed numbers are not on the page: values of the profile, losses, a longer run, the paper's time per loss (the
    next test), an all-to-all with a longer one, what `dcqcn.md` has, and a ring without DCQCN."""
    typed = {"2.93", "0.1", "47.9", "61.0", "0.24", "0.29", "0.16", "0.22", "69.6", "297.8", "297.9", "96.3", "64.8"}
    typed |= {"152.8", "42.7"}
    texts = [sentence.text for cause in causes.CAUSES for sentence in cause.sentences]
    assert {found for text in texts for found in re.findall(r"\d+\.\d+", text)} == typed


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


def test_no_miss_has_a_cause_and_an_unknown_reason() -> None:
    reasons = {(figure.name, one.name): one.why for figure in catalogue.figures() for one in figure.quantities}
    assert [one["quantity"] for one in kept() if one["cause"] and not reasons[one["figure"], one["quantity"]]] == []


def test_two_queue_pairs_per_peer_are_nearer_to_the_paper_as_the_reason_says() -> None:
    off = {one["quantity"]: abs(one["difference"]) for one in kept() if one["figure"] == "17" and one["counts"]}
    assert all(off[f"RoCE 16 QP, 0 % loss, {size} MB"] < off[f"RoCE 1 QP, 0 % loss, {size} MB"] for size in (32, 64))


def test_the_page_counts_the_scenarios_of_the_ablation() -> None:
    names = re.findall(r"^\| ([\w-]+) \| [\d.]+ % ", (PAGE.parent / "ablation.md").read_text(), re.MULTILINE)
    assert len({*names} - {"incast", "switch-reboot"}) == 8
    assert "the eight other scenarios that the ablation goes over, all but `incast`, were true" in document.STRICT


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
    assert document.missed(made[3:6], {}) == []


def test_a_miss_that_two_causes_claim_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "CAUSES", (*causes.CAUSES, causes.Cause("again", (), {"21": "PFC"})))
    with pytest.raises(ValueError, match="a miss has one cause"):
        causes.cause_of("21", "PFC alone, 8 QPs, victim")


def test_the_numbers_that_causes_have_of_dcqcns_constants_are_on_their_page() -> None:
    page = " ".join((PAGE.parent / "dcqcn.md").read_text().split())
    (sentence,) = [
        one for cause in causes.CAUSES for one in cause.sentences if one.text.startswith("One constant at a time")
    ]
    least, most, without = re.findall(r"\d+\.\d+", sentence.text)
    found = re.search(r"In the all-to-all, the published setting .* from (\S+) to (\S+) Gb/s", page)
    assert found is not None
    assert [f"{float(end):.1f}" for end in found.groups()] == [least, most]
    assert f"| no DCQCN, priority flow control alone | 94.06 | 99% | {without} |" in page
