"""Tables of a reproduction: what experiments are compared with, read twice, and the one cause of each miss."""

import ast
import csv
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from judging.run import Run
from paper import catalogue, kept_runs, perform, readings
from paper.figure import Experiment, Figure, Order, Quantity
from paper.outcome import BEYOND, WITHIN_NEAR, WITHIN_READING, Outcome, number
from paper.random_loss import PROFILE
from paper.readings import Reading
from paper.report import causes, standing, table
from running.runner import make_run
from studies.sweeping.row import Row


def outcome(quantities: tuple[Quantity, ...], numbers: dict[str, float], **more: Any) -> Outcome:
    """A figure whose every part is one number, `rate`."""
    more = {"experiments": (), **more}
    figure = replace(catalogue.find("4"), name="99", quantities=quantities, charts=(), **more)
    rows = {part: Row("k", 1, "made", metrics={"rate": rate}) for part, rate in numbers.items()}
    return Outcome(figure, rows, list(rows))


def own(name: str, paper: float, part: str, **more: Any) -> Quantity:
    return Quantity(name, paper, "Gb/s", f"{part}:rate", "", **more)


def test_an_experiment_is_compared_with_the_run_of_its_own_seed_and_not_with_the_median() -> None:
    seeds = tuple(f"roce{ending}:rate" for ending in ("", "-seed-2", "-seed-3"))
    numbers = {"roce": 10.0, "roce-seed-2": 30.0, "roce-seed-3": 40.0, "roce-changed": 11.0}
    made = outcome(
        (own("rate", 100.0, "roce", seeds=seeds),),
        numbers,
        experiments=(Experiment("knob", "rate", "roce-changed:rate"),),
    )
    assert made.comparisons[0].ours == 30.0
    assert table.experiments(made) == [["knob", "rate", "Gb/s", "100", "10", "11"]]
    assert causes.experiments([made]) == {("99", "rate"): ("10", "11")}


def test_orders_that_agree_say_how_many_are_ties_on_one_side_or_half_calibrated() -> None:
    quantities = (own("a", 101.0, "one"), own("b", 100.0, "two"), own("c", 50.0, "three", calibrates=True))
    found = outcome(
        quantities,
        {"one": 150.0, "two": 100.0, "three": 60.0},
        orders=(Order("a", "b"), Order("a", "c"), Order("c", "b")),
    )
    assert [(one.agrees, one.tie_in_one, one.half_calibrated) for one in found.orders] == [
        (True, True, False),
        (True, False, True),
        (True, False, True),
    ]
    assert table.order_notes([found]) == (
        "Of the 3 that agree, 1 are a tie in one of the two only, the paper or here, and 2 have a number from which the"
        " model was set."
    )


def test_a_calibrating_row_that_is_missed_says_why_also_in_the_figures() -> None:
    met, missed = own("met", 10.0, "one", calibrates=True), own("missed", 22.0, "two", calibrates=True, why="a reason")
    rows = table.calibrating([outcome((met, missed), {"one": 10.1, "two": 1.6})])
    assert [row[-1] for row in rows] == ["", "a reason"]
    # Only figure 22 has one: a port's pause was set from a queue that the model does not reach.
    figures: list[Figure] = list(catalogue.figures())
    told = [(figure.name, one.name) for figure in figures for one in figure.quantities if one.calibrates and one.why]
    assert ("22", "default, queue with more than 11 flows") in told


@pytest.mark.parametrize("value", [0.25649965, 761.14996, 1518.4999996, 10.9949991])
def test_a_number_has_the_same_digits_on_the_page_as_from_the_json(value: float) -> None:
    """Rounded once to six digits and then to four: as a reader of the JSON would."""
    told = standing.shortened(value)
    assert number(value) == number(told)


def test_there_is_a_column_of_times_unless_no_time_is_known() -> None:
    quantity = (own("rate", 100.0, "one"),)
    unknown = outcome(quantity, {"one": 100.0})
    timed = Outcome(unknown.figure, {"one": replace(unknown.rows["one"], seconds=2.5)}, ["one"])
    head, rows = table.summary([unknown])
    assert {len(row) for row in rows} == {len(head)} == {len(table.SUMMARY_HEAD) - 1}
    assert [row[-1] for row in table.summary([timed, unknown])[1]] == ["2", "–", "–"]
    head, rows = table.summary([timed])
    assert (head[-1], [row[-1] for row in rows]) == ("seconds", ["2", "2"])


def test_only_the_code_that_measures_a_figure_makes_it_again() -> None:
    def names(figure: str) -> list[str]:
        return [Path(name).stem for name in perform.measuring(catalogue.file_of(figure))]

    assert names("16") == ["random_loss"]
    assert names("18") == ["clock", "incast", "measuring", "streams"]


