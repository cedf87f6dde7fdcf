"""Two runs side by side: the findings between them, their charts overlaid, their numbers in columns.

Findings are sentences with figures, each true, false or unknown. The claims are two: a baseline fails, stalls or lets a
flow starve where MRC does not, and without trimming congestion looks like broken paths. Nothing is claimed of runs that
are not alike, or whose evidence is not sound.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from common import plain_file
from common.terminal.source_names import of_options, shown, shown_on_page
from judging import evidence
from judging.checks import qp_errors
from judging.measures import counters, flows, goodput, paths, steps
from judging.reports import page, plots, report, tables
from judging.reports.figures import figures
from judging.run import Run, Span
from judging.single_plane import on_single_plane_target
from judging.units import brief
from judging.verdict import WORDS, Finding

__all__ = ["as_json", "html", "picture", "summary"]


WORSE = 1.05  # by so much the baseline's p99 step or slowest flow is worse than MRC's; less is no difference
CALM = ("warmup", "reference", "pause", "heal")
# Options that must be the same in both runs, with the names that a user knows.
SAME = {
    "scenario": "the scenario",
    "plan": "the plan",
    "seed": "the seed",
    "world": "the world",
    "phases": "the lengths of the phases",
    "host_rate_bps": "the rate of a host",
    "version": "the version of mrclab",
}
USUAL = "the default"  # a key that a run left alone
# Options in which the two runs may differ: in one of these.
SUBJECTS = {
    "transport": "the transport",
    "overrides": "keys of the plan",
    "settings": "settings of the transport",
    "reconvergence_s": "routing's reconvergence",
    "added_faults": "faults added by --fault",
}
# The digests of `running.identity`; the two runs may differ in one of these instead.
HASHED = {
    "program": "the P4 program",
    "plan": "the plan's file",
    "transport": "the transport's code",
    "switch": "the switch's code",
    "lab": "the lab's code",
    "imports": "a module that the scenario imports",
    "programs": "a file of the programs in hosts",
}


@dataclass(frozen=True, slots=True)
class Likeness:
    """`subject` is the thing in which the runs differ, "" for none; `unlike` says why they cannot be compared."""

    subject: str
    unlike: tuple[str, ...]


def likeness(first: Run, second: Run) -> Likeness:
    """The likeness of two runs, by their options and by the faults that were really injected."""
    base, other = first.options, second.options
    unlike = [
        f"not the same: {title} ({option_text(base.get(key))} and {option_text(other.get(key))})"
        for key, title in SAME.items()
        if base.get(key) != other.get(key)
    ]
    if bool(base.get("hashes")) != bool(other.get("hashes")):
        unlike.append("only one of them recorded its P4 program, scenario and code")
    elif hashed(base, "scenario") != hashed(other, "scenario"):
        unlike.append("not the same: the scenario's file")
    subjects = {
        title: values_apart(base.get(k), other.get(k)) for k, title in SUBJECTS.items() if differs(k, base, other)
    }
    subjects |= edited(base, other)
    if len(subjects) > 1:
        unlike.append("more than one thing differs: " + " and ".join(subjects))
    if not unlike and SUBJECTS["added_faults"] not in subjects and targets(first) != targets(second):
        unlike.append("other faults were injected")
    subject = "; ".join(f"{title}, {difference}" for title, difference in subjects.items())
    return Likeness(subject, tuple(unlike))


def hashed(options: Mapping[str, Any], name: str) -> str:
    """A digest of a run; "" when the run did not record it."""
    return str((options.get("hashes") or {}).get(name, ""))


def edited(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, str]:
    """The things that were edited between two runs, by their digests; none when a run recorded no digests.

    A plan's digest follows its overrides and rates: it tells of the file only where those are the same. The transport's
    has the files that settings name, so it tells of the code only where those settings are the same.
    """
    if not (first.get("hashes") and other.get("hashes")):
        return {}
    names = [name for name in HASHED if hashed(first, name) != hashed(other, name)]
    if differs("overrides", first, other) or first.get("host_rate_bps") != other.get("host_rate_bps"):
        names = [name for name in names if name != "plan"]
    if files_named(first) != files_named(other):
        names = [name for name in names if name != "transport"]
    return {HASHED[name]: f"{hashed(first, name)[:8]} against {hashed(other, name)[:8]}" for name in names}


def files_named(options: Mapping[str, Any]) -> dict[str, str]:
    """The settings whose algorithm is a class in a file."""
    return {name: value for name, value in (options.get("settings") or {}).items() if ".py:" in str(value)}


def differs(key: str, first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Settings follow from the transport, and only a single plane is rerouted: alone these make no difference."""
    follows = {"settings": "transport", "reconvergence_s": "single_plane"}
    if key in follows and first.get(follows[key]) != other.get(follows[key]):
        return False
    return bool((first.get(key) or None) != (other.get(key) or None))


