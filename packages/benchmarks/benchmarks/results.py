"""Every scenario in virtual time, at lab rates and at real ones: makes docs/results/rates.jsonl, unattended.

    python -m benchmarks.results                                  # everything: an hour of one core
    python -m benchmarks.results --rows rows.jsonl                # the same in pieces: goes on where it ended
    python -m benchmarks.results --rows rows.jsonl --rates 100000 --transports mrc --scenarios incast
    python -m benchmarks.results --rows docs/results/rates.jsonl --at-most 0   # no run, the tables of that file

Each run is a separate process, one after the other. With `--rows`, each is a JSON line of that file, and a run that has
a line there is not repeated. Prints two tables, and exits with 1 if a scenario has another verdict at one rate than at
another.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]

from benchmarks.rig.kept import JUDGED, commit, keep, lines  # noqa: E402
from scenarios import library  # noqa: E402

RATES_MBPS = (10, 100_000, 200_000, 400_000)
TRANSPORTS = ("mrc", "roce")


class Case(NamedTuple):
    """One run."""

    scenario: str
    transport: str
    rate_mbps: int
    seed: int


@dataclass(frozen=True, slots=True)
class Row:
    """What a run came to. Shares are of the reference phase; `load` is the machine's when the run began."""

    scenario: str
    transport: str
    rate_mbps: int
    seed: int
    verdict: str
    failed: dict[str, str]  # check: reason
    goodput: float | None
    step_p99: float | None
    data_packets: int
    retransmits: int
    trims: int
    processor_s: float
    wall_s: float
    megabytes: float
    load: float
    commit: str

    @property
    def case(self) -> Case:
        return Case(self.scenario, self.transport, self.rate_mbps, self.seed)

    @property
    def said(self) -> str:
        """The verdict with the checks that do not hold."""
        return self.verdict + (f": {', '.join(self.failed)}" if self.failed else "")


def read(path: Path | None) -> dict[Case, Row]:
    """The rows of a file, none where there is no file."""
    rows = [Row(**line) for line in lines(path)]
    return {row.case: row for row in rows}


def run(case: Case, folder: Path) -> Row:
    """Raises RuntimeError when a run ends without a verdict."""
    words = [sys.executable, "-m", "cli", "run", case.scenario, "--world", "simulated", "--format", "json"]
    words += ["--transport", case.transport, "--rate", str(case.rate_mbps), "--seed", str(case.seed)]
    load, began_s = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([*words, "--runs", str(folder)], cwd=ROOT, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.monotonic() - began_s
        output.seek(0)
        if process.returncode not in JUDGED:
            raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
        told = json.load(output)
    figures = told["figures"]
    phases = {phase["phase"]: phase["goodput_share_of_reference"] for phase in figures["phases"]}
    steps = {step["phase"]: step["p99_ns"] for step in figures["steps"]}
    counters = figures["counters_packets"]
    return Row(
        *case,
        verdict=told["verdict"],
        failed={found["check"]: found["reason"] for found in told["findings"] if found["holds"] is not True},
        goodput=phases.get("faults"),
        step_p99=steps["faults"] / steps["reference"] if {"faults", "reference"} <= steps.keys() else None,
        data_packets=counters["data_packets"],
        retransmits=counters["retransmits"],
        trims=counters["trims"],
        processor_s=round(usage.ru_utime + usage.ru_stime, 1),
        wall_s=round(wall_s, 1),
        megabytes=round(usage.ru_maxrss / 1e3),
        load=round(load, 1),
        commit=commit(),
    )


def tables(rows: Iterable[Row]) -> list[str]:
    """Two Markdown tables: verdicts by rate, and what each run gave and took."""
    by_case = {row.case: row for row in rows}
    rates = sorted({case.rate_mbps for case in by_case})
    pairs = [(name, transport) for transport in TRANSPORTS for name in library.NAMES]
    made = [f"| scenario | transport | {' | '.join(map(port_rate, rates))} |", "|---|---|" + "---|" * len(rates)]
    for name, transport in pairs:
        found = {row.rate_mbps: row for row in by_case.values() if (row.scenario, row.transport) == (name, transport)}
        if found:
            cells = [found[rate].said if rate in found else "not run" for rate in rates]
            cells = ["the same" if ":" in cell and cell in cells[:at] else cell for at, cell in enumerate(cells)]
            made.append(f"| `{name}` | {transport} | {' | '.join(cells)} |")
    titles = "goodput | p99 step | data packets | sent again | trimmed | processor, s | wall, s | load | MB"
    made += ["", f"| scenario | transport | a port | {titles} |", "|---|---|---|" + "---:|" * 9]
    for name, transport in pairs:
        for rate in rates:
            for row in by_case.values():
                if (row.scenario, row.transport, row.rate_mbps) == (name, transport, rate):
                    made.append(f"| `{name}` | {transport} | {port_rate(rate)} | {figures_of(row)} |")
    return made


def figures_of(row: Row) -> str:
    cells: list[Any] = [
        "" if row.goodput is None else f"{row.goodput:.1%}",
        "" if row.step_p99 is None else f"{row.step_p99:.2f}",
        *(f"{count:,}" for count in (row.data_packets, row.retransmits, row.trims)),
        f"{row.processor_s:.0f}",
        f"{row.wall_s:.0f}",
        f"{row.load:.1f}",
        f"{row.megabytes:.0f}",
    ]
    return " | ".join(cells)


def port_rate(mbps: int) -> str:
    return f"{mbps / 1000:g} Gb/s" if mbps >= 1000 else f"{mbps} Mb/s"


def differing(rows: Iterable[Row]) -> list[str]:
    """Scenarios whose verdict depends on the rate."""
    verdicts: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        verdicts.setdefault((row.scenario, row.transport), set()).add(row.verdict)
    return [f"{name} with {transport}" for (name, transport), found in verdicts.items() if len(found) > 1]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=int, nargs="+", default=RATES_MBPS, metavar="MBPS", help="of a NIC's port")
    parser.add_argument("--transports", nargs="+", choices=TRANSPORTS, default=TRANSPORTS)
    parser.add_argument("--scenarios", nargs="+", choices=library.NAMES, default=library.NAMES, metavar="NAME")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--at-most", type=int, metavar="RUNS", help="end after so many runs")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="rows that are there, and where new ones go")
    options = parser.parse_args(arguments)
    rows = read(options.rows)
    cases = [
        Case(name, transport, rate, options.seed)
        for transport in options.transports
        for rate in options.rates
        for name in options.scenarios
    ]
    missing = [case for case in cases if case not in rows][: options.at_most]
    for case in missing:
        with tempfile.TemporaryDirectory() as folder:
            row = rows[case] = run(case, Path(folder))
        print(f"{' '.join(map(str, case))}: {row.said}, {row.processor_s:.0f} s of processor", flush=True)
        if options.rows:
            keep(options.rows, asdict(row))
    print("\n".join(tables(rows.values())))
    unlike = differing(rows.values())
    for name in unlike:
        print(f"{name}: the verdict depends on the rate", file=sys.stderr)
    return bool(unlike)


if __name__ == "__main__":
    sys.exit(main())
