"""`mrclab sweep`: a scenario on many seeds, and what that makes known."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli import command_table
from cli.commands.run import refuse_second_lab
from cli.compiled_form import want_compiled
from cli.options import SCENARIO_NAMES, add_plain, add_runs, check_workers, workers_for
from cli.ownership import handing_over
from cli.root import need_root
from common.outcome import error_line
from common.terminal.printable import path_line, printable, printable_text
from common.terminal.standard_streams import write_error, write_out
from running.options import DEFAULTS, OPTIONS
from running.transport_choice import TRANSPORTS
from studies.farm import ClusterAddress

if TYPE_CHECKING:
    from common.terminal.console import LastingConsole
    from studies.farm import Engine
    from studies.sweeping import Row, Subject, Sweep, Task, Variant, VariantStatement

SEEDS_MAX = 1_000_000


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sweep = command_table.add(subparsers, "sweep", sweep_command, __file__)
    add = sweep.add_argument
    add("scenarios", nargs="+", metavar="SCENARIO", help=SCENARIO_NAMES)
    add("--seeds", default="20", metavar="N|A-B", help="1 to N, or A to B (20)")
    OPTIONS["transport"].add_several(sweep, help=f"of {', '.join(TRANSPORTS)} (mrc)")
    for name in ("plan", "set", "setting"):
        OPTIONS[name].add_several(sweep)
    add("--until", metavar="SHARE", help="stop when it is known, or refuted, that so many seeds are true (99%%)")
    for name in ("short", "time", "rate", "reconvergence"):
        OPTIONS[name].add(sweep)
    OPTIONS["world"].add(sweep, default="simulated", help="virtual time, or Mininet one by one (simulated)")
    OPTIONS["payload"].add(sweep, default=None, help="counted: frames leave payload out (default in virtual time)")
    add_engine_options(sweep)
    add("--keep-worst", type=int, default=0, metavar="N", help="make the N worst runs of each variant again, whole")
    add_runs(sweep, "runs and rows are")
    add("--format", choices=("text", "json"), default="text", help="json: the statements, and nothing else")
    add_plain(sweep, "live table")


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """The options that `make_engine` reads: where the runs of a sweep or a contest are made."""
    add = parser.add_argument
    add("--workers", type=int, metavar="N", help="runs made at once (one per processor, fewer when memory is short)")
    add("--cluster", type=cluster_address, metavar="ADDRESS", help="a Dask scheduler, such as tls://host:8786")
    add("--insecure", action="store_true", help="allow a scheduler without TLS on another machine")


def check_engine_options(arguments: argparse.Namespace) -> None:
    """ValueError for options of `add_engine_options` that cannot be."""
    check_workers(arguments.workers)
    if arguments.insecure and not arguments.cluster:
        raise ValueError("--insecure: only with --cluster")
    if arguments.cluster:
        arguments.cluster.protect(insecure=arguments.insecure)


def cluster_address(text: str) -> ClusterAddress:
    """An argument of --cluster. ArgumentTypeError for one that is no address."""
    try:
        return ClusterAddress.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parse_seeds(text: str) -> list[int]:
    """N or A-B. ValueError with examples."""
    match = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", text, re.ASCII)
    if match is None:
        raise ValueError(f"--seeds must be a number such as 300, or a range such as 301-600 (got {text!r})")
    first, last = match.groups()
    low, high = (1, int(first)) if last is None else (int(first), int(last))
    if not 0 <= low <= high or high - low >= SEEDS_MAX:
        raise ValueError(f"--seeds must be 1 to {SEEDS_MAX} seeds, the first not above the last (got {text})")
    return list(range(low, high + 1))


def asked(arguments: argparse.Namespace) -> list[Variant]:
    """The variants. ValueError says which word is wrong."""
    from studies.sweeping import variants

    counted = "counted" if arguments.world == "simulated" else "real"
    others: dict[str, Any] = {"world": arguments.world, "time": arguments.time}
    others |= {"short": True} if arguments.short else {}
    others["payload"] = arguments.payload or counted
    others |= {"rate": arguments.rate} if arguments.rate is not None else {}
    plans = [name for name in (arguments.plan or "").split(",") if name]
    chosen = variants(
        arguments.scenarios, arguments.transport.split(","), plans, arguments.set, arguments.setting, others
    )
    if arguments.reconvergence == DEFAULTS["reconvergence"]:
        return chosen
    roce = {name for name, transport in TRANSPORTS.items() if transport.single_plane}
    own = ("reconvergence", arguments.reconvergence)
    return [replace(v, others=(*v.others, own)) if v.transport in roce else v for v in chosen]


def chosen_variants(arguments: argparse.Namespace, seed: int) -> list[Variant]:
    """The variants; on real links with the rate that this machine can keep, the same for all of a variant's runs."""
    asked_variants = asked(arguments)
    if arguments.world == "simulated" or arguments.rate is not None:
        return asked_variants
    from cli.choosing import chosen

    rates = [chosen({**variant.asked, "seed": seed}).choices.calibration["port_rate_bps"] for variant in asked_variants]
    return [
        replace(variant, others=(*variant.others, ("rate", rate_bps / 1e6)))
        for variant, rate_bps in zip(asked_variants, rates, strict=True)
    ]


