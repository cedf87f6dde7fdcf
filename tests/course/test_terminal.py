"""A student's terminal: the result of a check, for any code, and the next command."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from cli.main import main
from course.catalogue import find
from course.result import CheckResult, TestOutcome, TestResult
from course.terminal import show


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


def test_a_lab_that_was_started_is_told_in_the_list_and_has_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert main(["course", "pack", "5"]) == 2
    assert "must have lab, service and key" in capsys.readouterr().err
