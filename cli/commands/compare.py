"""`mrclab compare`: lay runs side by side."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from cli.command_table import add
from cli.damage import told_of
from cli.options import add_runs
from cli.ownership import hand_over
from common import files
from common.terminal.printable import path_line, printable
from running.directory import before, by_age, display_name, find


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    compare = add(subparsers, "compare", compare_command, __file__)
    compare.add_argument(
        "names",
        nargs="*",
        metavar="RUN",
        help="runs to compare; with none, the newest run and the one of its scenario before it; with one, that run and"
        " the newest",
    )
    add_runs(compare)
    compare.add_argument("--output", type=Path, help="where to write the page (compare.html in the last run)")
    compare.add_argument("--picture", type=Path, metavar="FILE.svg", help="also write the goodput chart by itself")
    compare.add_argument("--format", choices=("text", "json"), default="text")


def compare_command(arguments: argparse.Namespace) -> int:
    from judging import Run
    from judging.reports import comparison  # late: matplotlib, which the help does not need

    paths = [find(arguments.runs, name) for name in arguments.names]
    if len(paths) < 2:
        newest = find(arguments.runs, "latest")
        paths = [*(paths or [before(newest)]), newest]
    for path in paths:
        if paths.count(path) > 1:
            raise ValueError(
                f"{display_name(path)} would be compared with itself: name two runs; {earlier(arguments.runs, path)}"
            )
    output = arguments.output or paths[-1] / "compare.html"
    with told_of(*paths):
        runs = [Run.open(path) for path in paths]
        page, summary = comparison.html(runs), comparison.summary(runs)
    if arguments.output is None:
        files.write(output, page)  # never through a link that a run folder of other people has
        hand_over(output)
    else:
        files.write_named(output, page)
    if arguments.picture is not None:
        files.write_named(arguments.picture, comparison.picture(runs))
    if arguments.format == "json":
        sys.stdout.write(json.dumps(comparison.as_json(runs), indent=2) + "\n")
    else:
        sys.stdout.write(summary + path_line("\nreport:", output))
    return 0


def earlier(root: Path, run: Path) -> str:
    """The other runs of a scenario, the newest last, as a hint for the user."""
    others = [path for path in by_age(root) if path.resolve() != run and path.parent.name == run.parent.name]
    scenario = printable(run.parent.name)
    return (
        f"others of {scenario}: {', '.join(map(display_name, others[-5:]))}"
        if others
        else f"it is the only run of {scenario}"
    )
