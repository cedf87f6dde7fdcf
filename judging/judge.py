"""Makes the verdict, `summary.txt` and `report.html` of a run directory, new or old."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

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


def judge(directory: Path, checks: Sequence[Check], story: Story) -> Verdict:
    """Judge a run and write verdict, summary and report into its directory."""
    run = Run.open(directory)
    write_merged(run.lines, directory / "journal.jsonl")
    verdict = verdict_of(run, checks)
    (directory / "summary.txt").write_text(report.summary(run, story, verdict))
    (directory / "report.html").write_text(report.html(run, story, verdict))
    findings = [
        {"check": f.check, "holds": f.holds, "reason": f.reason, "figures": f.figures} for f in verdict.findings
    ]
    document = {"verdict": verdict.word, "findings": findings, "figures": figures(run)}
    (directory / "verdict.json").write_text(json.dumps(document, indent=2) + "\n")
    return verdict
