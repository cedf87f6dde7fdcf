"""The pictures of sweeps: a name that a user chose is text and never a formula."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from studies.contest.report import differences
from studies.contest.result import Match
from studies.sweeping.metric import METRICS
from studies.sweeping.report import ecdf
from studies.sweeping.row import Row
from studies.sweeping.statement import statement
from studies.sweeping.variant import Variant

NAME = r"_x $\bad{$"


def rows(*values: float) -> list[Row]:
    return [Row(f"k{seed}", seed, "true", metrics={"p99_step": value}) for seed, value in enumerate(values)]


def drawn(name: str, *values: float) -> str:
    """The ECDF of one variant, whose title ends in the name of its setting."""
    picture = ecdf(METRICS["p99_step"], [statement(Variant(name, ""), "", rows(*values))])
    assert picture is not None
    return picture


def said(picture: str) -> list[str]:
    """The pieces of text in a picture."""
    return [
        "".join(element.itertext()).strip()
        for element in ElementTree.fromstring(picture).iter()
        if "text" in element.tag
    ]


@pytest.mark.parametrize("name", [NAME, "a$b", "$x_1$", "_", "__all__"])
def test_a_name_in_a_legend_is_no_formula_and_is_not_left_out(name: str) -> None:
    assert any(name in text for text in said(drawn(name, 1.0, 2.0)))


def test_the_powers_of_ten_at_a_logarithmic_axis_stay_formulas() -> None:
    texts = said(drawn("smoke", 1.0, 1000.0))
    assert not [text for text in texts if "$" in text or "mathdefault" in text]
    assert "103" in ["".join(text.split()) for text in texts]  # 10 and its power


def test_the_algorithms_of_a_contest_are_no_formulas() -> None:
    algorithms = ("_first", NAME)
    found = [
        statement(Variant("smoke", name), "", rows(*(float(n + index) for n in range(6))))
        for index, name in enumerate(algorithms)
    ]
    picture = differences(Match("smoke", algorithms, "_first", found))
    assert picture is not None
    assert {"_first", NAME} <= set(said(picture))


def test_the_name_of_a_metric_is_escaped_in_the_text_alternative() -> None:
    metric = replace(METRICS["p99_step"], title='a" onload="b & <c>')
    picture = ecdf(metric, [statement(Variant("smoke"), "", rows(1.0, 2.0))])
    assert picture is not None
    assert ElementTree.fromstring(picture).get("aria-label") == 'Distribution of a" onload="b & <c>'
