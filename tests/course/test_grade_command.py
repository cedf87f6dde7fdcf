"""`./lab grade`: one submission spoils no other, machines share a folder, results follow the lab."""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from common import user_code
from course import checking
from course.catalogue import find
from course.exercise import Exercise
from course.grading import grading
from course.result import CheckResult, TestOutcome, TestResult
from course.student import Student
from course.student_folder import reference
from running import identity

USIDS = find("usids")


@pytest.fixture
def submissions(tmp_path: Path) -> Path:
    """A folder of three students."""
    for name in ("anna", "ben", "carl"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / USIDS.file).write_text(f"ANSWERS = {{}}  # {name}\n")
    return tmp_path / "in"


def failed(lab: Exercise, path: Path, source: str, student: Student, folder: Path, seed: int) -> CheckResult:
    """In place of a check, which takes a second: the result of a file that fails."""
    test = TestResult("path-1", "a path", 1, TestOutcome(False, "a", "b"), 0.1)
    return CheckResult(lab.number, student.name, seed, hashlib.sha256(source.encode()).hexdigest(), (test,), 0.1)


def graded(tmp_path: Path, *words: str) -> int:
    """Grade lab 1 of the folder `in` into `out`; the exit status."""
    given = ["grade", str(tmp_path / "in"), "--key", "k", "--labs", "1", "--workers", "1"]
    return main([*given, "--output", str(tmp_path / "out"), *words])


def rows(tmp_path: Path, name: str = "grades.csv") -> list[dict[str, str]]:
    with (tmp_path / "out" / name).open() as lines:
        return list(csv.DictReader(lines))


def test_a_text_without_a_form_in_utf8_spoils_no_grading_and_no_old_result(tmp_path: Path) -> None:
    (tmp_path / "in" / "eve").mkdir(parents=True)
    (tmp_path / "in" / "eve" / USIDS.file).write_text('raise ValueError("\\ud800 hello")\n')
    for _ in range(2):
        assert graded(tmp_path) == 0
        assert "ValueError: ? hello" in rows(tmp_path)[0]["first failure"]
    # nor does an old result with such a text
    test = TestResult("one", "t", 1, TestOutcome(False, "\ud800", "\udfff", look=("\ud800",)), 0.1, "\ud800")
    document = CheckResult(1, "anna", 7, "", (test,), 0.1, trouble="\ud800").document()
    read = CheckResult.read(json.loads(json.dumps(document)))
    assert json.dumps(read.document(), ensure_ascii=False).encode().count(b"?") == 5


def test_an_error_with_one_submission_is_its_trouble(submissions: Path, tmp_path, monkeypatch) -> None:
    def check(lab: Exercise, path: Path, *rest: Any) -> CheckResult:
        if "anna" in path.parts:
            raise RuntimeError("not this one")
        return failed(lab, path, *rest)

    monkeypatch.setattr(checking, "check", check)
    assert graded(tmp_path) == 1
    assert [row["status"] for row in rows(tmp_path)] == ["not run", "not yet", "not yet"]
    assert "RuntimeError: not this one" in rows(tmp_path)[0]["first failure"]


