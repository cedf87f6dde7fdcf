"""`report.html` and `summary.txt`: the run, for a reader who did not watch it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from judging import commands
from judging.measures import counters, flows, goodput, paths, planes, recovery, stalls, steps
from judging.reports import completion, page, plots
from judging.run import Run
from judging.story import Story
from judging.units import brief
from judging.verdict import WORDS, Finding, Verdict

BASELINE = "This is the RoCE baseline: one plane at the sum of the rates, ECMP, {}."
PATHS = (
    "A strip for every path, named after its spine: green while every sender uses it, the redder the more of them have "
    "given it up, grey while it is denied. Lines are faults."
)
MARKS = {True: "✓", False: "✗", None: "?"}
COUNTER_TITLES = {
    "data_packets": "data packets sent",
    "retransmits": "retransmitted",
    "rto": "retransmission timeouts",
    "trims": "trimmed on the way",
    "nacks": "NACKs received",
    "ecn": "ECN marks echoed",
    "skips": "paths skipped for a while",
    "probes": "probes sent",
}
DROP_TITLES = {
    "drop_program": "by the P4 program",
    "drop_trimmed_share": "trimmed packets beyond their share of a port",
}
RECOVERY_HEAD = ["at", "fault", "lowest goodput", "packet missed", "paths abandoned", "losses repaired", "rate back"]
RECOVERY = (
    "Times in ms, with base round trips in brackets. 'Packet missed' counts from the sending of a lost packet until "
    "its loss was noticed. The others count from the beginning of the fault: until the last bad path was abandoned, "
    "until the last lost packet had arrived, and until the rate was back at 90 % of the usual."
)
REPLAY = "replay.html"  # written by `page/export.py`
STALLS_SHOWN = 20
STALLS = "Times when a process did not do what was due: grey in every chart. The longest, in order of time."
COMMAND_HEAD = ["host", "command", "ended with", "ran for"]
OUTPUT_LINES_SHOWN = 40  # of each host, in the text
UNJUDGED = ("warmup", "heal")
FLOWS_NOTE = "Bytes that receivers have verified, message by message, counted every 100 ms."
FLOW_HEAD = ["workload", "phase", "flows", "mean", "slowest", "fastest", "longest silence", "all began after"]


PAUSE_TITLES = {
    "pause_sent": "pauses sent by switches",
    "paused_ns": "ports of switches paused, together",
    "pause_watchdog": "pauses longer than the watchdog allows",
    "pause_ignored": "MAC control frames ignored by switches",
}


def baseline(options: Mapping[str, Any]) -> str:
    """What the baseline of a run was, in a sentence."""
    rate = "DCQCN" if options.get("settings", {}).get("dcqcn", True) else "no rate control"
    return BASELINE.format(f"{rate}, and {'PFC' if options.get('priority_flow_control') else 'no PFC'}")


def rate(bits_per_second: float) -> str:
    """Bits per second in three digits and the unit that suits them."""
    for size, unit in ((1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")):
        if bits_per_second >= size:
            return f"{bits_per_second / size:.3g} {unit}"
    return f"{bits_per_second:.0f} b/s"


# --- rows that the page and the text share ------------------------------------------------------------------------


def goodput_rows(run: Run) -> list[list[str]]:
    """Phase, length, goodput, share of the reference phase's."""
    reference = run.phases.get("reference")
    normal = goodput.of_phase(run, reference) if reference else 0.0
    rows = []
    for name, span in run.phases.items():
        value = goodput.of_phase(run, span)
        share = f"{value / normal:.1%}" if normal else ""
        rows.append([name, run.lasting(span.length_ns), rate(value), share])
    return rows


def step_rows(run: Run) -> list[list[str]]:
    """Phase, steps, median, p99, slowest."""
    all_steps = steps.steps(run)
    rows = []
    for name, span in run.phases.items():
        times = steps.times(steps.of_phase(all_steps, span))
        if times:
            values = [times.median_ns, times.p99_ns, times.slowest_ns]
            rows.append([name, str(times.count), *(brief(value) for value in values)])
    return rows


def recovery_rows(run: Run) -> list[list[str]]:
    base_rtt_ns = int(run.options.get("base_rtt_ns") or 0)
    rows = []
    for item in recovery.recoveries(run):
        limit = "the next fault" if item.next_fault else "the end"
        back = f"not before {limit}" if item.after_ns is None else in_round_trips(item.after_ns, base_rtt_ns)
        if item.spoilt:
            back = "a stall came first"
        elif item.after_ns == 0:
            back = "never below 90 %"
        rows.append(
            [
                run.clock(item.start_ns),
                item.title,
                f"{item.dip:.0%}",
                in_round_trips(item.missed_ns, base_rtt_ns),
                in_round_trips(item.abandoned_ns, base_rtt_ns),
                in_round_trips(item.repaired_ns, base_rtt_ns),
                back,
            ]
        )
    return rows


