"""`mrclab start N`: the starter of a lab, put into `mylab/`."""

from __future__ import annotations

import argparse
import sys

from cli import add, add_exercise
from common.terminal.printable import path_line, printable_text
from course.commands.names import check_names


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    start = add(subparsers, "start", start_command, __file__)
    add_exercise(start, check_names)
    start.add_argument("--student", metavar="NAME", help="your name or number, as the teacher's list has it")
    start.add_argument("--key", metavar="WORD", help="the course key that the teacher gives out (self-study)")
    start.add_argument("--from-stage", action="store_true", help="put the references of earlier labs there as well")


def start_command(arguments: argparse.Namespace) -> int:
    from course.catalogue import find
    from course.student_folder import StudentFolder

    lab, mylab = find(arguments.lab), StudentFolder(arguments.folder)
    student = mylab.student(arguments.student, arguments.key)
    made = mylab.start(lab, student, arguments.from_stage)
    for path in made:
        sys.stdout.write(path_line("new:", path))
    sys.stdout.write(printable_text(f"questions of {student.description}\n"))
    sys.stdout.write(f"read ./lab course page {lab.number}, fill the gaps, then ./lab check {lab.number}\n")
    return 0