def values_apart(first: Any, other: Any) -> str:
    """Two values in words; of two mappings, only the keys that differ."""
    if isinstance(first or other, Mapping):
        first, other = first or {}, other or {}
        keys = sorted(key for key in {*first, *other} if first.get(key) != other.get(key))
        return ", ".join(f"{key} {first.get(key, USUAL)} against {other.get(key, USUAL)}" for key in keys)
    if isinstance(first or other, list):
        first, other = (", ".join(items or []) or None for items in (first, other))
    return f"{'none' if first is None else first} against {'none' if other is None else other}"


def option_text(value: Any) -> str:
    """An option's value for a sentence."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item:g} s" for key, item in value.items())
    return "not recorded" if value is None else str(value)


def targets(run: Run) -> set[tuple[str, str]]:
    """The faults of a run as they would be on a single plane, where two planes' links are one."""
    return {(fault.verb, on_single_plane_target(fault.target)) for fault in run.faults}


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of one run, from the first phase with faults to the last."""

    name: str
    qp_errors: int
    p99_ns: int | None  # of training steps, None without any; an unfinished step counts for as long as it lasted
    goodput_bps: float
    kept: float | None  # goodput as a share of the reference phase's; None without faults
    slowest_bps: float | None  # of all flows of streams, None without any
    unsound: str  # why its evidence is worth nothing; "" when it is sound


def faulty_span(run: Run) -> Span | None:
    """From the beginning of the first phase that is not calm to the end of the last."""
    spans = [span for name, span in run.phases.items() if name not in CALM]
    if not spans:
        return None
    return Span("faults", min(span.start_ns for span in spans), max(span.stop_ns for span in spans))


def outcome(name: str, run: Run) -> RunOutcome:
    """The outcome of a run; missing phases leave their figures empty."""
    errors = len(qp_errors(run))
    reference, span = run.phases.get("reference"), faulty_span(run)
    unsound = next((f"{finding.reason}" for finding in evidence.sound(run) if finding.holds is not True), "")
    unsound = unsound or (evidence.behind(run, span) if span else "")
    if span is None:
        slowest_bps = slowest_flow(run, reference) if reference else None  # there is nothing but flows that meet
        return RunOutcome(name, errors, None, 0.0, None, slowest_bps, unsound)
    all_steps = steps.steps(run)
    during = steps.times(steps.of_phase(all_steps, span))
    p99_ns = max(during.p99_ns, steps.stalled_ns(all_steps, span)) if during else None
    bps, before = goodput.of_phase(run, span) or 0.0, goodput.of_phase(run, reference)
    kept = bps / before if before and run.faults else None
    return RunOutcome(name, errors, p99_ns, bps, kept, slowest_flow(run, span), unsound)


def slowest_flow(run: Run, span: Span) -> float | None:
    """The rate in a span of the slowest flow that the run ever had; None without streams."""
    whole = Span("run", 0, max(phase.stop_ns for phase in run.phases.values()))
    both = [(flows.rates(run, whole, name), flows.rates(run, span, name)) for name in flows.workloads(run)]
    return min((rates.get(flow, 0.0) for ever, rates in both for flow in ever), default=None)


def findings_between(runs: Sequence[Run]) -> list[Finding]:
    """The findings between two runs; of more, those of each against the first, with its name in the check."""
    named = list(zip(names(runs), runs, strict=True))
    if len(named) == 2:
        return of_two(named)
    return [
        replace(finding, check=f"{other[0]}: {finding.check}")
        for other in named[1:]
        for finding in of_two([named[0], other])
    ]


def of_two(named: list[tuple[str, Run]]) -> list[Finding]:
    """Whether the two runs are alike, the outcome of each, and the claims about the thing in which they differ."""
    (_, first), (_, second) = named
    alike = likeness(first, second)
    if alike.unlike:
        reason = "; ".join(alike.unlike) + ": nothing follows from a difference"
        return [Finding("like with like", None, reason)]
    but_for = alike.subject or "nothing: it was repeated"
    findings = [Finding("like with like", True, f"the same experiment, but for {but_for}")]
    findings += [Finding("one plane", True, on_one_plane(name, run)) for name, run in named if single_plane(run)]
    outcomes = [outcome(name, run) for name, run in named]
    findings += ratios(outcomes)
    single = [single_plane(run) for _, run in named]
    if single.count(True) == 1:
        findings.append(baseline_worse(outcomes[single.index(False)], outcomes[single.index(True)]))
    off = [trimming_off(run) for _, run in named]
    if off.count(True) == 1 and not any(single):
        findings.append(trimming_matters(named[off.index(False)], named[off.index(True)]))
    return findings


def single_plane(run: Run) -> bool:
    """Whether a run had the single-plane equivalent of its plan."""
    return bool(run.options.get("single_plane"))


def on_one_plane(name: str, run: Run) -> str:
    """The fabric of the baseline, and how long its switches go on using a link that has failed."""
    bps, routes = run.options["host_rate_bps"], report.rerouted(run.options.get("reconvergence_s"))
    return f"{name} has all planes' rate on one, {tables.rate(bps)} per host; its routes {routes}"


def ratios(outcomes: list[RunOutcome]) -> list[Finding]:
    """The second run's figures against the first's: measured, not judged, so they hold."""
    first, second = outcomes
    failed = f"{first.name} {first.qp_errors}, {second.name} {second.qp_errors}"
    findings = [Finding("queue pairs failed", True, failed, {o.name: o.qp_errors for o in outcomes})]
    if first.p99_ns and second.p99_ns:
        ratio = second.p99_ns / first.p99_ns
        reason = f"{second.name} {brief(second.p99_ns)}, {ratio:.2f} times {first.name}'s {brief(first.p99_ns)}"
        findings.append(Finding("p99 step", True, reason, {"ratio": round(ratio, 3)}))
    if first.goodput_bps and second.goodput_bps:
        ratio = second.goodput_bps / first.goodput_bps
        kept = [f"{o.name} kept {o.kept:.1%} of its own reference" for o in outcomes if o.kept is not None]
        reason = "; ".join([f"{second.name} carried {ratio:.2f} times what {first.name} did", *kept])
        findings.append(Finding("goodput", True, reason, {"ratio": round(ratio, 3)}))
    return findings


def baseline_worse(mrc: RunOutcome, baseline: RunOutcome) -> Finding:
    """On the same timeline a QP of the baseline fails, or its p99 step or, without steps, its slowest flow is worse."""
    check = "baseline worse"
    for run in (mrc, baseline):
        if run.unsound:
            return Finding(check, None, f"{run.name}: {run.unsound}")
    if mrc.qp_errors:
        return Finding(check, False, f"{mrc.qp_errors} queue pairs of {mrc.name} failed on this timeline")
    if baseline.qp_errors:
        reason = f"{baseline.qp_errors} queue pairs of {baseline.name} failed, none of {mrc.name}"
        return Finding(check, True, reason, {"errors": baseline.qp_errors})
    if mrc.p99_ns and baseline.p99_ns:
        worse = baseline.p99_ns / mrc.p99_ns
        reason = f"{baseline.name}'s p99 step is {worse:.2f} times {mrc.name}'s"
    elif mrc.slowest_bps and baseline.slowest_bps is not None:
        worse = mrc.slowest_bps / baseline.slowest_bps if baseline.slowest_bps else inf
        reason = f"{baseline.name}'s slowest flow has {1 / worse:.2f} times the rate of {mrc.name}'s"
    else:
        return Finding(check, None, "no queue pair failed in either run, and there are no steps or flows to compare")
    return Finding(check, worse >= WORSE, f"no queue pair failed, and {reason} (5 % or more is worse)")


def trimming_off(run: Run) -> bool:
    """Whether a run was told to do without trimming."""
    return str((run.options.get("overrides") or {}).get("trimming.enabled", "true")).lower() == "false"


@dataclass(frozen=True, slots=True)
class Harm:
    """The harm that congestion did to a run; less is better in every field."""

    timeouts: int
    vanished: int  # packets that a switch dropped without telling any host
    abandoned: int  # paths
    began_ns: int | None  # until every flow of the slowest workload had its first bytes; None: all began before
    silence_ns: int | None  # the longest time in which a flow received nothing; None: there were no flows

    def sentence(self) -> str:
        """All of it in words."""
        waits = {"first bytes everywhere after": self.began_ns, "longest pause": self.silence_ns}
        told = [f"{what} {brief(wait_ns)}" for what, wait_ns in waits.items() if wait_ns is not None]
        counts = f"{self.timeouts} timeouts", f"{self.vanished} packets vanished", f"{self.abandoned} paths abandoned"
        return ", ".join([*counts, *told])


def harm(run: Run) -> Harm:
    """Summed over the run, and the worst of its flows from the first phase that is not calm on."""
    totals, drops, span = counters.qp_totals(run), counters.switch_drops(run), faulty_span(run)
    seen = [flows.within(run, span, workload) for workload in flows.workloads(run)] if span else []
    return Harm(
        timeouts=totals.get("rto", 0),
        vanished=drops["drop_program"] + drops["drop_trimmed_share"] + drops["drop_queue_full"],
        abandoned=paths.abandoned(run)[0],
        began_ns=max((flow.first_ns for flow in seen if flow and flow.first_ns is not None), default=None),
        silence_ns=max((flow.silence_ns for flow in seen if flow), default=None),
    )


def trimming_matters(trimmed: tuple[str, Run], dropped: tuple[str, Run]) -> Finding:
    """Without trimming, congested switches drop packets silently; hosts wait for timeouts or give up sound paths."""
    check = "worse without trimming"
    for name, run in (trimmed, dropped):
        unsound = outcome(name, run).unsound or ("" if run.switch_samples else "no switch wrote samples")
        if unsound:
            return Finding(check, None, f"{name}: {unsound}")
    with_, without = harm(trimmed[1]), harm(dropped[1])
    reason = f"with: {with_.sentence()}; without: {without.sentence()}"
    if not counters.qp_totals(trimmed[1]).get("trims") or not without.vanished:
        return Finding(check, None, f"no queue was ever full enough to tell ({reason})")
    worse = without.timeouts > with_.timeouts or without.abandoned > with_.abandoned
    return Finding(check, worse and without.vanished > with_.vanished, reason)


def names(runs: Sequence[Run]) -> list[str]:
    """A name for each run by what tells the runs apart: the transport, changes of plan or settings, or the seed."""
    labels = [str(run.options.get("transport", "run")) for run in runs]
    for key in ("overrides", "settings"):
        if len(set(labels)) < len(labels):
            labels = [
                with_changes(name, run.options.get(key) or {}, runs, key)
                for name, run in zip(labels, runs, strict=True)
            ]
    if len(set(labels)) < len(labels):
        labels = [f"{name}, seed {run.options.get('seed')}" for name, run in zip(labels, runs, strict=True)]
    if len(set(labels)) < len(labels):
        labels = [f"{name} ({index})" for index, name in enumerate(labels, start=1)]
    return labels


def with_changes(name: str, own: dict[str, Any], runs: Sequence[Run], key: str) -> str:
    """The name with those values of the option `key` in which this run differs from another."""
    every = [run.options.get(key) or {} for run in runs]
    changes = [f"{what}={value}" for what, value in own.items() if any(other.get(what) != value for other in every)]
    return f"{name} ({', '.join(changes)})" if changes else name


def verdict_word(run: Run) -> str:
    """The run's own verdict, "–" for a run that was never judged."""
    file = run.directory / "verdict.json" if run.directory else None
    return str(plain_file.read_object(file).get("verdict", "–")) if file and os.path.lexists(file) else "–"


