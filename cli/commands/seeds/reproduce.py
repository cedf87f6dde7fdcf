"""`./lab reproduce`: the figures of the MRC paper, run here, and how near they come."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from cli import command_table
from cli.compiled_form import LONG_S, want_compiled
from cli.options import add_runs, check_workers
from cli.ownership import handing_over
from common.interrupts import sigterm_too
from common.terminal.standard_streams import write_out

DESCRIPTION = """\
Run figures of the MRC paper (Araujo et al., arXiv:2605.04333) at the paper's rates in virtual time, and compare;
without names, all of them. Results are kept, so a command that was interrupted goes on where it was; a change of the
code, of the parameters or of a figure repeats the runs that it concerns. Runs that together need more memory than
there is are made one after the other; a run that does not fit alone is left out and named. In figures 16 and 17 a
hash and drawn losses decide RoCE's rows: with --intervals these are intervals over 20 seeds, six times the work.

The page is DIR/reproduction/reproduction.html; beside it are reproduction.md, the same without pictures, and
reproduction.json, the same for programs. Two names are no figures but other pages: `shape` is
DIR/reproduction/shape.html, planes of two tiers against three tiers with as many hosts; `dcqcn` is
DIR/reproduction/dcqcn.md, RoCE with each of DCQCN's constants changed. `16-large` and `17-large` are figures 16 and 17
without loss from 128 MB to 1 GB: they take hours, are made when named, and are on no page. The exit status is 0 when
every run was made, however near the figures come, and 1 when one was broken off or left out."""

SHAPE, DCQCN = "shape", "dcqcn"

EXAMPLES = """examples:
  ./lab reproduce --list
  ./lab reproduce 9a 18
  ./lab reproduce htsim --short
  ./lab reproduce shape
  ./lab reproduce 16 17 --intervals
  ./lab reproduce dcqcn --markdown dcqcn.md
  ./lab reproduce --ablate --seeds 100
  ./lab reproduce --ablate incast grey-link --seeds 20"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `reproduce`."""
    reproduce = command_table.add(subparsers, "reproduce", reproduce_command, EXAMPLES, DESCRIPTION)
    reproduce.set_defaults(world="simulated")
    add = reproduce.add_argument
    add("figures", nargs="*", metavar="FIGURE", help="such as 9a; --list has them all; with --ablate: scenarios")
    add("--list", action="store_true", dest="listed", help="print the figures and leave")
    add("--short", action="store_true", help="runs of seconds, which show that everything works and no more")
    add("--intervals", action="store_true", help="20 seeds for RoCE's rows on few queue pairs in figures 16 and 17")
    add("--workers", type=int, metavar="N", help="processes that make runs (one for each processor)")
    add_runs(reproduce, "results and the page are")
    add("--markdown", type=Path, metavar="FILE", help="also write the tables to FILE, and FILE.json beside it")
    add("--ablate", action="store_true", help="the scenarios without each of the lab's rules, instead of figures")
    add("--seeds", default="20", metavar="N|A-B", help="with --ablate: seeds 1 to N, or A to B (20)")
    add("--time", type=float, default=1.0, metavar="FACTOR", help="with --ablate: stretch or shorten every phase (1)")
    add("--plain", action="store_true", help="print lines instead of a bar")


def listing() -> str:
    """A line a figure."""
    from paper import catalogue

    every = [*catalogue.figures(), *catalogue.figures(list(catalogue.ON_DEMAND))]
    lines = [f"{figure.name:10}{figure.title}" for figure in every]
    return "\n".join(lines) + "\n"


@sigterm_too()
def reproduce_command(arguments: argparse.Namespace) -> int:
    if arguments.listed:
        write_out(listing())
        return 0
    check_workers(arguments.workers)
    if arguments.ablate:
        return ablate(arguments)
    for name, make in ((SHAPE, shape), (DCQCN, dcqcn)):
        if name in arguments.figures:
            if arguments.figures != [name]:
                raise ValueError(f"{name} is made alone (got {' '.join(arguments.figures)})")
            return make(arguments)
    from common import files
    from common.terminal.console import LastingConsole  # late, like all below: the help needs none of them
    from paper import catalogue, perform
    from paper.memory import MemoryBudget, longest_first
    from paper.report import document, page, standing, table, text
    from paper.report.progress import Told
    from paper.reproduction import Reproduction
    from running.estimate import available_memory
    from studies.sweeping.pool import Pool
    from studies.sweeping.store import RowStore

    wanted = catalogue.figures(arguments.figures)
    console = LastingConsole()
    folder = arguments.runs / ("reproduction-short" if arguments.short else "reproduction")
    workers = arguments.workers or len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        beside = [arguments.markdown.with_suffix(".json")] if arguments.markdown is not None else []
        stack.enter_context(handing_over(arguments.runs, folder, *beside))
        store = stack.enter_context(RowStore(folder))
        reproduction = Reproduction(wanted, store, arguments.short, intervals=arguments.intervals)
        budget = MemoryBudget(longest_first(reproduction.missing), available_memory())
        if budget:
            want_compiled(arguments, 0 if arguments.short else LONG_S)
        try:
            if budget:
                engine = stack.enter_context(Pool(workers, perform.choose, folder, perform.perform))
                with Told(console, reproduction, arguments.plain) as told:
                    reproduction.run(engine, budget, told.tell)
        finally:
            # The page has every figure of which results are kept, whichever were asked for this time.
            outcomes = reproduction.outcomes()
            every = Reproduction(catalogue.figures(), store, arguments.short, intervals=arguments.intervals)
            kept = every.outcomes()
            now = {outcome.figure.name: outcome for outcome in outcomes}
            whole = [now.get(outcome.figure.name, outcome) for outcome in kept]
            files.write(folder / "reproduction.html", page.html(whole))
            targets = [folder / "reproduction.md", *([arguments.markdown] if arguments.markdown is not None else [])]
            for target in targets:
                files.write(target, document.markdown(whole))
                files.write(target.with_suffix(".json"), standing.document(whole))
    shown = text.quantities(outcomes) if arguments.figures else text.summary(outcomes)
    write_out(f"{shown}{table.verdict(outcomes)}\n")
    write_out(f"page: {folder / 'reproduction.html'}\n")
    problems = [f"broken off: {error}" for outcome in outcomes for error in outcome.errors]
    problems += [f"left out: {sentence}" for sentence in budget.refused]
    for problem in problems:
        console.print(problem, highlight=False, soft_wrap=True, markup=False)
    return 1 if problems else 0


