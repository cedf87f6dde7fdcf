"""Makes the verdict, `summary.txt` and `report.html` of a run directory, new or old."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from common import files
from judging import evidence
from judging.checks import Check
from judging.journal import write_merged
from judging.reports import report
from judging.reports.figures import figures
from judging.run import Run
from judging.story import Story
from judging.verdict import Finding, Verdict, conclude


def verdict_of(run: Run, checks: Sequence[Check]) -> Verdict:
    """Whether the evidence is sound, then the finding of each check; a check that raises an exception is unknown."""
    findings = evidence.sound(run)
    for check in checks:
        try:
            findings.append(check(run))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            name = getattr(check, "__qualname__", "check").split(".")[0]
            findings.append(Finding(name, None, f"could not be judged: {type(error).__name__}: {error}"))
    return conclude(findings)


def judge(directory: Path, checks: Sequence[Check], story: Story, again: str = "") -> Verdict:
    """Judge a run and write verdict, summary and report into its directory.

    `again` is appended to their names: a verdict from other checks stands beside the first one.
    """
    run = Run.open(directory)
    write_merged(run.lines, directory / "journal.jsonl")
    verdict = verdict_of(run, checks)
    files.write(directory / f"summary{again}.txt", report.summary(run, story, verdict))
    files.write(directory / f"report{again}.html", report.html(run, story, verdict))
    findings = [
        {"check": f.check, "holds": f.holds, "reason": f.reason, "figures": f.figures} for f in verdict.findings
    ]
    document = {"verdict": verdict.word, "findings": findings, "figures": figures(run)}
    files.write(directory / f"verdict{again}.json", json.dumps(document, indent=2) + "\n")
    return verdict