def sweep_command(arguments: argparse.Namespace) -> int:
    from cli.choosing import chosen  # late, like all below: the help needs none of them
    from common.terminal.console import LastingConsole
    from studies.sweeping import Until, document, parse_share, report, statements, text
    from studies.sweeping.subject import subject

    seeds = parse_seeds(arguments.seeds)
    until = parse_share(arguments.until) if arguments.until is not None else None
    if until is not None:
        Until(until)  # raises ValueError for a share that cannot be asked about
    if arguments.keep_worst < 0:
        raise ValueError(f"--keep-worst must be 0 or more runs (got {arguments.keep_worst})")
    check_engine_options(arguments)
    if arguments.cluster and arguments.world == "emulated":
        raise ValueError("--cluster: only with --world simulated: a real lab needs a machine to itself")
    if arguments.world == "emulated":
        need_root("a sweep on real links builds network namespaces")
        refuse_second_lab()
    told = arguments.format == "text"
    console = LastingConsole(quiet=not told)
    subjects = [subject(variant, chosen, seeds[0]) for variant in chosen_variants(arguments, seeds[0])]
    place = arguments.runs / "sweeps" / name_of([subject.variant for subject in subjects])
    scenarios = {arguments.runs / str(subject.options["scenario"]) for subject in subjects}
    made = partial(swept, arguments, subjects, seeds, [place, *scenarios], console, until=until)
    with made(lambda sweep: report.write(place, statements(sweep))) as sweep:
        keep_worst(arguments, sweep, console)
        stated = statements(sweep)
        page = report.write(place, stated)
    if told:
        write_out("\n" + printable_text(text.summary(stated)))
        write_out(path_line("\npage:", page) + path_line("rows:", place / "rows.csv"))
    else:
        write_out(json.dumps(document(stated), indent=1) + "\n")
    return status(stated)


@contextmanager
def swept(
    arguments: argparse.Namespace,
    subjects: Sequence[Subject],
    seeds: Sequence[int],
    places: Sequence[Path],
    console: LastingConsole,
    write: Callable[[Sweep], Path],
    until: float | None = None,
) -> Iterator[Sweep]:
    """The sweep, all of whose runs are there. `write` writes its page, also if it is broken off. The command writes to
    `places`."""
    from studies.sweeping import RowStore, Sweep, SweepProgress

    folder = arguments.runs / "sweeps"
    with handing_over(arguments.runs, folder, *places), RowStore(folder) as store:
        sweep = Sweep(subjects, seeds, store, until)
        if arguments.world == "simulated" and not (sweep.decided or arguments.cluster):
            want_compiled(arguments, len(seeds) * sum(subject.seconds for subject in subjects))
        with page_if_broken_off(lambda: write(sweep)):
            if not sweep.decided:
                with (
                    make_engine(arguments, folder, subjects, console) as engine,
                    SweepProgress(console, sweep, engine, plain=arguments.plain) as progress,
                ):
                    sweep.run(engine, progress.tell)
                console.print(progress.pace(), highlight=False)
            yield sweep


@contextmanager
def page_if_broken_off(write: Callable[[], Path]) -> Iterator[None]:
    """Writes the page and says where it is if what is inside is broken off: the results so far are worth reading after
    a Ctrl-C or on a full disk."""
    try:
        yield
    except BaseException:
        try:
            said = f"the page has the results so far: {printable(str(write()))}"
        except OSError as error:
            said = f"rows are kept, and the page cannot be written: {error_line(error)}"
        write_error(f"mrclab: {said}")
        raise


def make_engine(
    arguments: argparse.Namespace, folder: Path, subjects: Sequence[Subject], console: LastingConsole
) -> Engine[Task, Row]:
    """The engine that makes the runs: on this machine no more at once than its memory holds."""
    from studies.farm import Inline, Pool
    from studies.sweeping.perform import perform

    if arguments.world == "emulated":
        return Inline(perform)
    if arguments.cluster:
        from studies.farm import Cluster

        return Cluster(arguments.cluster, perform)
    workers = workers_for(arguments.workers, max(subject.memory_bytes for subject in subjects), console.tell)
    return Pool(workers, perform, folder)


def keep_worst(arguments: argparse.Namespace, sweep: Sweep, console: LastingConsole) -> None:
    """Make the worst runs again, each with journals and a report."""
    from studies.sweeping import statements
    from studies.sweeping.perform import perform
    from studies.sweeping.subject import with_journals

    for statement, subject in zip(statements(sweep), sweep.subjects, strict=True):
        for row in statement.worst()[: arguments.keep_worst]:
            words = f"making again, to be kept: {statement.variant.command(row.seed)}"
            console.print(words, highlight=False, soft_wrap=True, markup=False)
            if why := perform("", with_journals(subject.task(row.seed), str(arguments.runs))).error:
                console.tell(f"could not be kept, broken off: {why}")


def name_of(variants: Sequence[Variant], *others: str) -> str:
    """The folder of a sweep's page: the same for the same variants, so that more seeds replace the page.

    `others` are further words that tell two pages apart.
    """
    from running.identity import digest

    words = [*(shlex.join(variant.arguments) for variant in variants), *others]
    return f"{Path(variants[0].scenario).stem}-{digest(chr(10).join(words).encode())[:8]}"


def status(statements: Sequence[VariantStatement]) -> int:
    """0, 1 or 3, as the help says."""
    tests = [statement.test for statement in statements]
    if any(test is not None for test in tests):
        answers = [test.known if test is not None else None for test in tests]
    else:
        answers = [
            False if each.verdicts["false"].count else True if each.verdicts["true"].count == len(each.rows) else None
            for each in statements
        ]
    if any(answer is False for answer in answers):
        return 1
    return 0 if answers and all(answers) else 3
