"""Every lab: the reference passes, the starter fails with a message, wrong solutions fail for it; late packets."""

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from course.box.box import BoxLimits
from course.catalogue import LABS, find
from course.exercise import HINTS, Exercise, StudentWork, Test
from course.labs.figure.tests import Fault, rates
from course.result import CheckResult, Gate, TestOutcome, judged
from course.seams import trial
from course.seams.log import Log, Seat
from course.seams.trial import NAME, Seam, Trial, TrialCase, attempt, installed
from course.student_folder import reference
from course.worker import carry_out
from tests.course import sampling
from tests.course.mutants.mutant import Mutant
from tests.course.open_box import OpenBox, OpenWork
from tests.course.sampling import first_failure, results, wrong
from tests.helpers.transport import Bench, Packet

SEED = 7
STARTER_LINES_MAX = 60
STARTER_SEEDS = int(os.environ.get("MRCLAB_STARTER_SEEDS", "4"))
"""A hundred take some minutes of processor time per lab."""

LAB = pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.name)


QUICK = {
    "ports": ("tell", "spare", "back", "quiet", "repeat", "order", "both"),
    "spray": ("planes", "paths", "slow", "lost"), "window": ("back", "trims", "fair"),
    "health": ("leave", "keep", "return", "grey"),
    "tables": ("own", "unknown", "last-hop", "surplus", "arrive", "another"), "faults": ("loss", "table"),
}  # fmt: skip
"""Tests that take about a quarter of a second, of labs whose other cases here are dear."""


def cases(kind: str) -> list[object]:
    return [pytest.param(lab, one, id=f"{lab.name} {one.name}") for lab in LABS.values() for one in wrong(lab, kind)]


@LAB
def test_the_reference_passes(lab: Exercise) -> None:
    found = results(lab, reference(lab, SEED), SEED)
    assert first_failure(found) is None, first_failure(found)
    for test in found:  # facts only: advice is for tests that failed
        assert not re.search(r"\?|\bmust\b", test.outcome.happened), test.outcome.happened
        assert not test.outcome.look


@pytest.mark.parametrize(("name", "test"), [(name, test) for name, tests in QUICK.items() for test in tests])
@pytest.mark.smoke
def test_the_reference_passes_quick_tests(name: str, test: str) -> None:
    (found,) = results(find(name), reference(find(name), SEED), SEED, only=test, trusted=True)
    assert found.outcome.passed, found.outcome.happened


@LAB
def test_the_starter_is_short_and_fails_with_a_message(lab: Exercise) -> None:
    text = lab.starter(SEED)
    assert len(text.splitlines()) <= STARTER_LINES_MAX
    assert "GAP" in text
    first = first_failure(results(lab, text, SEED, until_failure=True))
    assert first is not None
    assert len(first.outcome.happened) > 10


