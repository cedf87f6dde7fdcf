"""What a hunt for a student's algorithm finds: a scenario that loads and imports what there is, a replay that opens."""

import ast
import importlib

import pytest

from cli.main import main
from course.catalogue import find
from course.exercise import StudentWork
from course.labs.health import tests as health
from course.seams.hunt import scenario_of
from course.seams.trial import TrialCase, attempt
from course.student_folder import reference
from scenarios import library
from scenarios.scenario import TimedFault, Workload
from studies.hunting import found
from studies.hunting.attempt import AttemptOutcome
from tests.course.open_box import OpenWork
from tests.course.sampling import first_failure, results, wrong
from tests.helpers import browser as browsers

HUNTED = ("never leaves", "waits for fifty losses", "leaves another path")
"""Wrong solutions of lab 6 whose idea a hunt breaks."""
FAULTS_MAX = 2


def test_the_scenario_of_a_counterexample_loads(tmp_path) -> None:
    load = Workload("write_bw", {"size": 4096, "depth": 2, "qps": 1, "messages": 0}, ("h0", "h1"))
    fabric = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 1}
    case = TrialCase(1, fabric, (load,), (TimedFault(0.1, "blackhole", "p0l0-p0s0", 0.5),), seam="health")
    path = found.write(tmp_path, "counterexample", case, AttemptOutcome({"lost": "too many"}), 1, 3, found.OF_ANY)
    scenario = library.find(str(path))
    assert len(scenario.timeline(None)) == 1  # type: ignore[arg-type]
    assert len(scenario.checks(None)) == 2  # type: ignore[arg-type]


def test_a_counterexample_runs_with_the_class_of_the_file(tmp_path) -> None:
    """The command that a check prints, on a run of a second."""
    load = Workload("write_bw", {"size": 4096, "depth": 2, "qps": 1, "messages": 0}, ("h0", "h1"), name="load0")
    fabric = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 1}
    case = TrialCase(1, fabric, (load,), (), reference_s=0.3, faults_s=0.3, after_s=0.3, seam="health")
    source = tmp_path / "health.py"
    source.write_text(reference(find("health"), 1))
    work = StudentWork(source.read_text(), source, 1, tmp_path / "checked")
    path = scenario_of(work, case, AttemptOutcome({"lost": "too many"}), 1, 3)
    runs = tmp_path / "runs"
    assert main(["run", str(path), "--world", "simulated", "--seed", "1", "--runs", str(runs)]) == 0
    assert "adapter.py:OfStudent" in "".join(one.read_text() for one in runs.rglob("*.jsonl"))


@pytest.mark.parametrize(("seed", "number"), [(1006, 5), (1016, 6), (1039, 5), (1080, 6), (1083, 7)])
def test_a_timeout_that_counts_all_under_way_as_lost_fails_no_right_solution(seed: int, number: int, tmp_path) -> None:
    """The tries, of three hundred, in which sound paths of the reference lost the most."""
    source = reference(find("health"), seed)
    path = tmp_path / "health.py"
    path.write_text(source)
    work = OpenWork(source, path, seed, tmp_path / "checked", brief=True)
    done = attempt(work, health.drawn(work, number), tmp_path / "runs")
    assert [one.reason for one in health.findings(done) if not one.holds] == []


@pytest.mark.slow
@pytest.mark.parametrize("mutant", wrong(find("health"), "MUTANTS"), ids=lambda one: one.name)
def test_the_hunt_of_lab_6_alone_finds_every_wrong_idea(mutant) -> None:
    lab, seed = find("health"), 7
    found = results(lab, mutant.change(reference(lab, seed), seed), seed, only="hunt")
    assert first_failure(found) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", HUNTED)
def test_a_hunt_shrinks_what_breaks_an_idea_to_a_replay(name: str, tmp_path) -> None:
    lab, seed = find("health"), 7
    mutant = next(one for one in wrong(lab, "MUTANTS") if one.name == name)
    path = tmp_path / lab.file
    path.write_text(mutant.change(reference(lab, seed), seed))
    outcome = health.HUNT.hunted(StudentWork(path.read_text(), path, seed, tmp_path / "checked"))
    assert not outcome.passed
    scenario = library.find(str(tmp_path / "checked" / "counterexample.py"))
    assert 1 <= len(scenario.timeline(None)) <= FAULTS_MAX, outcome.happened  # type: ignore[arg-type]
    replay = tmp_path / "checked" / "counterexample.html"
    assert replay.stat().st_size > 100_000
    if browsers.MISSING:
        pytest.skip(browsers.MISSING)
    with browsers.browser() as opened:
        page = opened()
        page.open(replay.as_uri())
        page.until_read()
        assert page.value("lab.picture().goodput_bps") > 0
        assert page.console == []


@pytest.mark.parametrize("checks", [found.OF_MRC, found.OF_ANY], ids=["mrc", "any"])
def test_a_found_scenario_imports_what_there_is(checks: tuple[str, str, str]) -> None:
    own = f"from {checks[0]} import {checks[1]}"
    lines = [line for line in found.TEMPLATE.splitlines() if line.startswith("from ") and "{" not in line]
    for node in ast.parse("\n".join([*lines, own])).body:
        assert isinstance(node, ast.ImportFrom)
        module = importlib.import_module(node.module or "")
        for name in node.names:
            assert hasattr(module, name.name), f"{node.module} has no {name.name}"
    assert ("must_hold" in checks[2]) == (checks is found.OF_MRC)
