"""A result in the formats of other services: Gradescope, Classroom 50, JUnit.

Gradescope: results.json of gradescope-autograders.readthedocs.io. Classroom 50: result.json of the schema
classroom50/result/v1, whose runner gives names and addresses in the environment. JUnit: the common subset of its XML.
"""

import datetime
import json
import os
from collections.abc import Callable, Mapping
from typing import Any
from xml.etree import ElementTree

from course.exercise import Exercise
from course.result import CheckResult, TestResult

FROM_RUNNER = {
    "classroom": "CLASSROOM",
    "assignment": "ASSIGNMENT",
    "submission": "SUBMISSION_TAG",
    "commit": "COMMIT_URL",
    "release": "RELEASE_URL",
}


def report_text(test: TestResult) -> str:
    """Expected, happened, gates, and how to look closer."""
    lines = [f"expected: {test.outcome.expected}", f"happened: {test.outcome.happened}"]
    lines += [gate.description for gate in test.outcome.gates]
    lines += [f"look: {line}" for line in test.outcome.look]
    return "\n".join(lines)


def gradescope(lab: Exercise, result: CheckResult) -> str:
    tests = [
        {
            "number": f"{lab.number}.{number}",
            "name": test.title,
            "score": test.score,
            "max_score": test.points,
            "status": "passed" if test.passed else "failed",
            "output": report_text(test),
            "visibility": "visible",
        }
        for number, test in enumerate(result.tests, 1)
    ]
    document: dict[str, Any] = {
        "score": result.score,
        "execution_time": result.seconds,
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "output": result.trouble or f"Lab {lab.number}: {lab.title}",
        "tests": tests,
    }
    return json.dumps(document, indent=1) + "\n"


def classroom50(lab: Exercise, result: CheckResult, runner: Mapping[str, str] = os.environ) -> str:
    document = {"schema": "classroom50/result/v1"}
    document |= {name: runner.get(variable) or "unknown" for name, variable in FROM_RUNNER.items()}
    now = datetime.datetime.now(datetime.UTC)
    rest = {
        "review": runner.get("REVIEW_URL") or document["commit"],
        "datetime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "score": result.score,
        "max-score": lab.points,
        "tests": [
            {"test-name": test.title, "passed": test.passed, "score": test.score, "max-score": test.points}
            for test in result.tests
        ],
    }
    return json.dumps({**document, **rest}, indent=1) + "\n"


def junit(lab: Exercise, result: CheckResult) -> str:
    failed = sum(not test.passed for test in result.tests)
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": f"lab {lab.number} {lab.name}",
            "tests": str(len(result.tests) or 1),
            "failures": str(failed),
            "errors": str(int(bool(result.trouble))),
            "time": str(result.seconds),
        },
    )
    for test in result.tests:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": lab.name, "name": test.name, "time": str(test.seconds)}
        )
        if not test.passed:
            failure = ElementTree.SubElement(case, "failure", {"message": clean(test.outcome.happened[:500])})
            failure.text = clean(report_text(test))
    if result.trouble:
        case = ElementTree.SubElement(suite, "testcase", {"classname": lab.name, "name": "check", "time": "0"})
        ElementTree.SubElement(case, "error", {"message": clean(result.trouble)})
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def clean(text: str) -> str:
    """Without the characters that XML 1.0 has no form for: a student's message may hold any."""
    return "".join(
        c if c in "\t\n\r" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff") else "?"
        for c in text
    )


FORMATS: Mapping[str, Callable[[Exercise, CheckResult], str]] = {
    "gradescope": gradescope,
    "classroom50": classroom50,
    "junit": junit,
}
