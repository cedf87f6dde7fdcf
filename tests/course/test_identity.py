"""Whose questions a file holds, told at each step and on a terminal; never graded against another student's."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.main import main
from course import checking
from course.catalogue import LABS, find
from course.result import CheckResult, TestOutcome, TestResult
from course.student import Student
from course.student_folder import StudentFolder
from course.terminal import show

USIDS = find("usids")
ANSWERED = [lab for lab in LABS.values() if lab.answers]
OTHER = "this file was started without the course key"


@pytest.fixture
def mylab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mylab"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The requests of checks, which a worker in place of the usual one answers at once."""
    seen: list[dict[str, Any]] = []
    test = TestResult("path-1", "a path", 1, TestOutcome(False, "a", "b"), 0.1)

    def answered(request: dict[str, Any], tell: object) -> CheckResult:
        seen.append(request)
        return CheckResult(request["lab"], request["student"], request["seed"], "", (test,), 0.1)

    monkeypatch.setattr(checking, "carried_out", answered)
    return seen


def test_without_a_key_every_step_says_that_it_counts_for_no_class(mylab: Path, quick, capsys) -> None:
    for words in (["start", "1"], ["check", "1"]):
        main(words)
        said = " ".join(capsys.readouterr().out.split())
        assert "'me', without a course key" in said
        assert "./lab course join" in said
    assert main(["course"]) == 0
    assert "without a course key" in capsys.readouterr().out


def test_under_a_key_every_step_says_whose_questions_these_are(mylab: Path, quick, capsys) -> None:
    assert main(["course", "join", "anna@net-2026"]) == 0
    assert "'anna', with the course key" in capsys.readouterr().out
    for words in (["start", "1"], ["check", "1"]):
        main(words)
        said = capsys.readouterr().out
        assert "'anna', with the course key" in said
        assert "join" not in said
    assert quick[0]["seed"] == Student("anna", "net-2026").seed(1)


@pytest.mark.parametrize("lab", ANSWERED, ids=lambda lab: lab.name)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), OTHER),
        (("--student", "anna"), OTHER),
        (("--student", "ben", "--key", "net-2026"), "this file was started under another name or key"),
    ],
)
def test_a_file_with_other_questions_is_not_graded(lab, words, said: str, mylab: Path, quick, tmp_path, capsys) -> None:
    main(["start", str(lab.number), *words])
    (tmp_path / "in" / "anna").mkdir(parents=True)
    (mylab / lab.file).rename(tmp_path / "in" / "anna" / lab.file)
    assert main(["grade", str(tmp_path / "in"), "--key", "net-2026", "--output", str(tmp_path / "out")]) == 1
    assert said in capsys.readouterr().out
    (row,) = csv.DictReader((tmp_path / "out" / "grades.csv").open())
    assert (row["status"], row["score"]) == ("not run", "0")
    assert row["first failure"].startswith(said)
    there = ["check", str(lab.number), str(tmp_path / "in" / "anna" / lab.file), "--student=anna", "--key=net-2026"]
    assert main(there) == 2
    assert quick == []


def test_the_file_of_the_student_is_graded_and_code_for_any_seed_always(mylab: Path, quick, tmp_path: Path) -> None:
    main(["start", "1", "--student", "Anna", "--key", "net-2026"])
    (tmp_path / "in" / "anna").mkdir(parents=True)
    (mylab / "usids.py").rename(tmp_path / "in" / "anna" / "usids.py")
    StudentFolder(tmp_path / "own").start(find("spray"), Student("me"))
    (tmp_path / "own" / "spray.py").rename(tmp_path / "in" / "anna" / "spray.py")
    assert main(["grade", str(tmp_path / "in"), "--key", "net-2026", "--output", str(tmp_path / "out")]) == 0
    assert sorted(request["lab"] for request in quick) == [1, 5]


