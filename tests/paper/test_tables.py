"""Tables of a reproduction: what experiments are compared with, and how much an agreeing order says."""

from dataclasses import replace
from typing import Any

import pytest

from paper import catalogue
from paper.figure import Experiment, Figure, Order, Quantity
from paper.outcome import Outcome, number
from paper.report import causes, standing, table
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
