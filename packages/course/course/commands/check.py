"""`mrclab check N`: whether a lab is solved; the first failure first."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cli import add, add_exercise, hand_over
from common.terminal.printable import path_line
from common.terminal.standard_streams import write_out
from course.commands.names import check_names

if TYPE_CHECKING:
    from course.exercise import Exercise
    from course.result import CheckResult


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    check = add(subparsers, "check", check_command, __file__)
    add_exercise(check, check_names)
    words = "the file to check (the lab's in mylab/), or names of tests"
    check.add_argument("words", nargs="*", metavar="FILE|TEST", help=words)
    check.add_argument("--reference", action="store_true", help="check the reference instead of your file")
    check.add_argument("--student", metavar="NAME", help="the name or number that chooses the seed")
    check.add_argument("--key", metavar="WORD", help="the course key")
    check.add_argument(
        "--results",
        action="append",
        default=[],
        metavar="FORMAT=FILE",
        help="also write gradescope, classroom50, junit",
    )
    check.add_argument("--format", choices=("text", "json"), default="text")


def register_hint(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    add_exercise(add(subparsers, "hint", hint_command, __file__), check_names)


def check_command(arguments: argparse.Namespace) -> int:
    from common import files, plain_file
    from common.outcome import error_line
    from common.scratch import Scratch
    from common.terminal.console import LastingConsole
    from course import checking, terminal
    from course.catalogue import find
    from course.page import page
    from course.student_folder import StudentFolder, reference

    lab, mylab = find(arguments.lab), StudentFolder(arguments.folder)
    wanted = [formed(word) for word in arguments.results]
    student = mylab.student(arguments.student, arguments.key)
    names = [test.name for test in lab.tests]
    only = [word for word in arguments.words if word in names]
    others = [word for word in arguments.words if word not in names]
    if len(others) > 1 or (others and "." not in others[0] and not Path(others[0]).exists()):
        raise ValueError(f"a test of lab {lab.number} must be one of {', '.join(names)} (got {others[0]!r})")
    if only and wanted:
        raise ValueError("--results must have the results of all tests: name none")
    path = Path(others[0]) if others else mylab.folder / lab.file
    console = LastingConsole(highlight=False)
    if arguments.reference:
        with Scratch("mrclab-course-") as scratch:
            path = scratch / lab.file
            source = reference(lab, student.seed(lab.number))
            files.write(path, source)
            result = checking.check(lab, path, source, student, scratch / "checked", only=only)
        what = "the reference"
    else:
        if not path.exists():
            raise ValueError(f"{path} is missing: ./lab start {lab.number} puts the starter there")
        folder = mylab.folder / "checked" / lab.name
        files.make_folder(folder)
        try:
            source = checking.read(path)
        except plain_file.TooLongError as error:
            result, source = checking.not_run(lab, student, student.seed(lab.number), error_line(error)), ""
        else:
            with terminal.progress(console, lab) as tell:
                result = checking.check(lab, path, source, student, folder, only=only, tell=tell)
        what = str(path)
        files.write(folder / "page.html", page(lab, result, source))
        if path == mylab.folder / lab.file and mylab.notes():
            mylab.record(result, not only)
    for form, place in wanted:
        if files.write_named(Path(place), form(lab, result)):
            hand_over(Path(place))
    if arguments.format == "json":
        write_out(json.dumps(result.document(), indent=1) + "\n")
    else:
        terminal.show(console, lab, result, what, student.description)
        if not arguments.reference:
            page_file = mylab.folder / "checked" / lab.name / "page.html"
            console.print(path_line("on a page:", page_file), style="dim", markup=False, end="")
    return result.status


def formed(word: str) -> tuple[Callable[[Exercise, CheckResult], str], str]:
    """The format and the file of an option `--results FORMAT=FILE`."""
    from course.grading.formats import FORMATS

    name, _, place = word.partition("=")
    if name not in FORMATS or not place:
        raise ValueError(f"--results must be FORMAT=FILE with a format of {', '.join(FORMATS)} (got {word!r})")
    return FORMATS[name], place


def hint_command(arguments: argparse.Namespace) -> int:
    from course.catalogue import find
    from course.student_folder import StudentFolder

    lab = find(arguments.lab)
    hint = StudentFolder(arguments.folder).next_hint(lab)
    if hint is None:
        write_out(f"no test of lab {lab.number} has failed: ./lab check {lab.number} first\n")
        return 0
    name, number, text = hint
    write_out(f"hint {number} of 3 for {name}: {text}\n")
    return 0