def rows(runs: Sequence[Run]) -> list[list[str]]:
    """A row for each number, a column for each run; the first row has the runs' own verdicts."""
    result: list[list[str]] = []

    def row(title: str, values: Iterable[Any], word: Callable[[Any], str]) -> None:
        """No row where no run has a value."""
        cells = list(values)
        if any(value is not None for value in cells):
            result.append([title, *("–" if value is None else word(value) for value in cells)])

    row("verdict by itself", map(verdict_word, runs), str)
    for phase in dict.fromkeys(name for run in runs for name in run.phases):
        if phase in tables.UNJUDGED:
            continue
        spans = [(run, run.phases.get(phase)) for run in runs]
        row(f"goodput, {phase}", (goodput.of_phase(run, span) for run, span in spans), tables.rate)
        times = [span and steps.times(steps.of_phase(steps.steps(run), span)) for run, span in spans]
        for title, field in (("median", "median_ns"), ("p99", "p99_ns"), ("slowest", "slowest_ns")):
            row(f"step time {title}, {phase}", (time and getattr(time, field) for time in times), brief)
        for workload in dict.fromkeys(name for run in runs for name in flows.workloads(run)):
            seen = [span and flows.within(run, span, workload) for run, span in spans]
            title = f"{workload} flows, {phase}"
            row(
                f"{title}: slowest",
                (min(flow.rates.values()) if flow and flow.rates else None for flow in seen),
                tables.rate,
            )
            row(f"{title}: longest pause", (flow and flow.silence_ns for flow in seen), brief)
            row(f"{title}: last flow began after", (flow and flow.first_ns for flow in seen), brief)
    totals = [counters.qp_totals(run) for run in runs]
    for field, title in tables.COUNTER_TITLES.items():
        row(title, (total.get(field) for total in totals), "{:,}".format)
    row(tables.OTHERS, (counters.other_packets(run) for run in runs), "{:,}".format)
    abandoned = [(run, *paths.abandoned(run)) for run in runs]
    row("paths abandoned", (count for _, count, _ in abandoned), "{:,}".format)
    row("for so long, all of them together", (run.lasting(for_ns) for run, _, for_ns in abandoned), str)
    drops = [counters.switch_drops(run) for run in runs]
    for reason in sorted({reason for counted in drops for reason, count in counted.items() if count}):
        counts = (counted[reason] if run.switch_samples else None for run, counted in zip(runs, drops, strict=True))
        row(f"switch drops: {tables.drop_title(reason)}", counts, "{:,}".format)
    row("queue pairs that failed", (len(qp_errors(run)) for run in runs), str)
    return result


