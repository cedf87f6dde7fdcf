"""Grades a folder: each file is checked in its own process, and each result is kept as soon as it is there.

A result is valid for one digest of the file, one seed, one lab and one version of the labs: a grading that was killed
goes on where it was, and a file that was submitted again, or a lab that was changed, is graded again.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from common import files, plain_file
from common.outcome import error_line
from course import checking
from course.grading.submissions import Submission
from course.page import page
from course.result import CheckResult
from course.student import Student
from course.writable import writable
from running import identity

RESULTS, PAGES = "results", "pages"
JUDGES = (
    "course/bench", "course/box", "course/labs", "course/seams", "course/catalogue.py",
    "course/checking.py", "course/exercise.py", "course/result.py", "course/student.py", "course/worker.py",
    "course/writable.py", "judging", "operations/incident", "paper", "studies/hunting",
)  # fmt: skip
"""The code that decides a result beside that of a run. Labs share code, so one version is for all of them."""
PROGRAMS = ("course/bench", "p4/parts", "p4c/frontend/include")


def version() -> str:
    """The digest of everything that decides a result but for the submission and its seed."""
    code = identity.code_digest((*JUDGES, *(place for places in identity.CODE.values() for place in places)))
    programs = [path.read_bytes() for place in PROGRAMS for path in sorted(identity.placed(place).glob("*.p4"))]
    return identity.digest(b"\0".join([code.encode(), *programs]))


@dataclass(frozen=True, slots=True)
class Grading:
    """`output` keeps results and pages; `fresh` is a word for seeds that students can't know, "" for theirs."""

    output: Path
    key: str
    fresh: str = ""

    def seed(self, submission: Submission) -> int:
        return Student(submission.student, self.key).seed(submission.lab.number, self.fresh_for(submission))

    def fresh_for(self, submission: Submission) -> str:
        """Answers that depend on the student's seed keep it."""
        return "" if submission.lab.answers else self.fresh

    def place(self, submission: Submission) -> Path:
        return self.output / RESULTS / submission.student / f"{submission.lab.name}.json"

    def stored(self, submissions: Sequence[Submission]) -> list[tuple[Submission, CheckResult]]:
        """The submissions that a machine has graded, with their results; a trouble is a result here."""
        results = ((submission, self.earlier(submission, trouble=True)) for submission in submissions)
        return [(submission, result) for submission, result in results if result is not None]

    def earlier(self, submission: Submission, trouble: bool = False) -> CheckResult | None:
        """The result of an earlier grading of the same file with the same seed by the same labs; None without one.

        `trouble`: a check that could not be run counts as well, and it has no file to compare.
        """
        try:
            result = CheckResult.read(plain_file.read_object(self.place(submission)))
            if (result.seed, result.version) != (self.seed(submission), version()):
                return None
            if result.trouble:
                return result if trouble else None
            digest = hashlib.sha256(submission.source().encode()).hexdigest()
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return result if result.digest == digest else None

    def grade(self, submission: Submission) -> CheckResult:
        """Check one file, and keep result and page."""
        seed, graded_by = self.seed(submission), version()
        student = Student(submission.student, self.key)
        pages = self.output / PAGES / submission.student
        try:
            source = submission.source()
        except OSError as error:
            result, source = checking.not_run(submission.lab, student, seed, error_line(error)), ""
        else:
            folder = pages / submission.lab.name
            files.make_folder(folder)
            path = folder / submission.lab.file  # kept: a counterexample runs this file
            files.write(path, source)
            result = checking.check(submission.lab, path, source, student, folder, seed)
        result = replace(result, version=graded_by)
        files.make_folder(pages)
        files.write(pages / f"{submission.lab.name}.html", page(submission.lab, result, source))
        files.make_folder(self.place(submission).parent)
        files.write_json(self.place(submission), result.document())
        return result

    def not_graded(self, submission: Submission, error: Exception) -> CheckResult:
        """The result of a submission whose grading ended with an error."""
        why = error_line(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        trouble = f"the grading ended with {why}"
        student = Student(submission.student, self.key)
        return checking.not_run(submission.lab, student, self.seed(submission), writable(trouble))

    def all(
        self, submissions: Sequence[Submission], workers: int, tell: Callable[[Submission, CheckResult, bool], None]
    ) -> list[tuple[Submission, CheckResult]]:
        """Every submission's result, in their order; `tell` hears of each, and whether it was there already."""
        results: dict[int, CheckResult] = {}
        for number, submission in enumerate(submissions):
            if (kept := self.earlier(submission)) is not None:
                results[number] = kept
                tell(submission, kept, True)
        with ThreadPoolExecutor(workers) as pool:
            missing = [number for number in range(len(submissions)) if number not in results]
            futures = {pool.submit(self.grade, submissions[number]): number for number in missing}
            try:
                for future in as_completed(futures):
                    number = futures[future]
                    try:
                        results[number] = future.result()
                    except Exception as error:  # of one submission, which must not cost the others their grades
                        results[number] = self.not_graded(submissions[number], error)
                    tell(submissions[number], results[number], False)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return [(submission, results[number]) for number, submission in enumerate(submissions)]


def part(submissions: Sequence[Submission], text: str | None) -> Iterator[Submission]:
    """The submissions of one machine of several: "2/4" is every fourth student, from the second on."""
    if text is None:
        yield from submissions
        return
    try:
        number, of = (int(word) for word in text.split("/"))
    except ValueError:
        number = of = 0
    if not 1 <= number <= of:
        raise ValueError(f"--part must be NUMBER/OF, such as 2/4 (got {text!r})")
    students = sorted({submission.student for submission in submissions})
    mine = set(students[number - 1 :: of])
    yield from (submission for submission in submissions if submission.student in mine)
