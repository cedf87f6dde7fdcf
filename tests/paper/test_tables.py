"""Tables of a reproduction: what experiments are compared with, read twice, and how much an agreeing order says."""

import ast
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from judging.run import Run
from paper import catalogue, perform, readings
from paper.figure import Experiment, Figure, Order, Quantity
from paper.outcome import Outcome, number
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


def test_a_calibrating_row_that_is_missed_says_why() -> None:
    met, missed = own("met", 10.0, "one", calibrates=True), own("missed", 22.0, "two", calibrates=True, why="a reason")
    rows = table.calibrating([outcome((met, missed), {"one": 10.1, "two": 1.6})])
    assert [row[-1] for row in rows] == ["", "a reason"]


@pytest.mark.parametrize("value", [0.25649965, 761.14996, 1518.4999996, 10.9949991])
def test_a_number_has_the_same_digits_on_the_page_as_from_the_json(value: float) -> None:
    """Rounded once to six digits and then to four: as a reader of the JSON would."""
    told = standing.shortened(value)
    assert number(value) == number(told)


def test_the_figures_have_a_reason_for_every_calibrating_row_that_is_far_off() -> None:
    """Only figure 22 has one: a port's pause was set from a queue that the model does not reach."""
    figures: list[Figure] = list(catalogue.figures())
    told = [(figure.name, one.name) for figure in figures for one in figure.quantities if one.calibrates and one.why]
    assert ("22", "default, queue with more than 11 flows") in told


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
    # The large forms measure by the code of the usual ones; an edit of it left their keys alone.
    assert names("16-large") == ["figure_16", "large", "random_loss"]


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
