"""`mrclab report`: judge an old run again."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from cli.words import add
from running.directory import RUNS, find

EXAMPLES = """examples:
  ./lab report
  ./lab report link-flap/20261121-101500-7
  ./lab report --format json
  ./lab report --csv figures/"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = add(subparsers, "report", report_command, EXAMPLES)
    report.add_argument("name", nargs="?", default="latest", help="a run, or a scenario: its newest run (latest)")
    report.add_argument("--runs", type=Path, default=RUNS, metavar="DIR", help="where runs are kept (runs/)")
    report.add_argument("--format", choices=("text", "json"), default="text")
    report.add_argument("--csv", type=Path, metavar="DIR", help="write goodput.csv, steps.csv and counters.csv there")


def report_command(arguments: argparse.Namespace) -> int:
    from judging.judge import judge
    from judging.reports.figures import write_csv
    from judging.run import Run
    from page import export
    from running.setting import setting_of
    from scenarios import library  # late: matplotlib, which the help does not need

    path = find(arguments.runs, arguments.name)
    options = json.loads((path / "options.json").read_text())
    scenario = library.find(options["source"])
    export.beside_report(path)
    verdict = judge(path, list(scenario.checks(setting_of(options))), scenario.story)
    if arguments.csv is not None:
        for file in write_csv(Run.open(path), arguments.csv):
            sys.stderr.write(f"wrote {file}\n")
    name = "summary.txt" if arguments.format == "text" else "verdict.json"
    sys.stdout.write((path / name).read_text())
    if arguments.format == "text":
        sys.stdout.write(f"\nreport: {path / 'report.html'}\n")
    return verdict.exit_status
