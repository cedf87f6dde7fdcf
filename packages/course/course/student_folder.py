"""`mylab/`: the student's folder. Starters are put there, never over work, and results are kept there."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import files, plain_file
from common.terminal.standard_streams import named
from course.catalogue import LABS
from course.exercise import Exercise
from course.result import CheckResult
from course.student import OWN_KEY, OWN_NAME, Student, started

MYLAB = Path("mylab")
NOTES = ".course.json"
REFERENCES = Path(__file__).parents[3] / "tests" / "course" / "references"


class CourseError(ValueError):
    """A command of the course cannot be carried out; the message says why."""


@dataclass(frozen=True, slots=True)
class StudentFolder:
    """The folder, whether it is there or not."""

    folder: Path = MYLAB

    def notes(self) -> dict[str, Any]:
        """The student and the results so far; empty without any. CourseError for a damaged file."""
        path = self.folder / NOTES
        if not path.exists():
            return {}
        try:
            return plain_file.read_object(path)
        except ValueError:
            raise CourseError(f"{path} is damaged: it must be a JSON object. Remove it, and start again") from None

    def _write(self, notes: dict[str, Any]) -> None:
        files.make_folder(self.folder)
        files.write_json(self.folder / NOTES, notes)

    def student(self, name: str | None = None, key: str | None = None) -> Student:
        """The student that a command names, or else the one of `start`, or else "me"."""
        own = {"name": OWN_NAME, "key": OWN_KEY, **self.notes().get("student", {})}
        return Student(own["name"] if name is None else name, own["key"] if key is None else key)

    def join(self, student: Student) -> None:
        """Make this the folder of a student in a class. CourseError where it has answers to other questions."""
        labs = LABS.values() if self.folder.exists() else ()  # to import all takes a while
        here = [lab for lab in labs if (self.folder / lab.file).exists()]
        for lab in here:
            path = self.folder / lab.file
            if lab.answers and student.other_start(lab.number, plain_file.read_up_to(path).decode(errors="replace")):
                raise CourseError(
                    f"{path} must be moved away before you join: it has the questions of another name or key"
                )
        self._write({**self.notes(), "student": {"name": student.name, "key": student.key}})
        for lab in here:
            self._put(lab.extra(student.seed(lab.number)))

    def _put(self, texts: Mapping[str, str]) -> list[Path]:
        for name, text in texts.items():
            files.write(self.folder / name, named(text))
        return [self.folder / name for name in texts]

    def start(self, lab: Exercise, student: Student, from_stage: bool = False) -> list[Path]:
        """Put a lab's starter into the folder; the files that are new. CourseError rather than writing over work."""
        path = self.folder / lab.file
        if path.exists():
            raise CourseError(f"{path} is there already, and is never overwritten: move it away to start again")
        notes = self.notes()
        kept = notes.get("student")
        own = {"name": student.name, "key": student.key}
        if kept and kept != own and any((self.folder / other.file).exists() for other in LABS.values()):
            raise CourseError(
                f"{self.folder}/ belongs to {kept['name']!r} with another name or key: use another folder, or"
                " ./lab course join NAME@KEY"
            )
        self._write({**notes, "student": own})
        seed = student.seed(lab.number)
        starter = started(lab.starter(seed), path.suffix, student.mark(lab.number))
        made = self._put({lab.file: starter, **lab.extra(seed)})
        if from_stage:
            made += self._earlier(lab, student)
        return made

    def _earlier(self, lab: Exercise, student: Student) -> list[Path]:
        """The references of earlier labs, where the student has no file."""
        made = []
        for other in LABS.values():
            path = self.folder / other.file
            if other.number < lab.number and not path.exists():
                files.write(path, reference(other, student.seed(other.number)))
                made.append(path)
        return made

    def record(self, result: CheckResult, every_test: bool = True) -> None:
        """Keep the outcome of a check: the failed test for hints, and the counts of every test for the list."""
        if result.trouble:
            return
        notes = self.notes()
        passed = [test.name for test in result.tests if test.passed]
        own = notes.get("labs", {}).get(str(result.lab), {})
        failing = result.first_failure.name if result.first_failure else ""
        if not (every_test or failing or own.get("failing") in passed):
            return  # the test that failed before may still fail
        own = {**own, "failing": failing, "hints": own.get("hints", 0) if failing == own.get("failing") else 0}
        if every_test:
            own |= {"passed": len(passed), "tests": len(result.tests), "digest": result.digest}
        self._write({**notes, "labs": {**notes.get("labs", {}), str(result.lab): own}})

    def next_hint(self, lab: Exercise) -> tuple[str, int, str] | None:
        """The next hint for the test that failed last: its name, the hint's number, its text. None without one."""
        notes = self.notes()
        own = notes.get("labs", {}).get(str(lab.number), {})
        steps = lab.hints.get(own.get("failing", ""), ())
        if not steps:
            return None
        number = min(int(own.get("hints", 0)), len(steps) - 1)
        self._write({**notes, "labs": {**notes["labs"], str(lab.number): {**own, "hints": number + 1}}})
        return own["failing"], number + 1, steps[number]


def reference(lab: Exercise, seed: int) -> str:
    """The reference solution of a lab. CourseError where the tests, which keep it, are not there."""
    path = REFERENCES / lab.file
    if not path.exists():
        raise CourseError(f"{path} is missing: references are kept with the tests of a clone, not in a package")
    return lab.solve(path.read_text(), seed)
