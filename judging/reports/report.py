"""`report.html` and `summary.txt`: the run, for a reader who did not watch it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from common.quoting import command
from common.terminal.printable import printable
from common.terminal.source_names import KEY as NAMES
from judging.measures import planes
from judging.reports import completion, page, plots, tables
from judging.run import Run
from judging.story import Story
from judging.verdict import WORDS, Finding, Verdict

__all__ = ["REPLAY", "columns", "rerouted"]

BASELINE = "This is the RoCE baseline: one plane at the sum of the rates, ECMP, {}, and routes that {}."
PATHS = (
    "A strip for every path, named after its spine: green while every sender uses it, the redder the more of them have "
    "given it up, grey while it is denied. Lines are faults."
)
MARKS = {True: "✓", False: "✗", None: "?"}
RECOVERY_HEAD = ["at", "fault", "cost", "packet missed", "paths abandoned", "losses repaired"]
RECOVERY = (
    "Times in ms, with base round trips in brackets. 'Cost' is the time lost against parts of the same phase without "
    "faults. 'Packet missed' counts from the sending of a lost packet until its loss was noticed. The others count "
    "from the beginning of the fault: until the last bad path was abandoned, or the last lost packet had arrived."
)
GOODPUT = (
    "Bytes acknowledged to all hosts together, in windows of ten base round trips. Where jobs train, the bold line is "
    "the mean of a training step. A mean is drawn where its window ends. Faults are shaded, stalls are grey."
)
REPLAY = "replay.html"  # written by `page/export.py`
COMMAND_HEAD = ["host", "command", "ended with", "ran for"]
CAUSE_HEAD = ["at", "first cause", "faults at that time"]
OUTPUT_LINES_SHOWN = 40  # of each host, in the text
FLOWS_NOTE = "Bytes that receivers have verified, message by message, counted every 100 ms."
FLOW_HEAD = ["workload", "phase", "flows", "mean", "slowest", "fastest", "longest pause", "last flow began after"]


def baseline(options: Mapping[str, Any]) -> str:
    """A sentence about the baseline of a run: its rate control, flow control and routing."""
    rate = "DCQCN" if options.get("settings", {}).get("dcqcn", True) else "no rate control"
    pauses = "PFC" if options.get("priority_flow_control") else "no PFC"
    return BASELINE.format(f"{rate}, {pauses}", rerouted(options.get("reconvergence_s")))


def rerouted(after_s: float | None) -> str:
    """How long the routes of a baseline go on using a link that has failed."""
    return f"avoid a dead link after {after_s:g} s" if isinstance(after_s, int | float) else "never change"


def scale(run: Run) -> str:
    """How much slower this lab is than the hardware for which it stands."""
    lab, real = run.options.get("port_rate_bps"), run.options.get("hardware_rate_bps")
    if not lab or not real:
        return ""
    factor = int(real) / int(lab)
    return (
        f"A plane port ran at {tables.rate(int(lab))} in place of {tables.rate(int(real))}: everything is "
        f"{factor:,.0f} times slower than the hardware, so 1 s here is {1e6 / factor:,.0f} µs there."
    )


# --- the page --------------------------------------------------------------------------------------------------------


def finding_rows(findings: Sequence[Finding]) -> list[list[object]]:
    """Mark, check, reason."""
    return [
        [page.Raw(f'<span class="mark {WORDS[f.holds]}">{MARKS[f.holds]}</span>'), f.check, f.reason] for f in findings
    ]


def html(run: Run, story: Story, verdict: Verdict) -> str:
    """The page."""
    options = run.options
    head = (
        f'<h1>{page.text(story.title)}</h1><p><span class="verdict {verdict.word}">{verdict.word}</span> '
        f'<span class="soft">{page.text(subtitle(run))}</span></p>'
    )
    settings = [[key, worded(value)] for key, value in sorted(options.items()) if key != NAMES]
    return page.page(
        f"{story.title}: {verdict.word}",
        head,
        page.paragraph(story.description),
        page.paragraph(scale(run), soft=True) if scale(run) else "",
        page.paragraph(baseline(options), soft=True) if options.get("single_plane") else "",
        replay(run),
        page.section("Verdict", page.table(["", "check", "what was found"], finding_rows(verdict.findings))),
        page.section(
            "Program",
            *noted("", COMMAND_HEAD, tables.command_rows(run)),
            *noted("", CAUSE_HEAD, tables.cause_rows(run)),
            *(
                page.paragraph(f"Printed in {host}:") + f"<pre>{page.text(chr(10).join(lines))}</pre>"
                for host, lines in tables.command_output(run)
            ),
        ),
        page.section(
            "Goodput",
            page.paragraph(GOODPUT, soft=True),
            plots.goodput_over_time([(str(options.get("transport", "run")), run)]),
            page.table(["phase", "length", "goodput", "of the reference"], tables.goodput_rows(run)),
        ),
        page.section("Recovery", *noted(RECOVERY, RECOVERY_HEAD, tables.recovery_rows(run))),
        page.section(
            "Training steps",
            plots.step_times([(str(options.get("transport", "run")), run)]),
            plots.loss_curves(run),
            *noted("", ["phase", "steps", "median", "p99", "slowest"], tables.step_rows(run)),
        ),
        page.section("Completion times", *completion.section(run)),
        page.section("Flows", *noted(FLOWS_NOTE, FLOW_HEAD, tables.flow_rows(run))),
        page.section(
            "Path health", *((page.paragraph(PATHS, soft=True), strips) if (strips := plots.path_health(run)) else ())
        ),
        page.section(
            "Planes", plots.plane_load(run), *noted("", ["phase", *plane_titles(run)], tables.plane_rows(run))
        ),
        page.section("Counters", page.table(["over the whole run", "packets"], tables.counter_rows(run))),
        page.section(
            "What the paper measured",
            *noted("", ["figure", "test", "result"], [[row.figure, row.test, row.result] for row in story.paper]),
        ),
        page.section("What was done", *noted("", ["at", "verb", "target", "for"], tables.fault_rows(run))),
        page.section("Options", page.table(["option", "value"], settings), f"<pre>{page.text(again(run))}</pre>"),
    )


def replay(run: Run) -> str:
    """A link to the run's replay, where there is one beside the report."""
    if run.directory is None or not (run.directory / REPLAY).exists():
        return ""
    return page.paragraph(page.Raw(f'<a href="{REPLAY}">Replay this run</a> in the browser: every event on a fabric.'))


