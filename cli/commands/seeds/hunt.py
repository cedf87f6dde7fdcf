"""`mrclab hunt`: random timelines until one breaks an invariant; the smallest such timeline is kept."""

from __future__ import annotations

import argparse
import json
import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.command_table import add
from cli.commands.run import run_command
from cli.compiled_form import want_compiled
from cli.options import add_runs, check_workers, seed_of
from common.outcome import error_line
from common.pairs import json_or_text, parse_pairs
from common.quoting import command
from common.terminal.counted import counted
from common.terminal.printable import path_line, printable
from common.terminal.standard_streams import write_out

if TYPE_CHECKING:
    from studies.hunting import Hunt

MINUTES = 2.0
TRY_S = 0.3  # about, of one processor and interpreted


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    hunt = add(subparsers, "hunt", hunt_command, __file__)
    hunt.set_defaults(world="simulated")
    hunt.add_argument("--seed", type=int, metavar="N", help="repeat a hunt (a new seed each time)")
    hunt.add_argument("--minutes", type=float, metavar="M", help=f"stop after so long ({MINUTES:g} without --tries)")
    hunt.add_argument("--tries", type=int, metavar="N", help="stop after so many")
    hunt.add_argument("--workers", type=int, metavar="N", help="processes that try (one for each processor)")
    hunt.add_argument("--go-on", action="store_true", help="continue after the first finding")
    hunt.add_argument(
        "--output", type=Path, default=Path("found"), metavar="DIR", help="the folder of findings (found/)"
    )
    hunt.add_argument(
        "--setting", action="append", default=[], metavar="NAME=VALUE", help="a setting of the transport in every try"
    )
    add_runs(hunt)
    hunt.add_argument("--format", choices=("text", "json"), default="text")
    hunt.add_argument("--plain", action="store_true", help="print lines instead of a live one")


def hunt_command(arguments: argparse.Namespace) -> int:
    from common.terminal.console import LastingConsole  # late, like all below: the help needs none of them
    from studies.hunting import AttemptPool, Hunt, HuntProgress
    from studies.hunting.found import repeat

    for name, value in (("--minutes", arguments.minutes), ("--tries", arguments.tries)):
        if value is not None and not 0 < value <= 1e9:
            raise ValueError(f"{name} must be a number above 0 and at most 1000000000 (got {value:.15g})")
    check_workers(arguments.workers)
    for name, folder in (("--output", arguments.output), ("--runs", arguments.runs)):
        check_folder(name, folder)
    seed = seed_of(arguments.seed)
    given = given_settings(arguments.setting, seed)
    minutes = MINUTES if arguments.minutes is None and arguments.tries is None else arguments.minutes
    want_compiled(arguments, min((minutes or 1e9) * 60, (arguments.tries or 1e9) * TRY_S))
    console = LastingConsole(quiet=arguments.format == "json")
    console.print(f"hunt of seed {seed}", highlight=False)
    workers = arguments.workers or len(os.sched_getaffinity(0))
    with HuntProgress(console, plain=arguments.plain) as progress, AttemptPool(workers, given) as pool:
        hunt = Hunt(seed, make=pool.outcomes, tell=progress.happened, given=given)
        progress.hunt = hunt
        broken_off: OSError | None = None
        try:
            hunt.run(arguments.tries, minutes * 60 if minutes is not None else None, arguments.output, arguments.go_on)
        except OSError as error:  # such as a full disk: earlier findings are told
            broken_off = error
        finally:
            console.print(progress.pace(), highlight=False)
    for catch in hunt.catches:
        if catch.path is None:
            hunt.keep(catch, arguments.output)  # there may be room again
    kept = [keep(catch.path, catch.shrunk.case.seed, arguments.runs) for catch in hunt.catches]
    if arguments.format == "json":
        write_out(json.dumps(document(hunt, kept), indent=1) + "\n")
    else:
        for catch, report in zip(hunt.catches, kept, strict=True):
            shrunk = catch.shrunk
            settings = [word for text in arguments.setting for word in ("--setting", text)]
            repeated = (
                repeat(catch.path, shrunk.case.seed)
                if catch.path is not None
                else f"not written: {printable(catch.lost)}; the same tries find it again:\n  "
                + command("hunt", "--seed", seed, "--tries", catch.number, "--go-on", *settings)
            )
            write_out(
                f"\nfound at try {catch.number}: {printable(catch.sentence)}\n"
                f"  drawn   {catch.drawn.describe()}\n"
                f"  shrunk  {shrunk.case.describe()}, in {counted(shrunk.runs, 'run')}"
                f"{'' if shrunk.finished else ' (not to the end)'}\n"
                f"  {repeated}\n" + path_line("  report:", report)
            )
    if broken_off is not None:
        raise broken_off
    return 1 if hunt.catches else 0


def check_folder(name: str, folder: Path) -> None:
    """ValueError for a folder in which a finding could not be kept, perhaps hours later."""
    place = next(path for path in (folder, *folder.parents) if path.exists())
    if not (place.is_dir() and os.access(place, os.W_OK)):
        raise ValueError(f"{name} must be a folder that can be written, or made (got {folder})")


def given_settings(words: list[str], seed: int) -> dict[str, Any]:
    """The settings that the user gave. Raises `ValueError` for those that no run takes."""
    from endpoint import plugins
    from running import rehearse
    from studies.hunting.draw import draw

    pairs = parse_pairs(words, "--setting", "selection=reps")
    given = plugins.absolute({name: json_or_text(value) for name, value in pairs.items()})
    if given:
        rehearse(draw(seed, given).spec())
    return given


def keep(path: Path | None, seed: int, runs: Path) -> str:
    """Run a found scenario as `./lab run` does; the path of its report, or why there is none."""
    if path is None:
        return "none, without the file"
    from cli.choosing import asked

    before, why = os.path.realpath(runs / "latest"), ""
    own = {"runs": runs, "plain": True, "format": "text", "view": False, "paused": False}
    arguments = asked(scenario=str(path), world="simulated", seed=seed, **own)
    # An exception may be what was found: the report shows it.
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        try:
            run_command(arguments)
        except Exception as error:
            why = error_line(error)
    report = Path(os.path.realpath(runs / "latest")) / "report.html"
    return str(report) if report.exists() and str(report.parent) != before else f"none: {why}"


def document(hunt: Hunt, kept: list[str]) -> dict[str, Any]:
    """The results of a hunt, as JSON."""
    return {
        "seed": hunt.seed,
        "tries": hunt.tries,
        "silent": hunt.silent,
        "found": [
            {
                "try": catch.number,
                "sentence": catch.sentence,
                "entries_drawn": len(catch.drawn.faults),
                "entries": len(catch.shrunk.case.faults),
                "shrinking_runs": catch.shrunk.runs,
                "file": None if catch.path is None else str(catch.path),
                **({"not_written": catch.lost} if catch.lost else {}),
                "seed": catch.shrunk.case.seed,
                "report": report,
            }
            for catch, report in zip(hunt.catches, kept, strict=True)
        ],
    }
