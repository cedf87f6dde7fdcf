"""The report of a rehearsal: text, JSON, and a page with a replay of the worst run."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from common import files
from common.terminal.counted import counted
from common.terminal.printable import path_line
from common.terminal.source_names import shown
from judging.reports import page
from judging.reports.report import REPLAY
from operations.rehearsal.orders import best, sequence
from operations.rehearsal.rehearse import RehearsalResult, compared, spec
from page import export
from running.fault_words import spell
from running.runner import make_run

PAGE = "rehearsal.html"
MARKS = {"safe": "true", "unknown": "unknown", "not safe": "false"}


def finished(statements: Sequence[RehearsalResult], root: Path, others: Sequence[RehearsalResult] = ()) -> Path:
    """Make the worst run of each change again, to be kept with its replay, and write the page beside the first's.

    A seed repeats a run to the byte, so the run that is kept is the run that was measured. Runs on real links were kept
    when they were made. `others` are other orders of the first change.
    """
    folders = []
    for statement in statements:
        kept = statement.worst.folder
        folders.append(kept or make_run(spec(statement.planned, statement.worst.seed, statement.worst.flaps), root))
        export.beside_report(folders[-1])
    path = folders[0] / PAGE
    files.write(path, html(statements, folders, others))
    return path


def verdict(statement: RehearsalResult) -> str:
    """The verdict in a sentence."""
    if statement.outage_s:
        lasts = f"{statement.outage_s:g} s"
        return f"not safe: by the change alone some hosts have no path for {lasts}, and no run can change that"
    limit = f"{statement.planned.safe:.0%}"
    return {
        "safe": f"safe: with 95 % confidence at most {limit} of such changes are noticed",
        "not safe": f"not safe: with 95 % confidence more than {limit} of such changes are noticed",
        "unknown": f"not known: the interval includes {limit}; more seeds narrow it",
    }[statement.verdict]


def order(statements: Sequence[RehearsalResult]) -> str:
    """Which of two changes lengthens the longest step more, on the same seeds."""
    gap = compared(statements[0], statements[1])
    if gap is None or gap.low is None or gap.high is None:
        return "too few seeds to compare the two"
    which = statements[0 if gap.mean > 0 else 1].planned.name
    clear = f"{which} is better" if gap.clear else "no clear difference"
    interval = f"{gap.mean:+.2f} reference steps ({gap.low:+.2f} to {gap.high:+.2f})"
    return f"the longest step of the second, less that of the first: {interval}: {clear}"


def other_order(first: RehearsalResult, others: Sequence[RehearsalResult]) -> str:
    """Whether another order of the first change's steps is better, in a sentence."""
    best_order = best(first, others)
    if best_order is None:
        return "no other order of the steps was tried (--orders N tries some)"
    other, by = best_order
    tried = f"{counted(len(others), 'other order')} of the steps tried"
    if by.low is None or by.high is None:
        return f"{tried}: too few seeds to compare"
    which = sequence(other.planned.steps)
    interval = f"longest step {by.mean:+.2f} reference steps ({by.low:+.2f} to {by.high:+.2f})"
    if by.clear and by.mean < 0:
        return f"{tried}; better is {which}: {interval}, {noticed(other)}"
    return f"{tried}: none is clearly better; the best is {which}: {interval}"


def worst(statement: RehearsalResult) -> list[str]:
    """The worst run, and how it was looked for."""
    run, lines = statement.worst, []
    if statement.hunted:
        flaps = counted(statement.hunted[0].flaps, "flapping cable")
        lines.append(f"hunted for a worse schedule: {counted(len(statement.hunted), 'run')} with {flaps}")
    spelled = shown(", ".join(map(spell, run.background)), statement.planned.plan.names)
    beside = spelled or "no other fault"
    took = f"{run.slowdown * run.usual_ms:.0f} ms instead of {run.usual_ms:.0f} ms, {run.slowdown:.2f} times as long"
    lost = f"the job lost {run.lost_steps:.2f} steps"
    lost += "" if (count := tokens(statement)) is None else f", {count:,} tokens"
    return [*lines, f"worst run: seed {run.seed}; the longest step took {took}; {lost}; besides the change: {beside}"]


