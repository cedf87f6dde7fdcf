"""`mrclab report`: judge an old run again."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from cli.command_table import add
from cli.damage import told_of
from cli.options import add_runs
from cli.ownership import handing_over
from common import plain_file
from common.terminal.printable import path_line, printable
from common.terminal.standard_streams import write_out
from running.directory import find

AGAIN = "-again"
"""Added to the names of files of a verdict that comes from other checks than the first one."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = add(subparsers, "report", report_command, __file__)
    report.add_argument("name", nargs="?", default="latest", help="a run, or a scenario: its newest run (latest)")
    add_runs(report)
    report.add_argument("--format", choices=("text", "json"), default="text")
    report.add_argument("--trust", action="store_true", help="run the scenario file in the run folder, which is code")
    report.add_argument(
        "--csv", type=Path, metavar="DIR", help="write goodput.csv, steps.csv, counters.csv and messages.csv there"
    )


def report_command(arguments: argparse.Namespace) -> int:
    from judging import Run
    from judging.judge import judge
    from judging.reports import write_csv
    from page import export
    from running.assessment import assessment  # late: matplotlib, which the help does not need

    path = find(arguments.runs, arguments.name)
    judged_with = assessment(path, arguments.trust)
    verdict_file = path / "verdict.json"
    first = plain_file.read_object(verdict_file).get("verdict") if os.path.lexists(verdict_file) else None
    again = AGAIN if judged_with.notice and first is not None else ""
    with handing_over(path), told_of(path):
        verdict = judge(path, judged_with.checks, judged_with.story, again, export.beside_report)
    for notice in [judged_with.notice] if judged_with.notice else []:
        write_out(printable(notice) + "\n", sys.stdout if arguments.format == "text" else sys.stderr)
    if first not in (None, verdict.word):
        kept = f", kept in {verdict_file.name}" if again else ""
        write_out(printable(f"the first verdict was {first}{kept}") + "\n", sys.stderr)
    if arguments.csv is not None:
        for file in write_csv(Run.open(path), arguments.csv):
            write_out(path_line("wrote", file), sys.stderr)
    name = f"summary{again}.txt" if arguments.format == "text" else f"verdict{again}.json"
    write_out(plain_file.read_bytes(path / name).decode())
    if arguments.format == "text":
        write_out(path_line("\nreport:", path / f"report{again}.html"))
    return verdict.exit_status