def test_every_started_file_names_its_seed_in_a_comment(mylab: Path) -> None:
    for lab in LABS.values():
        anna, ben = Student("anna", "k"), Student("ben", "k")
        StudentFolder(mylab).start(lab, anna)
        text = (mylab / lab.file).read_text()
        assert anna.mark(lab.number) in text.splitlines()[-1]
        assert ben.mark(lab.number) not in text
        assert text.splitlines()[-1].startswith("//" if lab.file.endswith(".p4") else "#")


@pytest.mark.parametrize(
    "words",
    [
        ("start", "1", "--student", ""),
        ("start", "1", "--student", " "),
        ("start", "1", "--key", ""),
        ("course", "join", "@net-2026"),
        ("course", "join", "anna@"),
        ("course", "join", "anna"),
        ("course", "join"),
    ],
)
def test_empty_names_and_keys_are_refused(words: tuple[str, ...], mylab: Path, refused) -> None:
    assert "must" in refused(*words)
    assert not mylab.exists()


def test_a_class_is_joined_once_and_work_for_any_seed_is_kept(mylab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["start", "3"])
    (mylab / "tables.py").write_text("my work\n")
    before = (mylab / "tables.toml").read_text()
    assert main(["course", "join", "anna@example.org@net-2026"]) == 0
    assert (mylab / "tables.py").read_text() == "my work\n"
    assert (
        (mylab / "tables.toml").read_text()
        == find("tables").extra(Student("anna@example.org", "net-2026").seed(3))["tables.toml"]
        != before
    )
    notes = json.loads((mylab / ".course.json").read_text())
    assert notes["student"] == {"name": "anna@example.org", "key": "net-2026"}


def test_a_class_is_not_joined_over_answers_to_other_questions(mylab: Path, refused) -> None:
    main(["start", "1"])
    assert "usids.py must be moved away" in refused("course", "join", "anna@net-2026")
    assert StudentFolder(mylab).student().name == "me"


def test_a_terminal_does_not_obey_what_a_student_prints() -> None:
    lab = find("1")
    words = "one\n\x1b]0;passed\x07 [b]two[/b]\n"
    test = TestResult("name", "title", 1, TestOutcome(False, words, words, look=(words,)), 0.1, printed=words)
    result = CheckResult(lab.number, "s1", 1, "", (test,), 0.1)
    for one in (result, replace(result, trouble="\x1b[2J [b]two[/b]")):
        text = io.StringIO()
        show(Console(file=text, width=100), lab, one, "router.py")
        assert "\x1b" not in text.getvalue()
        assert "\N{REPLACEMENT CHARACTER}" in text.getvalue()
        assert "[b]two[/b]" in text.getvalue()


def test_a_result_has_the_names_of_tests_as_handouts_do() -> None:
    lab = find("9")
    test = TestResult("cable", "a cable without light", 1, TestOutcome(False, "this", "that"), 0.1)
    text = io.StringIO()
    show(Console(file=text, width=100), lab, CheckResult(lab.number, "s1", 1, "", (test,), 0.1), "faults.py")
    assert text.getvalue().count("cable: a cable without light") == 2  # in the list, and above the first failure


def test_a_lab_that_was_started_is_told_in_the_list_and_has_a_page(tmp_path, capsys, refused) -> None:
    folder = ["--folder", str(tmp_path / "mylab")]
    assert main(["start", "5", "--student", "s1", "--key", "k", *folder]) == 0
    assert (tmp_path / "mylab" / find("5").file).read_text()
    assert "fill the gaps, then ./lab check 5" in capsys.readouterr().out
    assert main(["course", "list", "--format", "json", *folder]) == 0
    assert [row["number"] for row in json.loads(capsys.readouterr().out) if row["started"]] == [5]
    assert main(["course", "list", *folder]) == 0
    assert find("5").title in capsys.readouterr().out
    assert main(["course", "page", "5"]) == 0
    assert "Goal" in capsys.readouterr().out
    assert "must have lab, service and key" in refused("course", "pack", "5")