def in_round_trips(length_ns: int | None, base_rtt_ns: int) -> str:
    """A length in ms and base round trips; "" for none."""
    if length_ns is None:
        return ""
    return brief(length_ns) + (f" ({length_ns / base_rtt_ns:.1f})" if base_rtt_ns else "")


def fault_rows(run: Run) -> list[list[str]]:
    """When, what, where, for how long."""
    rows = []
    for fault in run.faults:
        length = "stays" if fault.stop_ns is None else run.lasting(fault.stop_ns - fault.start_ns, 2)
        target = f"{fault.target} (by hand)" if fault.by_hand else fault.target
        rows.append([run.clock(fault.start_ns), fault.verb, target, length])
    return rows


def stall_rows(run: Run) -> list[list[str]]:
    """The longest stalls in order of time: when, how long, in round trips, and the late nodes."""
    found = sorted(stalls.stalls(run), key=lambda stall: -stall.length_ns)[:STALLS_SHOWN]
    base_rtt_ns = int(run.options.get("base_rtt_ns") or 1)
    return [
        [
            run.clock(stall.start_ns),
            brief(stall.length_ns),
            f"{stall.length_ns / base_rtt_ns:.1f}",
            ", ".join(stall.who),
        ]
        for stall in sorted(found, key=lambda stall: stall.start_ns)
    ]


def plane_rows(run: Run) -> list[list[str]]:
    """Phase, and the bytes sent on each plane as a share of the mean."""
    rows = []
    for name, span in run.phases.items():
        sent = planes.bytes_sent(run, span)
        mean = sum(sent.values()) / len(sent) if sent else 0
        if mean:
            rows.append([name, *(f"{value / mean:.1%}" for value in sent.values())])
    return rows


def counter_rows(run: Run) -> list[list[str]]:
    """Counters of queue pairs over the whole run, paths given up, and packets that switches dropped."""
    totals = counters.qp_totals(run)
    rows = [[title, f"{totals[field]:,}"] for field, title in COUNTER_TITLES.items()]
    if stalled := paths.given_up_for_stalls(run):
        rows.append(["paths given up for a stall and forgiven", f"{stalled:,}"])
    left, for_ns = paths.given_up(run)
    rows.append(["paths given up", f"{left:,}" + (f" (for {run.lasting(for_ns)} together)" if left else "")])
    for reason, count in sorted(counters.switch_drops(run).items()):
        if count:
            rows.append([f"switch drops: {drop_title(reason)}", f"{count:,}"])
    pauses = counters.switch_pauses(run)
    for field, title in PAUSE_TITLES.items():
        if pauses[field]:
            told = run.lasting(pauses[field]) if field == "paused_ns" else f"{pauses[field]:,}"
            rows.append([title, told])
    return rows


def drop_title(reason: str) -> str:
    """A reason of `counters.switch_drops` in words."""
    return DROP_TITLES.get(reason, reason.removeprefix("drop_").replace("_", " "))


def command_rows(run: Run) -> list[list[str]]:
    """The program in each host: host, words, how it ended, for how long it ran."""
    rows = []
    for one in commands.processes(run):
        lasted = "" if one.stop_ns is None else run.lasting(one.stop_ns - one.start_ns)
        rows.append([one.host, one.words, commands.ending(one), lasted])
    return rows


def command_output(run: Run, lines_max: int | None = None) -> list[tuple[str, list[str]]]:
    """The end of what the program printed in each host: the host, and at most so many lines."""
    printed = [(one.host, one.output.splitlines()) for one in commands.processes(run)]
    return [(host, lines if lines_max is None else lines[-lines_max:]) for host, lines in printed if lines]


def flow_rows(run: Run) -> list[list[str]]:
    """The rates and waits of each stream's flows in each phase that is judged."""
    rows = []
    for workload in flows.workloads(run):
        for name, span in run.phases.items():
            found = None if name in UNJUDGED else flows.within(run, span, workload)
            if found is not None and found.rates:
                first = "" if found.first_ns is None else brief(found.first_ns)
                lowest, highest = rate(min(found.rates.values())), rate(max(found.rates.values()))
                row = [workload, name, str(len(found.rates)), rate(found.mean_bps), lowest, highest]
                rows.append([*row, brief(found.silence_ns), first])
    return rows


