"""The files of a folder of submissions: a folder per student, in it the labs' files. Nothing in them is followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course.checking import text_of
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
        """The text; a file that is no ordinary one, or too large, is refused. OSError or CourseError."""
        handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise CourseError(f"{self.path} must be an ordinary file")
            return text_of(file, self.path)


def found(folder: Path, labs: Sequence[Exercise], key: str) -> tuple[list[Submission], list[str]]:
    """All submissions, by student and lab; and for each folder whose name can't be a student's, why. CourseError for a
    folder without any submission."""
    if not folder.is_dir():
        raise CourseError(f"{folder} must be a folder with a folder for each student, as in {folder}/anna/usids.py")
    students = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    if len(students) > STUDENTS_MAX:
        raise CourseError(f"{folder} must have at most {STUDENTS_MAX} folders (got {len(students)})")
    result, refused = [], []
    for path in students:
        if path.name.startswith("."):
            continue
        try:
            Student(path.name, key)
        except ValueError as error:
            refused.append(str(error))
            continue
        result += [Submission(path.name, lab, path / lab.file) for lab in labs if os.path.lexists(path / lab.file)]
    if not result:
        names = ", ".join(lab.file for lab in labs)
        why = "; ".join([f"a student's folder must hold one of {names}", *refused[:1]])
        raise CourseError(f"{folder} has no submission: {why}")
    return result, refused
