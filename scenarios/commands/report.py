"""`mrclab report` and `mrclab compare`: judge an old run again, lay two runs side by side."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from scenarios import library
from scenarios.judging import comparison
from scenarios.judging.judge import judge
from scenarios.judging.run import Run
from scenarios.running.directory import RUNS, before, find
from scenarios.running.setting import setting_of


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = subparsers.add_parser(
        "report",
        help="judge a run again and rewrite its report",
        epilog="examples:\n  ./lab report\n  ./lab report link-flap/20261121-101500-7",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_argument("name", nargs="?", default="latest", help="a run, or a scenario: its newest run (latest)")
    report.add_argument("--runs", type=Path, default=RUNS, metavar="DIR", help="where runs are kept (runs/)")
    report.add_argument("--format", choices=("text", "json"), default="text")
    report.set_defaults(run=report_command)

    compare = subparsers.add_parser(
        "compare",
        help="two runs on one page, such as MRC against RoCE",
        epilog=(
            "examples:\n"
            "  ./lab compare                                    the newest run and the one of its scenario before it\n"
            "  ./lab compare link-flap/20261121-101500-7        that run and the newest\n"
            "  ./lab compare link-flap/20261121-101500-7 link-flap/20261121-102000-7 --format json"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument("first", nargs="?", help="a run (the one before the second, of the same scenario)")
    compare.add_argument("second", nargs="?", default="latest", help="another (latest)")
    compare.add_argument("--runs", type=Path, default=RUNS, metavar="DIR", help="where runs are kept (runs/)")
    compare.add_argument("--output", type=Path, help="where to write the page (compare.html in the second run)")
    compare.add_argument("--picture", type=Path, metavar="FILE.svg", help="also write the goodput chart by itself")
    compare.add_argument("--format", choices=("text", "json"), default="text")
    compare.set_defaults(run=compare_command)


def report_command(arguments: argparse.Namespace) -> int:
    path = find(arguments.runs, arguments.name)
    options = json.loads((path / "options.json").read_text())
    scenario = library.find(options["source"])
    verdict = judge(path, list(scenario.checks(setting_of(options))), scenario.story)
    name = "summary.txt" if arguments.format == "text" else "verdict.json"
    sys.stdout.write((path / name).read_text())
    if arguments.format == "text":
        sys.stdout.write(f"\nreport: {path / 'report.html'}\n")
    return verdict.exit_status


def compare_command(arguments: argparse.Namespace) -> int:
    second = find(arguments.runs, arguments.second)
    paths = [before(second) if arguments.first is None else find(arguments.runs, arguments.first), second]
    runs = [Run.open(path) for path in paths]
    output = arguments.output or paths[1] / "compare.html"
    output.write_text(comparison.html(runs))
    if arguments.picture is not None:
        arguments.picture.write_text(comparison.picture(runs))
    if arguments.format == "json":
        sys.stdout.write(json.dumps(comparison.as_json(runs), indent=2) + "\n")
    else:
        sys.stdout.write(comparison.summary(runs) + f"\nreport: {output}\n")
    return 0