def shape(arguments: argparse.Namespace) -> int:
    """Write the page that compares planes of two tiers with one fabric of three."""
    from common import files
    from paper.shape import page, runs

    folder = folder_of(arguments)
    with handing_over(arguments.runs, folder):
        found = runs.compare(arguments.short, folder, counting(len(list(runs.steps(arguments.short)))))
        shown = page.markdown(found)
        files.write(folder / "shape.html", page.html(found))
        for target in [folder / "shape.md", *([arguments.markdown] if arguments.markdown is not None else [])]:
            files.write(target, shown)
    write_out(f"{shown}\npage: {folder / 'shape.html'}\n")
    return 0


def dcqcn(arguments: argparse.Namespace) -> int:
    """Write the page of DCQCN's constants."""
    from common import files
    from paper.variations import sensitivity

    folder = folder_of(arguments)
    want_compiled(arguments, 0 if arguments.short else LONG_S)
    with handing_over(arguments.runs, folder):
        found = sensitivity.found(arguments.short, folder, counting(sensitivity.total()))
        shown = sensitivity.markdown(found, arguments.short)
        for target in [folder / "dcqcn.md", *([arguments.markdown] if arguments.markdown is not None else [])]:
            files.write(target, shown)
    write_out(f"{shown}\npage: {folder / 'dcqcn.md'}\n")
    return 0


def folder_of(arguments: argparse.Namespace) -> Path:
    """Where the pages are, made if there is none."""
    folder: Path = arguments.runs / ("reproduction-short" if arguments.short else "reproduction")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def counting(total: int) -> Callable[[str], None]:
    """A function that says on standard error which of `total` runs begins."""
    numbers = count(1)
    return lambda what: write_out(f"{next(numbers)} of {total}: {what}\n", sys.stderr)


def ablate(arguments: argparse.Namespace) -> int:
    """Write a page of the gains of each of the lab's rules."""
    from cli.commands.run import chosen
    from cli.commands.seeds.sweep import parse_seeds
    from common import files
    from common.terminal.console import LastingConsole
    from paper.variations import ablation
    from studies.sweeping.pool import Pool
    from studies.sweeping.progress import SweepProgress
    from studies.sweeping.statement import statements
    from studies.sweeping.store import RowStore
    from studies.sweeping.sweep import Sweep

    seeds = parse_seeds(arguments.seeds)
    folder, page = arguments.runs / "sweeps", arguments.runs / "reproduction" / "ablation.md"
    subjects = ablation.subjects(chosen, seeds[0], arguments.figures, arguments.short, arguments.time)
    with ExitStack() as stack:
        stack.enter_context(handing_over(arguments.runs, folder, page.parent))
        sweep = Sweep(subjects, seeds, stack.enter_context(RowStore(folder)))
        if not sweep.decided:
            want_compiled(arguments, len(seeds) * sum(one.seconds for one in subjects))
        try:
            if not sweep.decided:
                engine = stack.enter_context(Pool(arguments.workers or len(os.sched_getaffinity(0)), chosen, folder))
                with SweepProgress(LastingConsole(), sweep, engine, plain=arguments.plain) as progress:
                    sweep.run(engine, progress.tell)
        finally:
            made_by = ablation.command(arguments.figures, arguments.seeds, arguments.short, arguments.time)
            shown = ablation.markdown(statements(sweep), made_by)
            page.parent.mkdir(parents=True, exist_ok=True)
            for target in [page, *([arguments.markdown] if arguments.markdown is not None else [])]:
                files.write(target, shown)
    write_out(f"page: {page}\n")
    return 0
