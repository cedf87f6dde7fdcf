"""The tables of a run, row by row, as the page and the text share them."""

from judging import commands
from judging.measures import cost, counters, flows, goodput, paths, planes, recovery, steps
from judging.run import Run
from judging.units import brief

COUNTER_TITLES = {
    "data_packets": "data packets sent",
    "retransmits": "retransmitted",
    "rto": "retransmission timeouts",
    "trims": "trimmed on the way",
    "nacks": "NACKs received",
    "ecn": "ECN marks echoed",
    "skips": "paths skipped for a while",
    "probes": "reliability probes sent",
}
OTHERS = "EV probes, ACKs, updates"
"""The title of `counters.other_packets`."""
DROP_TITLES = {
    "drop_program": "by the P4 program",
    "drop_trimmed_share": "trimmed packets beyond their share of a port",
}
PAUSE_TITLES = {
    "pause_sent": "pauses sent by switches",
    "paused_ns": "ports of switches paused, together",
    "pause_watchdog": "pauses longer than the watchdog allows",
    "pause_ignored": "MAC control frames ignored by switches",
}
NOT_READ = "not read"
UNJUDGED = ("warmup", "heal")


def rate(bits_per_second: float) -> str:
    """Bits per second in three digits and the unit that suits them."""
    for size, unit in ((1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")):
        if bits_per_second >= size:
            return f"{bits_per_second / size:.3g} {unit}"
    return f"{bits_per_second:.0f} b/s"


def goodput_rows(run: Run) -> list[list[str]]:
    """Phase, length, goodput, share of the reference phase's."""
    normal = goodput.of_phase(run, run.phases.get("reference"))
    rows = []
    for name, span in run.phases.items():
        value = goodput.of_phase(run, span)
        share = f"{value / normal:.1%}" if normal and value is not None else ""
        rows.append([name, run.lasting(span.length_ns), NOT_READ if value is None else rate(value), share])
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
    """Per fault or burst: when, what, the cost, and how long each part of recovering took."""
    base_rtt_ns = int(run.options.get("base_rtt_ns") or 0)
    costs = cost.by_fault(run)
    rows = []
    for item in recovery.recoveries(run):
        times = (costs.get(item.start_ns), item.missed_ns, item.abandoned_ns, item.repaired_ns)
        rows.append([run.clock(item.start_ns), item.title, *(in_round_trips(time, base_rtt_ns) for time in times)])
    return rows


def in_round_trips(length_ns: float | None, base_rtt_ns: int) -> str:
    """A length in ms and base round trips. None has a dash, so that in text no cell takes the place of another."""
    if length_ns is None:
        return "–"
    return brief(length_ns) + (f" ({length_ns / base_rtt_ns:.1f})" if base_rtt_ns else "")


def fault_rows(run: Run) -> list[list[str]]:
    """When, what, where, for how long."""
    rows = []
    for fault in run.faults:
        length = "stays" if fault.stop_ns is None else run.lasting(fault.stop_ns - fault.start_ns, 2)
        target = f"{fault.target} (by hand)" if fault.by_hand else fault.target
        rows.append([run.clock(fault.start_ns), fault.verb, target, length])
    return rows


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
    """Counters of queue pairs over the whole run, paths abandoned, and packets that switches dropped."""
    totals = counters.qp_totals(run)
    rows = [[title, f"{totals[field]:,}" if field in totals else NOT_READ] for field, title in COUNTER_TITLES.items()]
    others = counters.other_packets(run)
    rows.append([OTHERS, NOT_READ if others is None else f"{others:,}"])
    count, for_ns = paths.abandoned(run)
    told = f"{count:,}" if count or run.agent_samples else NOT_READ
    rows.append(["paths abandoned", told + (f" (for {run.lasting(for_ns)} together)" if count else "")])
    if not run.switch_samples:
        rows.append(["switch drops", NOT_READ])
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
    for process in commands.processes(run):
        lasted = "" if process.stop_ns is None else run.lasting(process.stop_ns - process.start_ns)
        rows.append([process.host, process.words, commands.ending(process), lasted])
    return rows


def cause_rows(run: Run) -> list[list[str]]:
    """Of a program that failed: when the first thing went wrong, what, and the faults at that time."""
    found = commands.first_cause(run)
    return [] if found is None else [[run.clock(found[0]), *found[1:]]]


def command_output(run: Run, lines_max: int | None = None) -> list[tuple[str, list[str]]]:
    """The end of what the program printed in each host: the host, and at most so many lines."""
    printed = [(process.host, process.output.splitlines()) for process in commands.processes(run)]
    return [(host, lines if lines_max is None else lines[-lines_max:]) for host, lines in printed if lines]


def flow_rows(run: Run) -> list[list[str]]:
    """The rates and waits of each stream's flows in each phase that is judged."""
    rows = []
    for workload in flows.workloads(run):
        for name, span in run.phases.items():
            flow = None if name in UNJUDGED else flows.within(run, span, workload)
            if flow is not None and flow.rates:
                first = "" if flow.first_ns is None else brief(flow.first_ns)
                lowest, highest = rate(min(flow.rates.values())), rate(max(flow.rates.values()))
                row = [workload, name, str(len(flow.rates)), rate(flow.mean_bps), lowest, highest]
                rows.append([*row, brief(flow.silence_ns), first])
    return rows