def test_results_of_a_lab_that_was_changed_are_made_again(submissions: Path, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(checking, "check", failed)
    assert graded(tmp_path) == graded(tmp_path) == 0
    assert capsys.readouterr().out.count("kept from before") == 3
    monkeypatch.setattr(grading, "version", lambda: "another")
    assert graded(tmp_path) == 0
    assert "kept from before" not in capsys.readouterr().out


def test_a_lab_that_is_named_twice_is_graded_once(submissions: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(checking, "check", failed)
    graded(tmp_path, "--labs", f"1,{USIDS.name},1")
    assert [row["student"] for row in rows(tmp_path)] == ["anna", "ben", "carl"]


def test_the_version_of_a_result_follows_the_labs_and_what_they_run(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(identity, "ROOT", tmp_path)
    monkeypatch.setattr(identity, "code_digest", identity.code_digest.__wrapped__)
    course = tmp_path / "packages" / "course" / "course"
    places = [
        course / "labs" / "usids" / "tests.py", course / "seams" / "trial.py", course / "bench" / "around.p4",
        tmp_path / "p4" / "parts" / "headers.p4", tmp_path / "endpoint" / "agent.py",
    ]  # fmt: skip
    seen = {grading.version()}
    for place in places:
        place.parent.mkdir(parents=True)
        place.write_text("LIMIT = 1\n")
        seen.add(grading.version())
    assert len(seen) == 1 + len(places)
    (course / "grading").mkdir()
    (course / "grading" / "tables.py").write_text("LIMIT = 1\n")
    assert grading.version() in seen


def test_whatever_a_check_imports_is_in_the_version_of_its_result() -> None:
    """All but the code of pages, which show what was found."""
    places = (*grading.JUDGES, *(place for places in identity.CODE.values() for place in places))
    known = [identity.placed(place) for place in (*places, "page")]
    reached = user_code.imported(identity.placed("course/worker.py"), known, identity.import_roots())
    inside = [path.relative_to(identity.ROOT) for path in reached if path.is_relative_to(identity.ROOT)]
    assert [str(path) for path in inside if path.name != "__init__.py"] == []


def test_machines_with_a_common_folder_write_tables_of_all_results(submissions, tmp_path, monkeypatch, capsys) -> None:
    for name in ("anna", "ben"):  # in different parts
        (submissions / name / "spray.py").write_text(reference(find("spray"), 0))
    (submissions / "ben" / USIDS.file).unlink()
    (submissions / "ben" / USIDS.file).symlink_to("/etc/passwd")
    monkeypatch.setattr(checking, "check", failed)
    statuses = [graded(tmp_path, "--labs", "1,5", "--part", f"{number}/3") for number in (1, 2, 3)]
    assert statuses == [0, 1, 0]
    assert "the tables have 5 of 5 results" in capsys.readouterr().out
    assert [f"{row['student']} {row['lab']} {row['status']}" for row in rows(tmp_path)] == [
        "anna 1 not yet", "anna 5 not yet", "ben 1 not run", "ben 5 not yet", "carl 1 not yet",
    ]  # fmt: skip
    assert {"one": "anna", "other": "ben", "lab": "spray", "share": "1.00"} in rows(tmp_path, "similar.csv")
    assert "carl" in (tmp_path / "out" / "index.html").read_text()


def test_a_part_without_students_is_refused(submissions: Path, tmp_path, capsys) -> None:
    assert graded(tmp_path, "--part", "4/4") == 2
    assert "--part 4/4 must have a student (got 3 students for 4 parts)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


HOSTILE = ('a""";__import__("os").system("id>&2");"""', "\\users", "x$(id)y", "x" * 81, "an\u200bna", "`id`")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_folder_with_a_bad_name_costs_no_other_student_the_grade(
    name: str, submissions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (submissions / name).mkdir()
    (submissions / name / USIDS.file).write_text("ANSWERS = {}\n")
    monkeypatch.setattr(checking, "check", failed)
    assert graded(tmp_path) == 1
    assert [row["student"] for row in rows(tmp_path)] == ["anna", "ben", "carl"]
    rule = "not graded: a student's name must have 1 to 80 printable characters, none of them a quote, a backslash"
    assert rule in (said := capsys.readouterr().err)
    assert repr(name)[1:20] in said
    assert "Not graded" in (tmp_path / "out" / "index.html").read_text()


def test_a_folder_of_bad_names_alone_is_refused_with_the_rule(tmp_path, capsys) -> None:
    (tmp_path / "in" / "$x").mkdir(parents=True)
    (tmp_path / "in" / "$x" / USIDS.file).write_text("ANSWERS = {}\n")
    assert graded(tmp_path) == 2
    assert "has no submission" in (said := capsys.readouterr().err)
    assert "none of them a quote" in said