def test_a_module_that_no_key_covers_reads_no_run() -> None:
    for name in perform.DATA - {"figure"}:
        tree = ast.parse((catalogue.FOLDER / f"{name}.py").read_text())
        modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not [module for module in modules if module.partition(".")[0] == "judging"], name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["4", "5.2.1", "9a", "14", "15", "16", "18", "20"])
def test_no_module_of_data_takes_part_in_measuring(name: str, tmp_path: Path) -> None:
    """One figure of each way of measuring. The functions that Python calls are written down meanwhile."""
    figure = catalogue.find(name)
    part = min(figure.parts(True), key=lambda part: part.plan.host_count * sum(phase.seconds for phase in part.phases))
    run = Run.open(make_run(perform.spec(name, part, True), tmp_path))
    called: set[str] = set()

    def look(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(catalogue.FOLDER) and not frame.f_code.co_name.startswith("<"):
            called.add(str(path.relative_to(catalogue.FOLDER.parent)))

    sys.setprofile(look)
    try:
        part.measure(run)
    finally:
        sys.setprofile(None)
    assert called, "nothing of this room was called"
    file = catalogue.file_of(name)
    assert called <= {*perform.measuring(file), str(file.relative_to(catalogue.FOLDER.parent))}


FILE = Path(__file__).with_name("second_reading.toml")
ROUNDING = 1e-9
"""What binary fractions may be off: two readings may differ by exactly the sum of their errors."""


@dataclass(frozen=True, slots=True)
class Second:
    """A number read again, and what that reading may be off, both in the unit of the first reading."""

    value: float
    error: float


def second() -> dict[str, dict[str, Second]]:
    """The second readings by figure and name; TypeError for a key that none has."""
    document = tomllib.loads(FILE.read_text())
    return {figure: {name: Second(**entry) for name, entry in entries.items()} for figure, entries in document.items()}


def disagreements(first: Mapping[str, Reading], again: Mapping[str, Second]) -> list[str]:
    """The numbers of a figure whose two readings are further apart than their errors together."""
    return [
        f"{name}: {first[name].value} ± {first[name].error}, again {two.value} ± {two.error}"
        for name, two in again.items()
        if abs(first[name].value - two.value) > first[name].error + two.error + ROUNDING
    ]


def test_a_second_reading_of_a_third_of_the_papers_numbers_agrees() -> None:
    """Truth: the paper itself, read twice by different means. The draw is described in the file."""
    found = second()
    assert sum(map(len, found.values())) == 128
    assert {figure: disagreements(readings.of(figure), again) for figure, again in found.items()} == {
        figure: [] for figure in found
    }


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


def test_every_miss_has_one_cause_with_a_reason_and_every_cause_has_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [one["cause"] for one in kept()]
    named = [name for name in found if name]
    assert len(named) == sum(one["counts"] and one["verdict"] == BEYOND for one in kept())
    assert set(named) == {cause.name for cause in causes.CAUSES}
    reasons = {(figure.name, one.name): one.why for figure in catalogue.figures() for one in figure.quantities}
    assert [one["quantity"] for one in kept() if one["cause"] and not reasons[one["figure"], one["quantity"]]] == []
    monkeypatch.setattr(causes, "CAUSES", (*causes.CAUSES, causes.Cause("again", (), {"21": "PFC"})))
    with pytest.raises(ValueError, match="a miss has one cause"):
        causes.cause_of("21", "PFC alone, 8 QPs, victim")


def test_every_sentence_of_a_cause_finds_its_numbers_among_the_runs_and_types_none_but_losses() -> None:
    for cause in causes.CAUSES:
        for one in cause.sentences:
            assert causes.sentence(one, kept(), changed()), one
    texts = [one for cause in causes.CAUSES for one in cause.sentences]
    assert {found for text in texts for found in re.findall(r"\d+\.\d+", causes.CELL.sub("", text))} == {"0.1"}


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
    assert causes.bar(made) == ("1 of 6 judged rows are near, within 15 %. The bar is 5 (75%), so 4 rows are missing.")
    assert causes.bar(made[:1]).endswith(", so 1 row is missing.")
    assert causes.bar(made[3:4]).endswith("; the bar is 1 (75%).")
    assert causes.table(made[3:6]) == []


def test_the_numbers_that_causes_have_of_dcqcns_constants_are_in_their_file() -> None:
    rows = list(csv.reader((DOCS / "reproduction" / "dcqcn.csv").open()))[1:]
    without = {name: float(peers) for name, _, _, peers, _ in rows}
    settings = [value for name, value in without.items() if not re.search("hash|MRC|paper", name)]
    assert f"{min(settings):.1f}" == causes.BESIDE["dcqcn_least_gbps"]
    assert f"{max(settings):.1f}" == causes.BESIDE["dcqcn_most_gbps"]
    assert str(without["no DCQCN, priority flow control alone"]) == causes.BESIDE["without_dcqcn_gbps"]
