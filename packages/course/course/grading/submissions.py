"""The files of a folder of submissions: a folder per student, in it the labs' files. Nothing in them is followed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common import plain_file
from common.outcome import error_line
from common.terminal.printable import printable
from course.box.box import SOURCE_BYTES_MAX
from course.exercise import Exercise
from course.student import Student
from course.student_folder import CourseError

STUDENTS_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Submission:
    """One student's file for one lab."""

    student: str
    lab: Exercise
    path: Path

    def source(self) -> str:
        """The text. OSError for a file that is no ordinary one, or too large."""
        return plain_file.read_bytes(self.path, SOURCE_BYTES_MAX).decode(errors="replace")


def find_submissions(folder: Path, labs: Sequence[Exercise], key: str) -> tuple[list[Submission], list[str]]:
    """All submissions, by student and lab; and for each folder or link that was left out, why. CourseError for a folder
    without any submission."""
    if not folder.is_dir():
        raise CourseError(f"{folder} must be a folder with a folder for each student, as in {folder}/anna/usids.py")
    students = sorted(path for path in folder.iterdir() if path.is_dir() or path.is_symlink())
    if len(students) > STUDENTS_MAX:
        raise CourseError(f"{folder} must have at most {STUDENTS_MAX} folders (got {len(students)})")
    result, refused = [], []
    for path in students:
        try:
            plain_file.check_folder(path)
            Student(path.name, key)
            if path.name.startswith("."):
                raise ValueError(f"a student's folder must not begin with a dot (got {path.name!r})")
        except (ValueError, OSError) as error:
            refused.append(printable(error_line(error)))
            continue
        result += [Submission(path.name, lab, path / lab.file) for lab in labs if os.path.lexists(path / lab.file)]
    if not result:
        names = ", ".join(lab.file for lab in labs)
        why = "; ".join([f"a student's folder must hold one of {names}", *refused[:1]])
        raise CourseError(f"{folder} has no submission: {why}")
    return result, refused
