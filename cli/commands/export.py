"""`mrclab export`: a plan for other gear and other programs, a run as a trace, workload files."""

from __future__ import annotations

import argparse
import gzip
import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from cli.command_table import add
from cli.options import add_runs
from cli.ownership import hand_over
from common import files
from common.terminal.printable import path_line
from running.directory import find
from schedules.training import MODELS, OPTIONS
from topo import PlanError
from topo.cli import chosen_plan
from topo.emulation import labname

PIECE_BYTES = 1 << 20
FORMS = ("json", "frr", "sonic", "perfetto", "goal", "cm")
SUFFIX = {"frr": ".conf", "sonic": ".json"}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    export = add(subparsers, "export", export_command, __file__)
    export.add_argument("form", choices=FORMS, metavar="|".join(FORMS))
    export.add_argument(
        "name", nargs="?", metavar="PLAN|RUN|KIND", help="a plan: the running lab's, or else lab; a run: latest"
    )
    export.add_argument("--switch", metavar="NAME", help="frr, sonic: only this switch, printed or written to a file")
    export.add_argument(
        "-o", "--output", type=Path, metavar="PLACE", help="a file (json, perfetto, goal, cm, --switch), or a folder"
    )
    add_runs(export)
    files_only = export.add_argument_group("goal and cm")
    files_only.add_argument("--ranks", type=int, metavar="N", help="ranks of a collective, or nodes of a pattern")
    files_only.add_argument("--size", type=int, metavar="BYTES", help="of a collective (1 MiB), or a connection (2 MB)")
    files_only.add_argument("--segment", type=int, metavar="BYTES", help="goal: of a message at most (65536)")
    files_only.add_argument("--rounds", type=int, metavar="N", help="goal: rounds or steps, one after the other (1)")
    files_only.add_argument("--compute", type=int, metavar="NS", help="goal: a calculation before each round (none)")
    files_only.add_argument("--seed", type=int, metavar="N", help="cm: of a permutation (1)")
    steps = export.add_argument_group("goal training")
    steps.add_argument("--model", metavar="NAME", help=f"one of {', '.join(MODELS)} (small)")
    steps.add_argument("--tensor", type=int, metavar="N", help="ranks that share a layer (2)")
    steps.add_argument("--pipeline", type=int, metavar="N", help="stages, each with a part of the layers (2)")
    steps.add_argument("--data", type=int, metavar="N", help="replicas, which average their gradients (2)")
    steps.add_argument("--layers", type=int, metavar="N", help="of the model (its own)")
    steps.add_argument("--tokens", type=int, metavar="N", help="of a microbatch (the model's sequence)")
    steps.add_argument("--microbatches", type=int, metavar="N", help="of a replica in a step (4)")
    steps.add_argument("--flops", type=int, metavar="N", help="per second and rank (400000000000000)")
    labname.add_option(export)


def export_command(arguments: argparse.Namespace) -> int:
    if arguments.form in ("goal", "cm"):
        return export_workload(arguments)
    options = ("ranks", "size", "segment", "rounds", "compute", "seed", *OPTIONS)
    given = [name for name in options if getattr(arguments, name) is not None]
    if given:
        raise ValueError(f"--{given[0]} must be left out with {arguments.form}: only goal and cm have it")
    if arguments.form == "perfetto":
        return export_run(arguments)
    if arguments.form == "json" and arguments.switch is not None:
        raise ValueError("--switch must be left out with json: the document holds all switches")
    plan = chosen_plan(arguments.name)
    from cli.exporting.document import document
    from common.terminal.progress import with_progress

    if arguments.form == "json":
        return print_or_write(arguments, document(plan))
    from cli.exporting.routers import frr, sonic

    made = {"frr": frr, "sonic": sonic}[arguments.form]
    if arguments.switch is not None:
        return print_or_write(arguments, [made(plan, plan.switch_node(arguments.switch))])
    if arguments.output is None:
        raise PlanError(f"export {arguments.form}: -o FOLDER for all {plan.switch_count} switches, or --switch NAME")
    if arguments.output.exists() and not arguments.output.is_dir():
        raise ValueError(f"-o must be a folder with {arguments.form} (got the file {arguments.output})")
    files.make_folder(arguments.output)
    for switch in with_progress(plan.switches(), plan.switch_count, "switches"):
        files.write(arguments.output / f"{switch}{SUFFIX[arguments.form]}", made(plan, switch))
    sys.stdout.write(path_line(f"wrote {plan.switch_count} files into", arguments.output))
    return 0


def export_workload(arguments: argparse.Namespace) -> int:
    """Write a workload file, or print it."""
    from cli.exporting.workload import goal, matrix

    if arguments.switch is not None:
        raise ValueError(f"--switch must be left out with {arguments.form}: a workload has no switches")
    lines = (goal if arguments.form == "goal" else matrix)(arguments)
    return print_or_write(arguments, (f"{line}\n" for line in lines))


def print_or_write(arguments: argparse.Namespace, parts: Iterable[str]) -> int:
    """Print a text, or write the text to the file of `--output`."""
    if arguments.output is None:
        sys.stdout.writelines(parts)
        return 0
    if arguments.output.is_dir():
        with_what = arguments.form if arguments.switch is None else "--switch"
        raise ValueError(f"--output must be a file with {with_what} (got the folder {arguments.output})")
    files.write_named(arguments.output, (part.encode() for part in parts))
    sys.stdout.write(path_line("wrote", arguments.output))
    return 0


def export_run(arguments: argparse.Namespace) -> int:
    """Write the trace of a run; compressed when the file's name ends with .gz."""
    from cli.damage import told_of
    from cli.exporting.chrome_trace import document
    from cli.exporting.packet_instants import packet_events
    from cli.exporting.perfetto import Converter
    from judging import journal_files

    if arguments.switch is not None:
        raise ValueError("--switch must be left out with perfetto: a trace holds all nodes")
    folder = find(arguments.runs, arguments.name or "latest")
    converter, packets = Converter(), folder / "packets.jsonl"

    def events() -> Iterator[str]:
        with told_of(folder):
            yield from converter.events(journal_files(folder))
        if packets.exists():
            yield from packet_events(packets, converter)

    output = arguments.output or folder / "trace.json"
    if output.is_dir():
        raise ValueError(f"--output must be a file with perfetto (got the folder {output})")
    text = document(events())
    content = compressed(text) if output.suffix == ".gz" else text
    if arguments.output is None:
        files.write(output, content)  # never through a link in a run folder, which others may have made
        hand_over(output)
    else:
        files.write_named(output, content)
    if converter.unreadable:
        sys.stderr.write(f"left out {converter.unreadable} journal lines that lack fields of their kind\n")
    sys.stdout.write(path_line("wrote", output, "; open it at https://ui.perfetto.dev"))
    return 0


def compressed(text: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces of a gzip file, without the time of its making, so that a run always gives the same bytes."""
    pieces = io.BytesIO()
    with gzip.GzipFile(fileobj=pieces, mode="wb", mtime=0, filename="") as file:
        for part in text:
            file.write(part)
            if pieces.tell() > PIECE_BYTES:
                yield pieces.getvalue()
                pieces.seek(0)
                pieces.truncate()
    yield pieces.getvalue()
