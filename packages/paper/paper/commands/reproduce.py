"""`./lab reproduce`: the figures of the MRC paper, run here, and how near they come."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from cli import LONG_S, add_runs, check_workers, handing_over, want_compiled
from cli import add as add_command
from common.outcome import at_the_end
from common.terminal.printable import path_line
from common.terminal.standard_streams import write_out

if TYPE_CHECKING:
    from paper.figure import Figure
    from paper.outcome import Outcome


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `reproduce`."""
    reproduce = add_command(subparsers, "reproduce", reproduce_command, __file__)
    reproduce.set_defaults(world="simulated", cluster=None, check=check_names)
    add = reproduce.add_argument
    add("figures", nargs="*", metavar="FIGURE", help="such as 9a; --list has them all")
    add("--list", action="store_true", dest="listed", help="print the figures and leave")
    add("--recorded", action="store_true", help="run nothing: show the runs that come with the lab")
    add("--short", action="store_true", help="runs of seconds, which show that everything works and no more")
    add("--ocp", action="store_true", help="MRC alone, as the specification words it and not as its NIC was measured")
    add("--intervals", action="store_true", help="20 seeds for RoCE's rows on few queue pairs in figures 16 and 17")
    add("--workers", type=int, metavar="N", help="processes that make runs (one for each processor)")
    add_runs(reproduce, "results and the page are")
    add("--keep", type=Path, metavar="FILE", help="also keep the runs in FILE (gzip), and go on from those in it")
    add("--plain", action="store_true", help="print lines instead of a bar")


def listing() -> str:
    """A line a figure."""
    from paper import catalogue

    every = catalogue.figures()
    lines = [f"{figure.name:10}{figure.title}" for figure in every]
    return "\n".join(lines) + "\n"


def reproduce_command(arguments: argparse.Namespace) -> int:
    if arguments.listed:
        write_out(listing())
        return 0
    check_workers(arguments.workers)
    check_options(arguments)
    from common.terminal.console import LastingConsole  # late, like all below: the help needs none of them
    from paper import catalogue, kept_runs, perform
    from paper.memory import MemoryBudget, longest_first
    from paper.report import table
    from paper.report.progress import ReproductionProgress
    from paper.reproduction import Reproduction
    from running.estimate import available_memory
    from studies.farm import Pool
    from studies.sweeping import RowStore

    check_names(arguments)
    wanted = catalogue.figures(arguments.figures)
    form = {"intervals": arguments.intervals, "ocp": arguments.ocp}
    folder = arguments.runs / f"reproduction{'-ocp' * arguments.ocp}{'-short' * arguments.short}"
    if arguments.recorded:
        return show(arguments, arguments.runs / "reproduction-recorded", wanted)
    console = LastingConsole()
    workers = arguments.workers or len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        stack.enter_context(handing_over(arguments.runs, folder))
        store = stack.enter_context(RowStore(folder))
        rows = kept_runs.read(arguments.keep) if arguments.keep is not None and arguments.keep.exists() else {}
        if rows:
            kept_runs.hand_over(arguments.keep, rows, store)
        reproduction = Reproduction(wanted, store, arguments.short, **form)
        budget = MemoryBudget(longest_first(reproduction.missing), available_memory())
        if budget:
            want_compiled(arguments, 0 if arguments.short else LONG_S)

        def write() -> None:
            """The page has every figure of which results are kept, whichever were asked for this time."""
            if arguments.short:
                return
            every = Reproduction(catalogue.figures(), store, **form)
            now = {outcome.figure.name: outcome for outcome in reproduction.outcomes()}
            write_figures(folder, [now.get(outcome.figure.name, outcome) for outcome in every.outcomes()])
            if arguments.keep is not None:
                kept_runs.write(arguments.keep, {**rows, **every.rows, **reproduction.rows})

        with at_the_end(write):
            if budget:
                engine = stack.enter_context(Pool(workers, perform.perform, folder))
                with ReproductionProgress(console, reproduction, arguments.plain) as progress:
                    reproduction.run(engine, budget, progress.ended)
        outcomes = reproduction.outcomes()
    if arguments.short:
        write_out(table.run_lines(outcomes))
    else:
        write_out(results(arguments, outcomes, folder))
    problems = [f"broken off: {error}" for outcome in outcomes for error in outcome.errors]
    problems += [f"left out: {sentence}" for sentence in budget.refused]
    for problem in problems:
        console.print(problem, highlight=False, soft_wrap=True, markup=False)
    return 1 if problems else 0


def show(arguments: argparse.Namespace, folder: Path, figures: Sequence[Figure]) -> int:
    """Write the page of the runs that come with the lab, and print its numbers."""
    from common import files
    from paper import kept_runs

    outcomes = kept_runs.outcomes(kept_runs.read(kept_runs.RECORDED), figures)
    with handing_over(arguments.runs, folder):
        files.make_folder(folder)
        write_figures(folder, outcomes)
    write_out(results(arguments, outcomes, folder))
    return 0


def write_figures(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the page of figures, and the same as JSON."""
    from common import files
    from paper.report import page, standing

    files.write(folder / "reproduction.html", page.html(outcomes))
    files.write(folder / "reproduction.json", standing.document(outcomes))


def results(arguments: argparse.Namespace, outcomes: Sequence[Outcome], folder: Path) -> str:
    """The results for a terminal: quantities of named figures, or a line per figure; and where the page is."""
    from paper.report import table

    shown = (table.quantity_lines if arguments.figures else table.summary_lines)(outcomes)
    return f"{shown}{table.verdict(outcomes)}\n" + path_line("page:", folder / "reproduction.html")


def check_names(arguments: argparse.Namespace) -> None:
    """ValueError for a name that is no figure, with all choices, and for intervals that none of the figures has."""
    from paper import catalogue

    names = arguments.figures
    for name in names:
        if name not in catalogue.MODULES:
            choices = ", ".join(catalogue.MODULES)
            reason = f". {catalogue.MISSING[name]}" if name in catalogue.MISSING else ""
            raise ValueError(f"FIGURE must be one of {choices} (got {name!r}){reason}")
    if arguments.intervals and names and not {*catalogue.WITH_INTERVALS} & {*names}:
        having = " or ".join(catalogue.WITH_INTERVALS)
        raise ValueError(f"--intervals: only with figures that have them, {having} (got {' '.join(names)})")


def check_options(arguments: argparse.Namespace) -> None:
    """ValueError for an option that would do nothing, and for a file that could not be written after hours of runs."""
    refused = ("short", "intervals", "keep", "workers", "ocp")
    if arguments.recorded and (given := [option for option in refused if getattr(arguments, option)]):
        raise ValueError(f"--recorded runs nothing: not with --{given[0]}")
    if arguments.keep is not None:
        for option in ("short", "ocp"):
            if getattr(arguments, option):
                raise ValueError(f"--keep: not with --{option}")
        check_file("--keep", arguments.keep)


def check_file(option: str, given: Path) -> None:
    """ValueError for a file that could not be written; a temporary file in its folder shows it."""
    from common import files

    rule = f"{option} must be a file in a folder that exists and can be written (got {given})"
    try:
        if given.is_symlink() or (given.exists() and not given.is_file()):
            raise ValueError(f"{rule}: {given} is not a file")
        with files.beside(given) as (handle, *_):
            os.close(handle)
    except OSError as error:
        raise ValueError(f"{rule}: {given}: {error.strerror}") from error
