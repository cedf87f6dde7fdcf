"""Workload files for other programs: patterns as connection matrices, collectives as GOAL, the messages of a run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from judging.measures.completions import completions
from judging.run import Run
from running.directory import find
from schedules import collectives, patterns
from schedules.patterns import Connection


def goal(arguments: argparse.Namespace) -> Iterator[str]:
    """The lines of a collective's GOAL program. ValueError names the choices."""
    write = collectives.KINDS.get(arguments.name or "")
    if write is None:
        raise ValueError(
            f"export goal: the collective must be one of {', '.join(collectives.KINDS)} (got {arguments.name!r})"
        )
    given = {
        "ranks": needed_ranks(arguments),
        "size": arguments.size,
        "segment": arguments.segment,
        "rounds": arguments.rounds,
        "compute_ns": arguments.compute,
    }
    what = collectives.Collective(**{name: value for name, value in given.items() if value is not None})
    what.check()
    return write(what)


def matrix(arguments: argparse.Namespace) -> Iterator[str]:
    """The lines of a matrix: a pattern's connections, or a run's messages when they began."""
    for name in ("segment", "rounds", "compute"):
        if getattr(arguments, name) is not None:
            raise ValueError(f"export cm: --{name} must be left out: a matrix has connections and no rounds")
    make = patterns.KINDS.get(arguments.name or "")
    if make is None:
        return of_run(arguments)
    given = {"nodes": needed_ranks(arguments), "size": arguments.size, "seed": arguments.seed}
    what = patterns.Pattern(**{name: value for name, value in given.items() if value is not None})
    what.check()
    return patterns.lines(what.nodes, make(what))


def of_run(arguments: argparse.Namespace) -> Iterator[str]:
    """The messages of a run of a workload file, as connections that begin when the messages did, without triggers."""
    for name in ("ranks", "size", "seed"):
        if getattr(arguments, name) is not None:
            kinds = ", ".join(patterns.KINDS)
            raise ValueError(
                f"export cm: --{name} must be left out for a run; patterns are {kinds} (got {arguments.name!r})"
            )
    run = Run.open(find(arguments.runs, arguments.name or "latest"))
    messages = completions(run)
    if not messages:
        raise ValueError(f"export cm: {run.directory} must be a run of a workload file, and has no messages")
    scale = int(run.options["hardware_rate_bps"]) / int(run.options["port_rate_bps"])
    connections = [
        Connection(
            int(one.source[1:]), int(one.target[1:]), round((one.start_ns - run.start_ns) / scale), max(1, one.bytes)
        )
        for one in messages
    ]
    return patterns.lines(int(run.options["hosts"]), connections)


def needed_ranks(arguments: argparse.Namespace) -> int:
    """`--ranks`, which has no default."""
    if arguments.ranks is None:
        raise ValueError(f"export {arguments.form} {arguments.name}: --ranks must be given, such as --ranks 16")
    return int(arguments.ranks)
