"""Grades as tables: CSV of all tests, similar pairs, and one page with all scores."""

from collections.abc import Sequence
from urllib.parse import quote

from common.csv_text import csv_text
from course.grading.submissions import Submission
from course.result import CheckResult
from judging.reports import page

Graded = Sequence[tuple[Submission, CheckResult]]
STATUS = {0: "passed", 1: "not yet", 2: "not run"}
HEAD = (
    "student", "lab", "name", "status", "score", "points", "passed", "tests", "seconds", "first failure", "defects",
)  # fmt: skip
SIMILAR_HEAD = ("lab", "share", "one", "other")
ALIKE = "Shares of common code beyond the starter. Short labs have few ways to be right: look before you judge."


def grades(graded: Graded) -> str:
    """A line per submission; `defects` are the tests that ended with an error."""
    rows = []
    for submission, result in graded:
        first, lab = result.first_failure, submission.lab
        why = result.trouble or (f"{first.title}: {first.outcome.happened}" if first else "")
        rows.append([
            submission.student, lab.number, lab.name, STATUS[result.status], result.score, lab.points,
            sum(test.passed for test in result.tests), len(lab.tests), result.seconds, " ".join(why.split()),
            " ".join(test.name for test in result.defects),
        ])  # fmt: skip
    return csv_text(HEAD, rows)


def pairs(similar: Sequence[tuple[str, float, str, str]]) -> str:
    """A line per similar pair: lab, share, two students."""
    rows = ((lab, f"{share:.2f}", first, other) for lab, share, first, other in similar)
    return csv_text(SIMILAR_HEAD, rows)


def overview(graded: Graded, similar: Sequence[tuple[str, float, str, str]], refused: Sequence[str] = ()) -> str:
    """All scores on one page, with links to their pages, and why folders were refused."""
    labs = sorted({submission.lab.number: submission.lab for submission, _ in graded}.items())
    results = {(submission.student, submission.lab.number): result for submission, result in graded}
    rows = []
    for student in sorted({submission.student for submission, _ in graded}):
        row, total = [student], 0
        for number, lab in labs:
            if (result := results.get((student, number))) is None:
                row.append("–")
                continue
            total += result.score
            mark = "true" if result.status == 0 else ("unknown" if result.score else "false")
            link = f"pages/{quote(student, safe='')}/{lab.name}.html"
            score = f"{result.score}/{lab.points}"
            row.append(page.Raw(f'<a class="mark {mark}" href="{link}">{score}</a>'))
        rows.append([*row, str(total)])
    alike = [[lab, f"{share:.0%}", first, other] for lab, share, first, other in similar]
    return page.page(
        "Grades",
        "<h1>Grades</h1>",
        page.table(["student", *(f"{number} {lab.name}" for number, lab in labs), "total"], rows),
        page.section("Not graded", *map(page.paragraph, refused)),
        page.section("Similar submissions", page.paragraph(ALIKE), page.table(SIMILAR_HEAD, alike)) if alike else "",
    )
