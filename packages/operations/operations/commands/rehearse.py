"""`mrclab rehearse`: a change as steps with times; how likely the job is to notice it, and at which step."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli import (
    LONG_S,
    add,
    add_json,
    add_runs,
    add_workers,
    check_workers,
    handing_over,
    need_root,
    want_compiled,
    workers_for,
)
from common.plain_file import followed
from common.terminal.standard_streams import write_error, write_out
from operations.rehearsal.change import Planned, read

if TYPE_CHECKING:
    from operations.rehearsal.rehearse import RehearsalResult, RehearsedRun

STATUS = {"safe": 0, "not safe": 1, "unknown": 3}
SEEDS, SEEDS_MAX = 30, 10_000
ORDERS_MAX = 100
LONG_SEEDS = 10


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rehearse = add(subparsers, "rehearse", rehearse_command, __file__)
    rehearse.set_defaults(check=lambda given: read(given.change))
    rehearse.add_argument("change", type=Path, metavar="CHANGE.toml")
    rehearse.add_argument(
        "--against", type=Path, metavar="OTHER.toml", help="the same in another order, on the same seeds"
    )
    rehearse.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"1 to N ({SEEDS})")
    rehearse.add_argument("--hunt", type=int, default=0, metavar="N", help="try N schedules with more flapping cables")
    rehearse.add_argument(
        "--orders", type=int, default=0, metavar="N", help="try up to N other orders of the steps on the same seeds"
    )
    rehearse.add_argument(
        "--world", choices=("emulated", "simulated"), default="simulated", help="real links or virtual time (simulated)"
    )
    add_workers(rehearse)
    add_runs(rehearse)
    add_json(rehearse)


def rehearse_command(arguments: argparse.Namespace) -> int:
    from cli import refuse_second_lab

    if not 1 <= arguments.seeds <= SEEDS_MAX:
        raise ValueError(f"--seeds must be between 1 and {SEEDS_MAX} (got {arguments.seeds})")
    if not 0 <= arguments.hunt <= SEEDS_MAX:
        raise ValueError(f"--hunt must be between 0 and {SEEDS_MAX} tries (got {arguments.hunt})")
    if not 0 <= arguments.orders <= ORDERS_MAX:
        raise ValueError(f"--orders must be between 0 and {ORDERS_MAX} (got {arguments.orders})")
    check_workers(arguments.workers)
    changes = [read(path) for path in (arguments.change, arguments.against) if path is not None]
    if arguments.world == "emulated":
        need_root("a rehearsal on real links builds network namespaces")
        refuse_second_lab()
    real = followed(arguments.runs) if arguments.world == "emulated" else None
    want_compiled(arguments, LONG_S if arguments.seeds + arguments.hunt >= LONG_SEEDS else 0)
    with handing_over(arguments.runs):
        return _rehearsed(arguments, changes, real)


def _rehearsed(arguments: argparse.Namespace, changes: Sequence[Planned], real: Path | None) -> int:
    """Make the runs, and say what they show."""
    from operations.rehearsal.orders import orders
    from operations.rehearsal.rehearse import done, rehearsed, spec
    from operations.rehearsal.report import document, finished, text
    from running.estimate import estimate
    from studies.farm import Inline, Pool

    seeds = range(1, arguments.seeds + 1)
    needed = max(estimate(spec(change, 1, change.flaps)).memory_bytes for change in changes)
    with Inline(done) if real else Pool(workers_for(arguments.workers, needed, write_error), done) as engine:

        def rehearse_change(change: Planned, tries: int) -> RehearsalResult:
            return rehearsed(change, seeds, tries, teller(change.name, arguments), real, engine)

        statements = [rehearse_change(change, arguments.hunt) for change in changes]
        tried = orders(changes[0], arguments.orders) if arguments.orders else []
        others = [rehearse_change(change, 0) for change in tried]
    page = finished(statements, arguments.runs, others)
    told: dict[str, Any] = document(statements, page, others)
    _write([json.dumps(told, indent=1)] if arguments.json else text(statements, page, others))
    return STATUS[statements[0].verdict]


def teller(name: str, arguments: argparse.Namespace) -> Any:
    """Says on standard error how far the runs are, those of the hunt by themselves."""
    from operations.rehearsal.rehearse import HUNT_SEEDS

    def tell(outcome: RehearsedRun) -> None:
        word = "noticed" if outcome.noticed else "not noticed"
        hunted = outcome.seed - HUNT_SEEDS + 1
        run = f"hunt {hunted} of {arguments.hunt}" if hunted > 0 else f"seed {outcome.seed} of {arguments.seeds}"
        write_error(f"{name}: {run}: {word}, {outcome.slowdown:.2f} times")

    return tell


def _write(lines: Sequence[str]) -> None:
    write_out("\n".join(lines) + "\n")
