"""Workload files for other programs: patterns as connection matrices, collectives as GOAL, the messages of a run."""

import argparse
from collections.abc import Iterable, Iterator

from cli.damage import told_of
from common.terminal.progress import with_progress
from judging import Run
from judging.measures.completions import completions
from running.directory import find
from schedules import collectives, patterns, training
from schedules.patterns import MatrixConnection

TRAINING = "training"


def goal(arguments: argparse.Namespace) -> Iterator[str]:
    """The lines of a collective's GOAL program. ValueError names the choices."""
    if arguments.name == TRAINING:
        return step(arguments)
    refuse(arguments, training.OPTIONS, f"only goal {TRAINING} has it")
    write = collectives.KINDS.get(arguments.name or "")
    if write is None:
        kinds = ", ".join((*collectives.KINDS, TRAINING))
        raise ValueError(f"export goal: the program must be one of {kinds} (got {arguments.name!r})")
    given = {
        "ranks": needed_ranks(arguments),
        "size": arguments.size,
        "segment": arguments.segment,
        "rounds": arguments.rounds,
        "compute_ns": arguments.compute,
    }
    what = collectives.CollectiveSchedule(**{name: value for name, value in given.items() if value is not None})
    what.check(str(arguments.name))
    return write(what)


def step(arguments: argparse.Namespace) -> Iterator[str]:
    """The lines of a training step's program."""
    refuse(arguments, ("ranks", "size", "segment", "compute"), f"{TRAINING} has --tensor, --pipeline and --data")
    given = {name: getattr(arguments, name) for name in (*training.OPTIONS, "rounds")}
    what = training.TrainingSchedule(**{name: value for name, value in given.items() if value is not None})
    what.check()
    return training.program(what, with_progress(range(what.ranks), what.ranks, "ranks"))


def refuse(arguments: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """ValueError when one of these options is given."""
    for name in names:
        if getattr(arguments, name) is not None:
            raise ValueError(f"export {arguments.form}: --{name} must be left out: {why}")


def matrix(arguments: argparse.Namespace) -> Iterator[str]:
    """The lines of a matrix: a pattern's connections, or a run's messages when they began."""
    refuse(arguments, ("segment", "rounds", "compute"), "a matrix has connections and no rounds")
    refuse(arguments, training.OPTIONS, f"only goal {TRAINING} has it")
    make = patterns.KINDS.get(arguments.name or "")
    if make is None:
        return of_run(arguments)
    given = {"nodes": needed_ranks(arguments), "size": arguments.size, "seed": arguments.seed}
    what = patterns.Pattern(**{name: value for name, value in given.items() if value is not None})
    what.check()
    return patterns.lines(what.nodes, make(what))


def of_run(arguments: argparse.Namespace) -> Iterator[str]:
    """The messages of a run of a workload file, as connections that begin when the messages did, without triggers."""
    kinds = f"a run has its own; patterns are {', '.join(patterns.KINDS)} (got {arguments.name!r})"
    refuse(arguments, ("ranks", "size", "seed"), kinds)
    try:
        path = find(arguments.runs, arguments.name or "latest")
    except FileNotFoundError as error:
        choices = ", ".join(patterns.KINDS)
        raise ValueError(f"export cm: the name must be a pattern ({choices}) or a run: {error}") from None
    with told_of(path):
        run = Run.open(path)
        messages = completions(run)
        if not messages:
            raise ValueError(f"export cm: {path} must be a run of a workload file, and has no messages")
        scale = int(run.options["hardware_rate_bps"]) / int(run.options["port_rate_bps"])
        connections = [
            MatrixConnection(
                int(message.source[1:]),
                int(message.target[1:]),
                round((message.start_ns - run.start_ns) / scale),
                max(1, message.bytes),
            )
            for message in messages
        ]
        return patterns.lines(int(run.options["hosts"]), connections)


def needed_ranks(arguments: argparse.Namespace) -> int:
    """`--ranks`, which has no default."""
    if arguments.ranks is None:
        raise ValueError(f"export {arguments.form} {arguments.name}: --ranks must be given, such as --ranks 16")
    return int(arguments.ranks)
