"""Makes the verdict, `summary.txt` and `report.html` of a run directory, new or old."""

import inspect
import json
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from common import files, user_code
from common.terminal.source_names import of_options, shown, shown_on_page
from judging import evidence
from judging.checks import Check
from judging.reports import report
from judging.reports.figures import figures
from judging.run import Run
from judging.story import Story
from judging.verdict import Finding, Verdict, conclude

__all__ = ["judge", "verdict_of"]


def verdict_of(run: Run, checks: Sequence[Check]) -> Verdict:
    """Whether the evidence is sound, then the finding of each check; a check that raises an exception is unknown."""
    findings = evidence.sound(run)
    for check in checks:
        try:
            findings.append(check(run))
        except user_code.RAISED as error:
            name = getattr(check, "__qualname__", "check").split(".")[0]
            findings.append(Finding(name, None, f"could not be judged: {raised(check, error)}"))
    return conclude(findings)


def raised(check: Check, error: BaseException) -> str:
    """An exception of a check, with the line of the check's own file that led to it, else the line that raised it."""
    own = getattr(inspect.unwrap(check), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    frame = ([entry for entry in frames if own is not None and entry.filename == own.co_filename] or frames)[-1]
    return f"{type(error).__name__}: {error} at {Path(frame.filename).name}:{frame.lineno}"


def judge(
    directory: Path,
    checks: Sequence[Check],
    story: Story,
    again: str = "",
    replay: Callable[[Path, Sequence[bytes]], None] = lambda *_: None,
) -> Verdict:
    """Judge a run and write verdict, summary and report into its directory: nothing before the run can be read.

    `again` is appended to their names: a verdict from other checks stands beside the first one. `replay` writes the
    replay, which the report links to, from the folder and the lines of `Run.texts`.
    """
    run = Run.open(directory)
    verdict = verdict_of(run, checks)
    run.write(directory / "journal.jsonl")
    replay(directory, run.texts)
    names = of_options(run.options)
    files.write(directory / f"summary{again}.txt", shown(report.summary(run, story, verdict), names))
    files.write(directory / f"report{again}.html", shown_on_page(report.html(run, story, verdict), names))
    findings = [
        {"check": f.check, "holds": f.holds, "reason": shown(f.reason, names), "figures": f.figures}
        for f in verdict.findings
    ]
    document = {"verdict": verdict.word, "findings": findings, "figures": figures(run)}
    files.write(directory / f"verdict{again}.json", json.dumps(document, indent=2) + "\n")
    return verdict