def picture(runs: Sequence[Run]) -> str:
    """The goodput chart as a separate SVG file."""
    chart = plots.goodput_over_time(list(zip(names(runs), runs, strict=True)))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + chart


def as_json(runs: Sequence[Run]) -> dict[str, Any]:
    """`findings` as in `verdict.json`, every row of the table by run, and their numbers (`figures`) by run."""
    table = rows(runs)
    by_run = {name: {row[0]: row[index] for row in table} for index, name in enumerate(names(runs), start=1)}
    findings = [
        {"check": f.check, "holds": f.holds, "word": WORDS[f.holds], "reason": f.reason, "figures": f.figures}
        for f in findings_between(runs)
    ]
    numbers = {name: figures(run) for name, run in zip(names(runs), runs, strict=True)}
    return {"findings": findings, "runs": by_run, "figures": numbers}


def source_names(runs: Sequence[Run]) -> dict[str, str]:
    """The names of nodes in the source of the runs' plan; none where the plans' differ."""
    first, *others = (of_options(run.options) for run in runs)
    return first if all(other == first for other in others) else {}


def html(runs: Sequence[Run]) -> str:
    """The page."""
    titles = names(runs)
    named = list(zip(titles, runs, strict=True))
    title = " against ".join(titles)
    document = page.page(
        title,
        f"<h1>{page.text(title)}</h1>",
        *(page.paragraph(f"{name}: {report.subtitle(run)}", soft=True) for name, run in named),
        page.section("What they show", page.table(["", "", ""], report.finding_rows(findings_between(runs)))),
        page.section(
            "Goodput",
            page.paragraph(f"{report.GOODPUT} Faults are named as in {titles[0]}.", soft=True),
            plots.goodput_over_time(named),
        ),
        page.section("Training steps", plots.step_times(named)),
        page.section("In numbers", page.table(["", *titles], rows(runs))),
    )
    return shown_on_page(document, source_names(runs))


def summary(runs: Sequence[Run]) -> str:
    """The comparison as text for a terminal, without the charts."""
    findings = [[report.MARKS[f.holds], f.check, f.reason] for f in findings_between(runs)]
    table = [["", *names(runs)], *rows(runs)]
    text = report.for_terminal([*report.columns(findings), "", *report.columns(table)])
    return shown(text, source_names(runs))
