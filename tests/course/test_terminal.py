"""A result in the terminal, of code that a student has written."""

import io
from dataclasses import replace

from rich.console import Console

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
