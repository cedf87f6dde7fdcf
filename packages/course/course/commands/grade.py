"""`mrclab grade DIR`: grade a folder of submissions; tables, a page per student, similar pairs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cli import add, check_workers
from common import files
from common.terminal.printable import path_line, printable
from common.terminal.standard_streams import write_error, write_out

if TYPE_CHECKING:
    from course.grading.submissions import Submission
    from course.grading.tables import Graded
    from course.result import CheckResult

SIMILAR = 0.6


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    grade = add(subparsers, "grade", grade_command, __file__)
    grade.add_argument("submissions", type=Path, metavar="DIR", help="the folder of submissions")
    grade.add_argument("--key", required=True, metavar="WORD", help="the course key")
    grade.add_argument("--labs", metavar="N,N", help="numbers or names of labs (all)")
    grade.add_argument("--output", type=Path, default=Path("graded"), metavar="DIR", help="for the results (graded/)")
    grade.add_argument("--workers", type=int, metavar="N", help="checks at the same time (one for each processor)")
    grade.add_argument("--part", metavar="N/OF", help="only this share of the students, for several machines")
    grade.add_argument("--fresh", default="", metavar="WORD", help="other seeds than the students' for labs 2 to 9")
    grade.add_argument("--similar", type=float, default=SIMILAR, metavar="SHARE", help="list pairs from here on (0.6)")


def grade_command(arguments: argparse.Namespace) -> int:
    from course.catalogue import LABS, find
    from course.grading.formats import FORMATS
    from course.grading.grading import RESULTS, Grading, part
    from course.grading.submissions import find_submissions

    check_workers(arguments.workers)
    if not 0 <= arguments.similar <= 1:
        raise ValueError(f"--similar must be between 0 and 1 (got {arguments.similar:.15g})")
    named = [find(word.strip()) for word in arguments.labs.split(",")] if arguments.labs else LABS.values()
    labs = list({lab.number: lab for lab in named}.values())  # 1,usids names one lab
    if not arguments.key:
        raise ValueError("the course key must not be empty; the teacher chooses it")
    everyone, refused = find_submissions(arguments.submissions, labs, arguments.key)
    submissions = list(part(everyone, arguments.part))
    if not submissions:
        students = len({submission.student for submission in everyone})
        of = arguments.part.partition("/")[2]
        raise ValueError(f"--part {arguments.part} must have a student (got {students} students for {of} parts)")
    output: Path = arguments.output
    files.make_folder(output)
    grading = Grading(output, arguments.key, arguments.fresh)
    done = 0

    def tell(submission: Submission, result: CheckResult, kept: bool) -> None:
        nonlocal done
        done += 1
        words = result.trouble or f"{result.score}/{submission.lab.points} in {result.seconds:.0f} s"
        words += "".join(f", {test.name}: {test.outcome.happened}" for test in result.defects)
        words += ", kept from before" if kept else ""
        write_out(f"{done}/{len(submissions)} {submission.student} lab {submission.lab.number}: {printable(words)}\n")

    graded = grading.all(submissions, arguments.workers or len(os.sched_getaffinity(0)), tell)
    for submission, result in graded:
        place = output / RESULTS / submission.student
        files.make_folder(place)
        for name, form in FORMATS.items():
            suffix = "xml" if name == "junit" else "json"
            files.write(place / f"{submission.lab.name}.{name}.{suffix}", form(submission.lab, result))
    passed = sum(result.status == 0 for _, result in graded)
    write_out(f"{passed} of {len(graded)} submissions pass\n")
    write_out(path_line("grades:", output / "grades.csv") + path_line("page:", output / "index.html"))
    there = write_tables(output, graded, everyone, grading.stored, arguments.similar, refused)
    if len(everyone) > len(graded):
        write_out(f"the tables have {there} of {len(everyone)} results, of all parts so far\n")
    for why in refused:
        write_error(f"not graded: {why}")
    return 1 if refused or any(result.trouble or result.defects for _, result in graded) else 0


def write_tables(
    output: Path,
    graded: Graded,
    everyone: Sequence[Submission],
    stored: Callable[[Sequence[Submission]], Graded],
    least: float,
    refused: Sequence[str],
) -> int:
    """Write the tables of all parts that share the folder; how many results they have.

    They are written again while results of other machines arrive: the last machine to write has seen all of them.
    """
    from course.grading import tables

    alike = similar_pairs(everyone, least)
    files.write(output / "similar.csv", tables.pairs(alike))
    mine = {submission.path for submission, _ in graded}
    others = [submission for submission in everyone if submission.path not in mine]
    seen: Graded | None = None
    rows: Graded = []
    while (there := stored(others)) != seen:
        seen = there
        rows = sorted([*graded, *there], key=lambda row: (row[0].student, row[0].lab.number))
        files.write(output / "grades.csv", tables.grades(rows))
        files.write(output / "index.html", tables.overview(rows, alike, refused))
    return len(rows)


def similar_pairs(own: Sequence[Submission], least: float) -> list[tuple[str, float, str, str]]:
    """Pairs of submissions, and of submissions with the reference, by lab."""
    from course.grading.similarity import similar
    from course.student_folder import CourseError, reference

    result = []
    for number in sorted({submission.lab.number for submission in own}):
        lab = next(submission.lab for submission in own if submission.lab.number == number)
        if lab.answers:
            continue  # every student has other questions
        texts = {}
        for submission in own:
            if submission.lab.number == number:
                try:
                    texts[submission.student] = submission.source()
                except OSError:
                    continue
        with suppress(CourseError):  # a clone that was handed out without references
            texts["(the reference)"] = reference(lab, 0)
        pairs = similar(texts, lab.starter(0), Path(lab.file).suffix)
        result += [(lab.name, share, first, other) for share, first, other in pairs if share >= least]
    return result