def scale(run: Run) -> str:
    """How much slower this lab is than the hardware for which it stands."""
    lab, real = run.options.get("port_rate_bps"), run.options.get("hardware_rate_bps")
    if not lab or not real:
        return ""
    factor = int(real) / int(lab)
    return (
        f"A plane port ran at {rate(int(lab))} in place of {rate(int(real))}: everything is {factor:,.0f} times "
        f"slower than the hardware, so 1 s here is {1e6 / factor:,.0f} µs there."
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
    step_ns = recovery.bin_ns(run)
    head = (
        f'<h1>{page.text(story.title)}</h1><p><span class="verdict {verdict.word}">{verdict.word}</span> '
        f'<span class="soft">{page.text(subtitle(run))}</span></p>'
    )
    settings = [[key, worded(value)] for key, value in sorted(options.items())]
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
            rows_or_none(COMMAND_HEAD, command_rows(run)),
            *(
                page.paragraph(f"Printed in {host}:") + f"<pre>{page.text(chr(10).join(lines))}</pre>"
                for host, lines in command_output(run)
            ),
        ),
        page.section(
            "Goodput",
            page.paragraph("Bytes acknowledged to all hosts together. Faults are shaded.", soft=True),
            plots.goodput_over_time([(str(options.get("transport", "run")), run)], step_ns),
            page.table(["phase", "length", "goodput", "of the reference"], goodput_rows(run)),
        ),
        page.section("Recovery", *noted(RECOVERY, RECOVERY_HEAD, recovery_rows(run))),
        page.section(
            "Training steps",
            plots.step_times([(str(options.get("transport", "run")), run)]),
            plots.loss_curves(run),
            rows_or_none(["phase", "steps", "median", "p99", "slowest"], step_rows(run)),
        ),
        page.section("Completion times", *completion.section(run)),
        page.section("Flows", *noted(FLOWS_NOTE, FLOW_HEAD, flow_rows(run))),
        page.section(
            "Path health", *((page.paragraph(PATHS, soft=True), strips) if (strips := plots.path_health(run)) else ())
        ),
        page.section(
            "Planes", plots.plane_load(run, step_ns), rows_or_none(["phase", *plane_titles(run)], plane_rows(run))
        ),
        page.section("Stalls", *noted(STALLS, ["at", "for", "round trips", "who was late"], stall_rows(run))),
        page.section("Counters", page.table(["over the whole run", "packets"], counter_rows(run))),
        page.section(
            "What the paper measured",
            rows_or_none(["figure", "test", "result"], [[row.figure, row.test, row.result] for row in story.paper]),
        ),
        page.section("What was done", rows_or_none(["at", "verb", "target", "for"], fault_rows(run))),
        page.section("Options", page.table(["option", "value"], settings), f"<pre>{page.text(again(run))}</pre>"),
    )


def replay(run: Run) -> str:
    """A link to the run's replay, where there is one beside the report."""
    if run.directory is None or not (run.directory / REPLAY).exists():
        return ""
    return page.paragraph(page.Raw(f'<a href="{REPLAY}">Replay this run</a> in the browser: every event on a fabric.'))


def rows_or_none(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str | None:
    """A table, or nothing where there are no rows."""
    return page.table(head, rows) if rows else None


def noted(note: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A table below its note, or neither where there are no rows."""
    return [page.paragraph(note, soft=True), page.table(head, rows)] if rows else []


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
    """The command that repeats a run."""
    options = run.options
    words = ["./lab run", str(options.get("source") or options.get("scenario"))]
    words += [f"--transport {options.get('transport')}", f"--seed {options.get('seed')}"]
    if options.get("plan_source") not in (None, options.get("plan")):
        words.append(f"--plan {options['plan_source']}")
    words += [f"--set {key}={value}" for key, value in changes(run).items()]
    words += [f"--setting {key}={json.dumps(value)}" for key, value in (options.get("settings") or {}).items()]
    if options.get("short"):
        words.append("--short")
    if options.get("program"):
        words.append(f"--program {shlex.quote(str(options['program']))}")
        words.append(f"--ranks {','.join(map(str, options.get('program_hosts') or []))}")
    words += [f"--fault '{fault}'" for fault in options.get("added_faults") or []]
    if options.get("time_factor") not in (None, 1.0):
        words.append(f"--time {options['time_factor']:g}")
    if options.get("reconvergence_s") is not None:
        words.append(f"--reconvergence {options['reconvergence_s']:g}")
    calibrated = options.get("calibration") or {}
    if calibrated.get("source", "the plan") != "the plan":
        words.append(f"--rate {calibrated['port_rate_bps'] / 1e6:g}")
    if options.get("world") == "simulated":
        words.append("--world simulated")
    return " ".join(words)


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
    for host, printed in command_output(run, OUTPUT_LINES_SHOWN):
        lines += ["", f"printed in {host}", *(f"  {line}" for line in printed)]
    for title, rows in (
        ("program (" + ", ".join(COMMAND_HEAD[1:]) + ")", command_rows(run)),
        ("goodput", goodput_rows(run)),
        ("recovery (" + ", ".join(RECOVERY_HEAD[2:]) + "; round trips in brackets)", recovery_rows(run)),
        ("training steps (count, median, p99, slowest)", step_rows(run)),
        ("completion times (" + ", ".join(completion.HEAD[1:]) + ")", completion.rows(run)),
        ("flows (" + ", ".join(FLOW_HEAD[2:]) + ")", flow_rows(run)),
        ("counters", counter_rows(run)),
    ):
        if rows:
            lines += ["", title, *columns(rows)]
    return "\n".join(lines) + "\n"
