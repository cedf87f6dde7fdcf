"""The contest: predictions, failures, and the tables that rows make."""

from dataclasses import replace
from random import Random

import pytest

from answers import contest, costs, report
from answers.answer import answers
from answers.failures import FAILURES, file_of
from answers.measuring import MEASURES
from cli.main import main
from running.timeline import rehearse
from scenarios import library
from studies.sweeping.row import Row
from studies.sweeping.statement import statement
from topo.planfile import load_plan

KNOWN = answers()
PAIRS = contest.variants(list(KNOWN.values()), list(FAILURES), "tiny")


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("answer", KNOWN)
def test_every_answer_can_meet_every_failure_and_a_seed_draws_the_same_for_all(answer: str, failure: str) -> None:
    for name, own, variant in PAIRS:
        if (name, own.name) == (failure, answer):
            spec = contest.chosen({**variant.asked, "seed": 7})
            rehearse(spec)
            again = contest.chosen({**variant.asked, "seed": 7})
            assert spec.faults() == again.faults()
            if failure != "incast":
                assert spec.faults() != contest.chosen({**variant.asked, "seed": 8}).faults()
            return
    assert (KNOWN[answer].single_plane, failure) == (True, "lost-nic-port")


def test_each_failure_is_a_scenario_file_of_its_name() -> None:
    assert {library.load(file_of(name)).name for name in FAILURES} == set(FAILURES)


def test_the_reference_comes_first_and_every_prediction_is_of_an_answer_failure_and_measure() -> None:
    assert next(iter(KNOWN)) == contest.REFERENCE
    told = contest.predictions()
    assert {answer.predicted for answer in KNOWN.values()} - {""} == set(told)
    for failures in told.values():
        assert set(failures) <= set(FAILURES)
        for measures in failures.values():
            assert set(measures) <= {"missed", "cost", "kept"}
            assert all(low <= expected <= most for low, expected, most in measures.values())


def rows(mean: float, seeds: int = 12) -> list[Row]:
    """Made-up rows whose cost is about `mean`."""
    draw = Random(round(mean * 10))
    numbers = [{"fault_cost": mean + draw.uniform(-0.1, 0.1), "goodput_kept": 0.98} for _ in range(seeds)]
    return [Row(f"{mean}-{seed}", seed, "true", metrics=own) for seed, own in enumerate(numbers, 1)]


def made_up(**means: float) -> contest.Results:
    chosen = {name: KNOWN[name] for name in means}
    stated = {
        (failure, answer.name): statement(variant, "", rows(means[answer.name]))
        for failure, answer, variant in contest.variants(list(chosen.values()), ["dead-link"], "tiny")
    }
    return contest.Results(list(chosen.values()), ["dead-link"], stated)


def test_clearly_better_answers_are_ranked_and_told_from_those_that_are_as_good() -> None:
    results = made_up(**{"mrc": 1.0, "mrc-bts": 0.2, "adaptive": 3.0, "uet": 3.05})
    lines = {line.answer: line for line in results.lines("dead-link", "fault_cost")}
    assert {name: line.rank for name, line in lines.items()} == {
        "mrc-bts": "1 (1)", "mrc": "2 (2)", "adaptive": "3 (3 to 4)", "uet": "4 (3 to 4)",
    }  # fmt: skip
    assert results.best("dead-link", "fault_cost") == ["mrc-bts"]
    gap = lines["mrc-bts"].gap
    assert gap is not None
    assert gap.mean == pytest.approx(-0.8, abs=0.1)
    assert gap.clear
    assert [lines[name].meets for name in ("mrc", "adaptive")] == ["as predicted", "as predicted"]
    assert replace(lines["mrc"], mean=9.0).meets == "not as predicted"


def test_the_page_and_the_tables_have_every_number_and_command(tmp_path) -> None:
    results, plan = made_up(**{"mrc": 1.0, "mrc-bts": 0.2}), load_plan("tiny")
    page = report.write(tmp_path, results, plan, lambda statement, row: None).read_text()
    text = report.summary(results, plan)
    for word in ("dead-link", "mrc-bts", MEASURES["fault_cost"].title, "0.7 (0.2 to 2)"):
        assert word in page
        assert word in text
    assert "dead_link.py --transport mrc-bts" in page
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 5  # a head, two measures of two answers


def test_costs_are_counted_from_the_entries() -> None:
    """By hand for plan tiny: notifications take a class and, for each of four ports, two DSCPs."""
    plan = load_plan("tiny")
    mrc, bts = (costs.entries(KNOWN[name], plan, "leaf") for name in ("mrc", "mrc-bts"))
    assert bts - mrc == 1 + 2 * 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--answers", "mrc,mcr"], "--answers must name each of mrc, "),
        (["--failures", "dead-link,dead-link"], "--failures must name each of dead-link, flap"),
        (["--seeds", "0"], "--seeds must be between 1 and 10000 (got 0)"),
    ],
)
def test_what_cannot_be_is_refused_with_the_choices(words: list[str], said: str, capsys, tmp_path) -> None:
    assert main(["answers", *words, "--runs", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
