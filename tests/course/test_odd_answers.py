"""Answers of a student's code that have another type or size than a lab asks for: the student gets advice."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from course.box.box import BoxError
from course.catalogue import find
from course.exercise import NotPossibleError, StudentWork, Test
from course.grading import tables
from course.grading.submissions import Submission
from course.labs.figure import tests as figure
from course.labs.figure.tests import timeline
from course.result import CheckResult, TestOutcome
from course.seams.ports import TellingOperations
from course.worker import carried_out, carry_out
from tests.course.open_box import OpenWork


def work(source: str, folder: Path, lab: str = "figure") -> StudentWork:
    return OpenWork(source, folder / find(lab).file, 1, folder / "checked")


@pytest.mark.parametrize(
    ("update", "advice"),
    [
        ([["h2", "h3"], 0, 1], "with one peer of"),
        (["h2", [0, 1], 1], "a plane of"),
        (["h2", {}, 1], "a plane of"),
        (["h2", True, 1], "a plane of"),
    ],
)
def test_an_update_to_a_list_of_peers_or_planes_gets_advice(update: list[object], advice: str) -> None:
    ports = [SimpleNamespace(plane=plane) for plane in range(3)]
    peers = {name: SimpleNamespace() for name in ("h2", "h3")}
    nic: Any = SimpleNamespace(own=ports, planes=[0, 1, 2], named=lambda: peers)
    with pytest.raises(BoxError, match=advice):
        TellingOperations._send(nic, 0, [update])


@pytest.mark.parametrize(
    "fault",
    [
        ["1", "port-down", "h0.p0", 3], [1, "port-down", "h0.p0", "3"], [1, "port-down", "h0.p0", True],
        [True, "port-down", "h0.p0"], [1, "port-down", "h0.p0", 1], [None, "port-down", "h0.p0", 2],
    ],
)  # fmt: skip
def test_a_timeline_of_other_types_gets_advice(fault: list[object]) -> None:
    with pytest.raises(BoxError, match="a fault must be"):
        timeline([fault], 7, "figure.py")


def test_a_fault_may_last_longer_than_the_run() -> None:
    assert timeline([[1, "port-down", "h0.p0", 10**400]], 7, "figure.py") == [(1.0, "port-down", "h0.p0", None)]
    assert timeline([[1, "port-down", "h0.p0", 6.5]], 7, "figure.py") == [(1.0, "port-down", "h0.p0", 6.5)]


def defended(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str, gbps: float) -> TestOutcome:
    """The test of a defence, with runs that carry so much with each payload."""
    monkeypatch.setattr(figure, "rates", lambda *_: [gbps] * figure.STEPS)
    return figure.defends(work(f"DEFENCE = {text}\ndef timeline(): return []\n", folder))


@pytest.mark.parametrize("text", ['"1" * 900_000', '"1. " * 300_000', '"1" + " " * 900_000'])
def test_a_defence_of_any_length_is_read_soon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    with pytest.raises(BoxError, match=r"DEFENCE must be a text of at most 10000 characters \(got \d0000[01]\)"):
        defended(monkeypatch, tmp_path, text, 1500.0)


def test_a_number_of_many_digits_names_no_loss(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = defended(monkeypatch, tmp_path, '"1" * 9_000 + " 138.0 bytes, 0.0 %"', 1500.0)
    assert [gate.value for gate in found.gates[2:]] == [1, 1]
    found = defended(monkeypatch, tmp_path, '"9" * 9_000 + "138 bytes, " + "9" * 20 + "0 %"', 1500.0)
    assert [gate.value for gate in found.gates[2:]] == [0, 0]


def test_a_run_that_carries_nothing_at_first_gets_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(BoxError, match=r"timeline must leave .* up in step 0"):
        defended(monkeypatch, tmp_path, '"words"', 0.0)


def test_an_error_of_a_test_is_that_tests_failure_and_told_as_the_labs(tmp_path: Path) -> None:
    def breaks(work: StudentWork) -> TestOutcome:
        raise ZeroDivisionError("by zero")

    def holds(work: StudentWork) -> TestOutcome:
        return TestOutcome(True, "a", "b")

    lab = replace(find("usids"), tests=(Test("one", "the first", 1, breaks), Test("two", "the second", 2, holds)))
    first, second = carry_out(lab, work("x = 1\n", tmp_path))
    assert second.passed
    assert "ended with ZeroDivisionError: by zero" in first.outcome.happened
    assert "test_odd_answers.py:" in first.outcome.happened
    assert first.defect
    read = CheckResult.read(json.loads(json.dumps(CheckResult(1, "anna", 7, "", (first, second), 0.1).document())))
    assert [test.name for test in read.defects] == ["one"]
    submission = Submission("anna", lab, tmp_path)
    (row,) = csv.DictReader(io.StringIO(tables.grades([(submission, read)])))
    assert (row["status"], row["score"], row["defects"]) == ("not yet", "2", "one")


@pytest.mark.parametrize("error", [NotPossibleError("no compiler"), OSError("disk full"), MemoryError()])
def test_a_check_that_is_not_possible_is_no_students_failure(tmp_path: Path, error: Exception) -> None:
    def impossible(work: StudentWork) -> TestOutcome:
        raise error

    with pytest.raises(type(error)):
        carried_out(Test("one", "the first", 1, impossible), work("x = 1\n", tmp_path))