def noted(note: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A table below its note, if there is one, or neither where there are no rows."""
    return [page.paragraph(note, soft=True) if note else "", page.table(head, rows)] if rows else []


def plane_titles(run: Run) -> list[str]:
    """A title for each plane that carried anything."""
    reference = next(iter(run.phases.values()), None)
    return [f"plane {plane}" for plane in planes.bytes_sent(run, reference)] if reference else []


def subtitle(run: Run) -> str:
    """Scenario, plan, transport, seed and changes, which tell this run from others."""
    options = run.options
    parts = [
        options.get("scenario"),
        f"plan {options.get('plan')}",
        options.get("transport"),
        f"seed {options.get('seed')}",
        worded(changes(run)),
        worded(options.get("setting_changes") or {}),
        str(options.get("program") or ""),
        "virtual time" if options.get("world") == "simulated" else "",
        ", ".join(options.get("added_faults") or []),
        by_hand(run),
    ]
    return " · ".join(str(part) for part in parts if part)


def by_hand(run: Run) -> str:
    """A clause with the first faults that people injected by hand, and how many more there were; "" for none."""
    titles = [fault.title for fault in run.faults if fault.by_hand]
    shown = 3
    return ", ".join(titles[:shown]) + (f" and {len(titles) - shown} more" if len(titles) > shown else "")


def changes(run: Run) -> dict[str, object]:
    """The keys of the plan that were set for this run. In virtual time every switch is an embedded one anyway."""
    own = dict(run.options.get("overrides") or {})
    if run.options.get("world") == "simulated":
        own.pop("switch", None)
    return own


def worded(value: object) -> str:
    """An option's value for a reader; one that holds others as NAME=VALUE."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return str(value)


def again(run: Run) -> str:
    """The command that repeats a run, quoted for a shell: a run may be anybody's."""
    options = run.options
    words = ["run", str(options.get("source") or options.get("scenario"))]
    words += ["--transport", str(options.get("transport")), "--seed", str(options.get("seed"))]
    if options.get("plan_source") not in (None, options.get("plan")):
        words += ["--plan", str(options["plan_source"])]
    for key, value in changes(run).items():
        words += ["--set", f"{key}={value}"]
    for key, value in (options.get("settings") or {}).items():
        words += ["--setting", f"{key}={json.dumps(value)}"]
    if options.get("short"):
        words.append("--short")
    if options.get("program"):
        words += ["--program", str(options["program"])]
        words += ["--ranks", ",".join(map(str, options.get("program_hosts") or []))]
    for fault in options.get("added_faults") or []:
        words += ["--fault", str(fault)]
    if options.get("time_factor") not in (None, 1.0):
        words += ["--time", exact(options["time_factor"])]
    if options.get("single_plane"):
        after_s = options.get("reconvergence_s")
        words += ["--reconvergence", exact(after_s) if isinstance(after_s, int | float) else "never"]
    calibrated = options.get("calibration") or {}
    if calibrated.get("source", "the plan") != "the plan":
        words += ["--rate", exact(calibrated["port_rate_bps"] / 1e6)]
    if options.get("world") == "simulated":
        words += ["--world", "simulated"]
    return command(*words)


def exact(number: float) -> str:
    """The number, as short as it can be read back: a rounded rate would be another run."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


# --- the text --------------------------------------------------------------------------------------------------------


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines of text, each column as wide as its widest cell."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def summary(run: Run, story: Story, verdict: Verdict) -> str:
    """The verdict and the numbers, for a terminal."""
    lines = [f"{story.title}: {verdict.word}", subtitle(run), ""]
    lines += columns([[MARKS[f.holds], f.check, f.reason] for f in verdict.findings])
    for host, printed in tables.command_output(run, OUTPUT_LINES_SHOWN):
        lines += ["", f"printed in {host}", *(f"  {line}" for line in printed)]
    for title, rows in (
        ("program (" + ", ".join(COMMAND_HEAD[1:]) + ")", tables.command_rows(run)),
        ("first cause (at, what, faults)", tables.cause_rows(run)),
        ("goodput", tables.goodput_rows(run)),
        ("recovery (" + ", ".join(RECOVERY_HEAD[2:]) + "; round trips in brackets)", tables.recovery_rows(run)),
        ("training steps (count, median, p99, slowest)", tables.step_rows(run)),
        ("completion times (" + ", ".join(completion.HEAD[1:]) + ")", completion.rows(run)),
        ("flows (" + ", ".join(FLOW_HEAD[2:]) + ")", tables.flow_rows(run)),
        ("counters", tables.counter_rows(run)),
    ):
        if rows:
            lines += ["", title, *columns(rows)]
    return for_terminal(lines)


def for_terminal(lines: Sequence[str]) -> str:
    """Lines as text. A run may come from another person: a terminal that shows its words must not obey them."""
    return "\n".join(map(printable, lines)) + "\n"
