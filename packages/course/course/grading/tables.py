"""Grades as tables: CSV of all tests, similar pairs, and one page with all scores."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from common.csv_text import csv_text
from course.grading.submissions import Submission
from course.result import CheckResult

Graded = Sequence[tuple[Submission, CheckResult]]
STATUS = {0: "passed", 1: "not yet", 2: "not run"}
HEAD = (
    "student", "lab", "name", "status", "score", "points", "passed", "tests", "seconds", "first failure", "defects",
)  # fmt: skip


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
    return csv_text(("lab", "share", "one", "other"), rows)


PAGE_HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Grades</title><style>
:root { color-scheme: light dark } body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto }
body { padding: 0 1rem } table { border-collapse: collapse } th, td { padding: .25rem .7rem; text-align: right }
th:first-child, td:first-child { text-align: left } tr { border-bottom: 1px solid #8883 }
.full { background: #2a7d3b33 } .some { background: #d8a02033 } .none { background: #c0392b33 } .dim { color: #777 }
</style><h1>Grades</h1>
"""


def overview(graded: Graded, similar: Sequence[tuple[str, float, str, str]], refused: Sequence[str] = ()) -> str:
    """All scores on one page, with links to their pages, and why folders were refused."""
    labs = sorted({submission.lab.number: submission.lab for submission, _ in graded}.items())
    cells = {(submission.student, submission.lab.number): (submission, result) for submission, result in graded}
    rows = []
    for student in sorted({submission.student for submission, _ in graded}):
        row, total = [f"<td>{escape(student)}</td>"], 0
        for number, lab in labs:
            if (student, number) not in cells:
                row.append('<td class="dim">–</td>')
                continue
            _, result = cells[student, number]
            total += result.score
            kind = "full" if result.status == 0 else ("some" if result.score else "none")
            link = f"pages/{quote(student, safe='')}/{lab.name}.html"
            row.append(f'<td class="{kind}"><a href="{link}">{result.score}/{lab.points}</a></td>')
        rows.append("<tr>" + "".join(row) + f"<td><b>{total}</b></td></tr>")
    head = "".join(f"<th>{number} {lab.name}</th>" for number, lab in labs)
    alike = "".join(
        f"<tr><td>{lab}</td><td>{share:.0%}</td><td>{escape(first)}</td><td>{escape(other)}</td></tr>"
        for lab, share, first, other in similar
    )
    more = f"<h2>Not graded</h2><ul>{''.join(f'<li>{escape(why)}' for why in refused)}</ul>" if refused else ""
    if alike:
        more += (
            "<h2>Similar submissions</h2><p class=dim>Shares of common code beyond the starter. Short labs have few"
            f" ways to be right: look before you judge.</p><table><tr><th>lab<th>share<th>one<th>other</tr>{alike}"
            "</table>"
        )
    return f"{PAGE_HEAD}<table><tr><th>student</th>{head}<th>total</th></tr>{''.join(rows)}</table>{more}</html>\n"
