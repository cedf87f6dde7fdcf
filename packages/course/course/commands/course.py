"""`mrclab course`: the labs of the course, and what of them is done; `mrclab course page LAB` shows a lab's page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from cli import add, add_exercise, handing_over
from common.terminal.printable import path_line, printable_text
from course.commands.names import check_names

ACTIONS = ("list", "page", "pack", "join")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    course = add(subparsers, "course", course_command, __file__)
    course.add_argument("action", nargs="?", choices=ACTIONS, default="list", metavar="ACTION", help=", ".join(ACTIONS))
    course.add_argument("lab", nargs="?", metavar="LAB", help="a lab's number or name; join: NAME@KEY")
    add_exercise(course, check_names, named=False)
    course.add_argument(
        "--for", dest="service", choices=("gradescope",), help="pack: the service that takes the archive"
    )
    course.add_argument("--key", metavar="WORD", help="pack: the course key")
    course.add_argument("--output", type=Path, metavar="FILE", help="pack: the archive (LAB-gradescope.zip)")
    course.add_argument("--format", choices=("text", "json"), default="text")


def course_command(arguments: argparse.Namespace) -> int:
    from rich.markdown import Markdown

    from common.terminal.console import LastingConsole
    from course import terminal
    from course.catalogue import LABS, find
    from course.student import joined
    from course.student_folder import StudentFolder

    console = LastingConsole()
    if arguments.action == "page":
        if arguments.lab is None:
            raise ValueError("course page must be followed by a lab's number, as in: ./lab course page 1")
        console.print(Markdown(find(arguments.lab).page.read_text()))
        return 0
    if arguments.action == "pack":
        return pack(arguments)
    mylab = StudentFolder(arguments.folder)
    if arguments.action == "join":
        mylab.join(student := joined(arguments.lab or ""))
        sys.stdout.write(printable_text(f"from now on, questions of {student.description}\n"))
        return 0
    notes = mylab.notes()
    started = {lab.number for lab in LABS.values() if (mylab.folder / lab.file).exists()}
    if arguments.format == "json":
        rows = [
            {"number": lab.number, "name": lab.name, "title": lab.title, "minutes": lab.minutes, "file": lab.file}
            | {"started": lab.number in started, "done": notes.get("labs", {}).get(str(lab.number), {})}
            for lab in LABS.values()
        ]
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return 0
    terminal.listing(console, list(LABS.values()), notes, started, mylab.folder)
    if started:
        sys.stdout.write(printable_text(f"questions of {mylab.student().description}\n"))
    return 0


def pack(arguments: argparse.Namespace) -> int:
    """Write the archive of one lab for a grading service."""
    from course.catalogue import find
    from course.grading import packing

    if arguments.lab is None or arguments.service is None or arguments.key is None:
        raise ValueError("course pack must have lab, service and key: ./lab course pack 5 --for gradescope --key WORD")
    lab = find(arguments.lab)
    path = arguments.output or Path(f"{lab.name}-{arguments.service}.zip")
    with handing_over(path):
        size = packing.gradescope(lab, arguments.key, path)
    sys.stdout.write(path_line("wrote", path, f", {size / 1e6:.1f} MB"))
    return 0