def noticed(statement: RehearsalResult) -> str:
    """In how many runs the job noticed, and what that says of other runs."""
    share = statement.noticed
    return f"noticed in {share.count} of {share.of} runs ({share.interval()})"


def text(statements: Sequence[RehearsalResult], path: Path, others: Sequence[RehearsalResult] = ()) -> list[str]:
    """For a terminal."""
    lines = []
    for statement in statements:
        lines += [statement.planned.name, f"  {verdict(statement)}", f"  {noticed(statement)}"]
        for step, count in zip(statement.planned.steps, statement.by_step(), strict=True):
            lines += [f"    {step.describe()}: noticed in {count}"] if count else []
        lines += [f"  {said}" for said in worst(statement)]
    if len(statements) == 2:
        lines.append(order(statements))
    lines.append(other_order(statements[0], others))
    return [*lines, statements[0].answers_for, path_line("page:", path).rstrip("\n")]


def tokens(statement: RehearsalResult) -> int | None:
    """The tokens that the job lost in the worst run; None where the change does not say how many a step has."""
    planned = statement.planned
    return round(statement.worst.lost_steps * planned.tokens_per_step) if planned.tokens_per_step else None


def document(
    statements: Sequence[RehearsalResult], path: Path, others: Sequence[RehearsalResult] = ()
) -> dict[str, Any]:
    """For programs."""
    changes = [
        {
            "name": statement.planned.name,
            "verdict": statement.verdict,
            "noticed": {**asdict(statement.noticed), "share": statement.noticed.value},
            "outage_s": statement.outage_s,
            "steps": [
                {"step": step.describe(), "noticed": count}
                for step, count in zip(statement.planned.steps, statement.by_step(), strict=True)
            ],
            "worst": {
                "seed": statement.worst.seed,
                "slowdown": round(statement.worst.slowdown, 4),
                "step_ms": round(statement.worst.slowdown * statement.worst.usual_ms, 3),
                "usual_step_ms": round(statement.worst.usual_ms, 3),
                "lost_steps": round(statement.worst.lost_steps, 4),
                "lost_tokens": tokens(statement),
                "goodput_kept": round(statement.worst.goodput_kept, 4),
                "beside": [spell(fault) for fault in statement.worst.background],
                "hunted": statement.worst in statement.hunted,
            },
        }
        for statement in statements
    ]
    gap = compared(*statements) if len(statements) == 2 else None
    tried = best(statements[0], others)
    return {
        "changes": changes,
        "order": None if gap is None else asdict(gap),
        "other_orders": {
            "tried": len(others),
            "best": None if tried is None else [step.describe() for step in tried[0].planned.steps],
            "difference": None if tried is None else asdict(tried[1]),
        },
        "model": statements[0].answers_for,
        "page": str(path),
    }


def html(statements: Sequence[RehearsalResult], folders: Sequence[Path], others: Sequence[RehearsalResult] = ()) -> str:
    """The page, for the first of the folders, which hold the worst runs."""
    parts = [
        f"<h1>Rehearsal: {page.text(statements[0].planned.name)}</h1>",
        page.paragraph(statements[0].answers_for, soft=True),
    ]
    for statement, folder in zip(statements, folders, strict=True):
        replay = quote(os.path.relpath(folder / REPLAY, folders[0]))
        link = page.Raw(f'replay of the worst run, seed {statement.worst.seed}: <a href="{page.text(replay)}">open</a>')
        rows = [[s.describe(), count] for s, count in zip(statement.planned.steps, statement.by_step(), strict=True)]
        word = statement.verdict
        parts.append(
            page.section(
                statement.planned.name,
                page.paragraph(page.Raw(f'<span class="verdict {MARKS[word]}">{word}</span>')),
                page.paragraph(verdict(statement)),
                page.paragraph(noticed(statement)),
                page.table(["step", "runs in which it was noticed"], rows),
                *(page.paragraph(said) for said in worst(statement)),
                page.paragraph(link),
            )
        )
    if len(statements) == 2:
        parts.append(page.section("Which is better", page.paragraph(order(statements))))
    parts.append(page.section("Another order", page.paragraph(other_order(statements[0], others))))
    return page.page("Rehearsal", *parts)
