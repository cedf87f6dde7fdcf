"""`mrclab contest`: algorithms against each other on the same seeds, in one table, one page and one CSV file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli import command_table
from cli.commands.seeds.sweep import add_engine_options, check_engine_options, make_engine, name_of, parse_seeds, swept
from cli.options import SCENARIO_NAMES, add_plain, add_runs
from common.terminal.printable import path_line, printable_text
from common.terminal.standard_streams import write_out
from running.options import OPTIONS

if TYPE_CHECKING:
    from common.terminal.console import LastingConsole
    from studies.contest import Algorithm, Kept, Match
    from studies.sweeping import Subject, Sweep

ALGORITHMS, SCENARIOS, SEEDS, TIME = "mrc,reps,oblivious", "collision,grey-link", "20", 0.25
SMOKE = {"scenario": "smoke,grey-link", "seeds": "7"}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    usual = {"algorithms": ALGORITHMS, "scenarios": SCENARIOS, "seeds": SEEDS, "time": TIME}
    contest = command_table.add(subparsers, "contest", contest_command, __file__, **usual)
    contest.set_defaults(world="simulated", check=check_algorithms)
    add = contest.add_argument
    add(
        "--algorithms",
        default=ALGORITHMS,
        metavar="NAME,…",
        help="selections, congestion=NAME, loss=NAME, FILE.py:CLASS, or several with + (docs/algorithms.md)",
    )
    add("--reference", metavar="NAME", help="the algorithm with which the others are compared (the first)")
    add("--scenario", metavar="NAME,…", help=SCENARIO_NAMES)
    add("--seeds", metavar="N|A-B", help="1 to N, or A to B")
    add("--smoke", action="store_true", help="a short contest: scenarios smoke and grey-link, seven seeds")
    OPTIONS["time"].add(contest, default=TIME, help=f"stretch or shorten every phase ({TIME:g})")
    OPTIONS["plan"].add(contest, default="")
    for name in ("set", "rate"):
        OPTIONS[name].add(contest)
    add_engine_options(contest)
    add_runs(contest, "runs and rows are")
    add("--format", choices=("text", "json"), default="text", help="json: the rows of contest.csv, and nothing else")
    add_plain(contest, "live table")


def check_algorithms(arguments: argparse.Namespace) -> None:
    """ValueError for an algorithm or a reference that is none. Users' classes are not loaded."""
    from studies.contest import parse

    if ".py:" not in arguments.algorithms:
        reference_of(arguments, parse(arguments.algorithms))


def contest_command(arguments: argparse.Namespace) -> int:
    from cli.choosing import chosen  # late, like all below: the help needs none of them
    from common.terminal.console import LastingConsole
    from studies.contest import parse, records, report, text, variants
    from studies.contest.worst import kept
    from studies.sweeping.subject import subject

    seeds = checked(arguments)
    algorithms = parse(arguments.algorithms)
    reference = reference_of(arguments, algorithms)
    rows = variants(algorithms, arguments.scenario.split(","), arguments.plan, others(arguments))
    subjects = [subject(variant, chosen, seeds[0]) for row in rows for variant in row]
    told = arguments.format == "text"
    console = LastingConsole(quiet=not told)
    console.print(text.seeds_enough(len(algorithms), len(seeds)), highlight=False, soft_wrap=True)
    place = arguments.runs / "contests" / name_of([subject.variant for subject in subjects], reference)
    by_variant = {subject.variant: subject for subject in subjects}
    find: Kept = lambda subject, row: kept(place / "worst", by_variant[subject.variant].task(row.seed))  # noqa: E731

    def write(sweep: Sweep) -> Path:
        return report.write(place, matches_of(sweep, algorithms, reference), find)

    with swept(arguments, subjects, seeds, [place.parent, place], console, write) as sweep:
        keep_worst(arguments, sweep, place / "worst", console)
        matches, page = matches_of(sweep, algorithms, reference), write(sweep)
    if told:
        write_out("\n" + printable_text(text.summary(matches)))
        write_out(path_line("\npage:", page) + path_line("CSV: ", place / "contest.csv"))
    else:
        write_out(json.dumps(records(matches), indent=1) + "\n")
    return 3 if any(statement.verdicts["unknown"].count for match in matches for statement in match.statements) else 0


def checked(arguments: argparse.Namespace) -> list[int]:
    """The seeds; fills in what was not given. ValueError names the option that is wrong."""
    defaults = SMOKE if arguments.smoke else {"scenario": SCENARIOS, "seeds": SEEDS}
    for name, value in defaults.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    check_engine_options(arguments)
    return parse_seeds(arguments.seeds)


def reference_of(arguments: argparse.Namespace, algorithms: list[Algorithm]) -> str:
    """The name of the reference. ValueError with the valid names."""
    names = [algorithm.name for algorithm in algorithms]
    if arguments.reference is None:
        return names[0]
    if arguments.reference not in names:
        raise ValueError(f"--reference must be one of {', '.join(names)} (got {arguments.reference!r})")
    return str(arguments.reference)


def others(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of `./lab run` that all runs share."""
    shared: dict[str, Any] = {"world": "simulated", "time": arguments.time, "payload": "counted"}
    shared |= {"set": arguments.set} if arguments.set else {}
    return shared if arguments.rate is None else {**shared, "rate": arguments.rate}


def matches_of(sweep: Sweep, algorithms: list[Algorithm], reference: str) -> list[Match]:
    """The rows of the sweep, by scenario."""
    from studies.contest import Match
    from studies.sweeping import statements

    stated, names = statements(sweep), [algorithm.name for algorithm in algorithms]
    return [
        Match(stated[first].variant.scenario, names, reference, stated[first : first + len(names)])
        for first in range(0, len(stated), len(names))
    ]


def keep_worst(arguments: argparse.Namespace, sweep: Sweep, folder: Path, console: LastingConsole) -> None:
    """Make the worst run of each algorithm and scenario again, with journal, report and replay, on this machine."""
    from page.export import beside_report
    from studies.contest import worst
    from studies.farm import Inline
    from studies.sweeping import statements
    from studies.sweeping.perform import perform

    wanted: list[tuple[Subject, int]] = [
        (subject, row.seed)
        for statement, subject in zip(statements(sweep), sweep.subjects, strict=True)
        for row in statement.worst()[:1]
    ]
    if all(worst.kept(folder, subject.task(seed)) for subject, seed in wanted):
        return
    console.print("making the worst run of each again, to be kept with its replay", highlight=False, soft_wrap=True)
    # A cluster's workers would keep the runs on their own machines.
    own = Inline(perform) if arguments.cluster else None
    with own or make_engine(arguments, arguments.runs / "sweeps", sweep.subjects, console) as engine:
        failed = worst.keep(folder, wanted, engine, beside_report)
    for why in failed:
        console.tell(f"could not be kept, broken off: {why}")
