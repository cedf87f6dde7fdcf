"""`./lab answers`: each answer under each failure on the same seeds, predictions beside results."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from cli import LONG_S, add, add_runs, add_workers, check_workers, handing_over, want_compiled, workers_for
from common.terminal.printable import path_line, printable_text
from common.terminal.standard_streams import write_error, write_out

if TYPE_CHECKING:
    from answers.answer import Answer
    from answers.contest import Results
    from common.terminal.console import LastingConsole
    from studies.contest import Kept
    from studies.sweeping import Row, Subject, Sweep, VariantStatement

SEEDS, SHORT_SEEDS, SEEDS_MAX = 20, 1, 10_000
SHORT_PLAN, SHORT_TIME = "tiny", 0.4


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `answers`."""
    parser = add(subparsers, "answers", answers_command, __file__)
    parser.set_defaults(world="simulated", cluster=None)
    parser.add_argument("--answers", metavar="NAME,…", help="of those installed; without it those with predictions")
    parser.add_argument("--failures", metavar="NAME,…", help="dead-link, flap, grey-link, … (all)")
    parser.add_argument("--seeds", type=int, metavar="N", help=f"1 to N ({SEEDS}; with --short {SHORT_SEEDS})")
    parser.add_argument("--short", action="store_true", help=f"one seed on plan {SHORT_PLAN}: shows that all runs")
    parser.add_argument("--plan", default="", metavar="PLAN", help="another plan than lab")
    add_workers(parser)
    parser.add_argument("--no-replays", action="store_true", help="do not make the worst runs again")
    add_runs(parser, "results and the page are")
    parser.add_argument("--plain", action="store_true", help="print lines instead of a live table")


def chosen_names(given: str | None, option: str, known: Sequence[str]) -> list[str]:
    """The names of an option; without it all. ValueError with the valid ones."""
    names = list(known) if given is None else given.split(",")
    for name in names:
        if name not in known or names.count(name) > 1:
            raise ValueError(f"{option} must name each of {', '.join(known)} at most once (got {given!r})")
    return names


def answers_command(arguments: argparse.Namespace) -> int:
    from answers.answer import answers  # late, like all below: the help needs none of them
    from answers.contest import chosen, results_of, variants
    from answers.failures import FAILURES
    from answers.report import summary, write
    from common.terminal.console import LastingConsole
    from running.identity import code_digest
    from studies.contest import text
    from studies.sweeping import RowStore, Sweep
    from studies.sweeping.subject import subject
    from topo import load_plan

    check_workers(arguments.workers)
    seeds = arguments.seeds if arguments.seeds is not None else SHORT_SEEDS if arguments.short else SEEDS
    if not 1 <= seeds <= SEEDS_MAX:
        raise ValueError(f"--seeds must be between 1 and {SEEDS_MAX} (got {seeds})")
    known = answers()
    usual = ",".join(name for name, answer in known.items() if answer.predicted == name)
    names = chosen_names(arguments.answers or usual, "--answers", list(known))
    taking: list[Answer] = [known[name] for name in names]
    failures = chosen_names(arguments.failures, "--failures", list(FAILURES))
    plan = arguments.plan or (SHORT_PLAN if arguments.short else "")
    pairs = variants(taking, failures, plan, SHORT_TIME if arguments.short else 1.0)
    subjects = [subject(variant, chosen, 1) for _, _, variant in pairs]
    built, console = load_plan(plan or "lab"), LastingConsole()
    folder = arguments.runs / f"answers{'-short' * arguments.short}"
    with ExitStack() as stack:
        stack.enter_context(handing_over(arguments.runs, folder))
        store = RowStore(folder / f"rows-{code_digest(('answers',))}")  # a row's key leaves out what measured it
        sweep = Sweep(subjects, range(1, seeds + 1), stack.enter_context(store))
        if not sweep.decided:
            want_compiled(arguments, 0 if arguments.short else LONG_S)
            make_runs(arguments, sweep, folder, console)
        results = results_of(sweep, pairs)
        if not (arguments.no_replays or arguments.short):
            keep_worst(results, subjects, folder / "worst")
        page = write(folder, results, built, finder(results, subjects, folder / "worst"))
    write_out(f"\n{text.seeds_enough(len(taking), seeds)}\n")
    write_out("\n" + printable_text(summary(results, built)) + "\n" + path_line("\npage:", page))
    rows = [row for each in results.stated.values() for row in each.rows]
    return 3 if any(row.error for row in rows) else int(any(not row.passed for row in rows))


def make_runs(arguments: argparse.Namespace, sweep: Sweep, folder: Path, console: LastingConsole) -> None:
    """Make the runs that are missing."""
    from answers.measuring import perform
    from studies.farm import Pool
    from studies.sweeping import SweepProgress

    workers = workers_for(arguments.workers, max(each.memory_bytes for each in sweep.subjects), write_error)
    with Pool(workers, perform, folder) as engine, SweepProgress(console, sweep, engine, plain=arguments.plain) as told:
        sweep.run(engine, told.tell)


def finder(results: Results, subjects: Sequence[Subject], folder: Path) -> Kept:
    """Finds the kept run of a row."""
    from studies.contest.worst import kept

    by_variant = {each.variant: each for each in subjects}

    def find(statement: VariantStatement, row: Row) -> Path | None:
        return kept(folder, by_variant[statement.variant].task(row.seed))

    return find


def keep_worst(results: Results, subjects: Sequence[Subject], folder: Path) -> None:
    """Make the worst run of each answer and failure again, with its journal, report and replay."""
    from answers.measuring import perform
    from page.export import beside_report
    from studies.contest.worst import keep
    from studies.farm import Inline

    by_variant = {each.variant: each for each in subjects}
    wanted = [(by_variant[each.variant], each.worst()[0].seed) for each in results.stated.values() if each.rows]
    with Inline(perform) as engine:
        for why in keep(folder, wanted, engine, beside_report):
            write_error(f"mrclab: could not be kept: {why}\n")