TRIALS: dict[tuple[str, str], Trial] = {}
RATES: dict[tuple[int, int], list[float]] = {}
"""Runs of starters by their questions: plan, timeline and load, without the seeds of random draws."""
FOLDER = Path(tempfile.mkdtemp(prefix="mrclab-course-shared-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def trial_once(work: StudentWork, case: TrialCase, folder: Path, limits: BoxLimits | None = None) -> Trial:
    """The trial of a starter's class, run once for all seeds that ask the same."""
    faults = tuple(replace(fault, seed=0) for fault in case.faults)
    key = (work.source, repr(replace(case, seed=0, faults=faults)))
    if key not in TRIALS:
        TRIALS[key] = attempt(work, case, FOLDER, limits)
    return TRIALS[key]


def rates_once(work: StudentWork, name: str, payload: int, faults: Sequence[Fault], steps: int) -> list[float]:
    """The rates of lab 10, run once for all seeds that ask the same."""
    assert not faults, "a starter's timeline is empty"
    if (payload, steps) not in RATES:
        RATES[payload, steps] = rates(work, name, payload, faults, steps)
    return RATES[payload, steps]


def earned(lab: Exercise, seed: int) -> set[str]:
    """The tests for which an untouched starter gets points. A test counts with its ground only, so it is left out
    where that fails."""
    grounds = replace(lab, tests=tuple(test for test in lab.tests if not test.ground))
    with mock.patch.object(trial, "attempt", trial_once), mock.patch.object(sampling, "rates", rates_once):
        found = {test.name for test in results(grounds, lab.starter(seed), seed, trusted=True) if test.score}
        if any(test.ground in found for test in lab.tests):
            found = {test.name for test in results(lab, lab.starter(seed), seed, trusted=True) if test.score}
    return found


@LAB
def test_an_untouched_starter_earns_nothing_but_that_it_compiles(lab: Exercise) -> None:
    assert earned(lab, SEED) <= {"builds"}


@pytest.mark.slow
@LAB
def test_an_untouched_starter_earns_nothing_under_any_students_seed(lab: Exercise) -> None:
    found = [earned(lab, seed) for seed in range(1000, 1000 + STARTER_SEEDS)]
    assert found == [found[0]] * STARTER_SEEDS
    assert found[0] <= {"builds"}


def test_a_test_that_a_starter_passes_counts_with_its_ground_only() -> None:
    """Points, the first failure and its hint are those of the ground; a file that does both loses nothing."""
    lab = find("spray")
    work = OpenWork(lab.starter(SEED), Path(lab.file), SEED, Path(), brief=True)
    outcomes = {"paths": TestOutcome(False, "a", "idle"), "rate": TestOutcome(True, "b", "full")}
    ground, rests = (Test(name, "t", 1, lambda _, name=name: outcomes[name]) for name in ("paths", "rate"))
    tests = (replace(rests, ground="paths"), ground)
    found = carry_out(replace(lab, tests=tests), work)
    result = CheckResult(5, "anna", SEED, "", found, 0.1)
    assert [(test.name, test.score) for test in found] == [("rate", 0), ("paths", 0)]
    assert result.first_failure == found[1]
    assert found[0].outcome.happened == "full; this counts once the test paths passes"
    assert [test.name for test in carry_out(replace(lab, tests=tests), work, only=["rate"])] == ["rate", "paths"]
    outcomes["paths"] = TestOutcome(True, "a", "even")
    assert all(test.passed and not test.waits for test in carry_out(replace(lab, tests=tests), work))


@LAB
def test_every_test_has_three_hints_and_the_page_its_parts(lab: Exercise) -> None:
    assert set(lab.hints) == {test.name for test in lab.tests}
    assert {len(steps) for steps in lab.hints.values()} == {HINTS}
    page = lab.page.read_text()
    for part in ("## Goal", "## Background", "## Steps", "## Questions"):
        assert part in page


@LAB
def test_there_are_mutants_and_cheats_enough(lab: Exercise) -> None:
    assert len(wrong(lab, "MUTANTS")) >= 8
    assert len(wrong(lab, "CHEATS")) >= 5


def test_advice_is_for_tests_that_failed() -> None:
    high, low = (judged("a", "b", (Gate("rate", value, 5),), ("./lab view x",), "do c") for value in (9, 1))
    assert (high.happened, high.look) == ("b", ())
    silent = judged("a", "b", (Gate("updates", 0, 1, cause="it says nothing"), Gate("rate", 1, 5)), advice="do c")
    assert silent.happened == "b; updates 0 (≥ 1) fails: it says nothing"
    assert (low.happened, low.look) == ("b; rate 1 (≥ 5) fails: do c", ("./lab view x",))


def fails(lab: Exercise, one: Mutant, seed: int = SEED) -> None:
    found = results(lab, one.change(reference(lab, seed), seed), seed, until_failure=True)
    first = first_failure(found)
    assert first is not None, f"{one.name} passes"
    assert re.search(one.cause, f"{first.name}: {first.outcome.happened}"), first.outcome.happened


@pytest.mark.parametrize(("lab", "mutant"), cases("MUTANTS"))
def test_every_wrong_solution_fails_for_its_cause(lab: Exercise, mutant: Mutant) -> None:
    fails(lab, mutant)


@pytest.mark.parametrize(
    ("name", "mutant", "seed"),
    [
        # The turns fall on one path of each plane first when an uplink is dead; lost packets were blamed.
        ("spray", "turns of the usable", 1024),
        ("spray", "turns of the usable", 1040),
        # Few losses of the lossy port come in a row: the class passed while nine leaves were allowed.
        ("health", "forgets that arrivals count", 1065),
        ("health", "forgets that arrivals count", 1072),
        ("health", "forgets that arrivals count", 1074),
    ],
)
def test_wrong_solutions_fail_for_their_cause_on_seeds_that_favour_them(name: str, mutant: str, seed: int) -> None:
    lab = find(name)
    (one,) = (one for one in wrong(lab, "MUTANTS") if one.name == mutant)
    fails(lab, one, seed)


@pytest.mark.parametrize(("lab", "cheat"), cases("CHEATS"))
def test_cheats_are_contained(lab: Exercise, cheat: Mutant) -> None:
    fails(lab, cheat)


MARKED = pytest.mark.parametrize("marked", [False, True])


@contextmanager
def one_lost(lab: Seam) -> Iterator[tuple[Bench, Log, Packet, int]]:
    """The reference of a lab has been told that a packet is lost, on this path; every other packet has arrived."""
    log, text = Log(), reference(find(lab), 1)
    with installed(Seat(lambda: OpenBox(text, f"{lab}.py", BoxLimits()), 12_000, log), lab):
        bench = Bench(selection=NAME, remote={"selection": "mrc"})
        bench.post(12)
        *others, late = bench.writes()  # the last of a write asks for an answer
        bench.to_b(*others)
        bench.to_a(*bench.answers())
        bench.wait(3)
        bench.post(4)
        bench.to_b(*bench.writes())
        bench.to_a(*bench.answers())
        (lost,) = (one.path for one in log.events if one.kind == "lost")
        yield bench, log, late, lost


def arrive(bench: Bench, packet: Packet, marked: bool) -> None:
    bench.to_b(packet.marked() if marked else packet)
    bench.to_a(*bench.answers())


def fates(log: Log, first: int) -> list[tuple[str, int, bool]]:
    return [(one.kind, one.path, one.marked) for one in log.events[first:]]


@MARKED
@pytest.mark.parametrize("lab", ["spray", "health"])
def test_a_late_packet_that_was_sent_again(lab: Seam, marked: bool) -> None:
    with one_lost(lab) as (bench, log, late, lost):
        first = len(log.events)
        (copy,) = bench.writes()
        again = log.events[-1].path
        assert again != lost
        arrive(bench, late, marked)
        ended = ("acked", again, False) if lab == "spray" else ("acked", lost, marked)
        assert fates(log, first) == [("sent", again, False), ended]
        arrive(bench, copy, True)  # a copy of what has arrived has no fate
        assert fates(log, first) == [("sent", again, False), ended]


@MARKED
@pytest.mark.parametrize("lab", ["spray", "health"])
def test_a_late_packet_that_was_not_sent_again_speaks_for_its_path_in_lab_6_alone(lab: Seam, marked: bool) -> None:
    """In lab 5 it has had its fate."""
    with one_lost(lab) as (bench, log, late, lost):
        first = len(log.events)
        arrive(bench, late, marked)
        assert fates(log, first) == ([("acked", lost, marked)] if lab == "health" else [])
