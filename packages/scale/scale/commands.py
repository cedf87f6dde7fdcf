"""`mrclab scale`: a job of more NICs than fit into a simulation, from exact runs of its parts."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from cli import LONG_S, VIRTUAL, CommandEntry, add, add_json, add_workers, check_workers, want_compiled, workers_for
from common.seeds import check_seed
from common.terminal.standard_streams import write_error, write_out
from scale.job import GROUP_MAX, KINDS, RING, Job

if TYPE_CHECKING:
    from scale.part import Cut

SCALE = CommandEntry(
    "a job of up to 131,072 NICs, from exact runs of parts, with measured error bars", "scale.commands:register",
    needs=VIRTUAL,
)  # fmt: skip
SAMPLES, SAMPLES_MAX = 4, 1000


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    scale = add(subparsers, "scale", scale_command, __file__)
    scale.set_defaults(check=check)
    scale.add_argument("job", choices=KINDS, help="; ".join(f"{name}: {text}" for name, text in KINDS.items()))
    scale.add_argument("--plan", default="paper", metavar="PLAN", help="a plan of two even tiers (paper)")
    scale.add_argument("--group", type=int, default=8, metavar="N", help=f"NICs of a group, 2 to {GROUP_MAX} (8)")
    scale.add_argument("--bytes", type=int, default=65536, metavar="N", help="a message; all-reduce: a buffer (65536)")
    scale.add_argument("--steps", type=int, default=4, metavar="N", help="steps of the job (4)")
    scale.add_argument("--rounds", type=int, default=8, metavar="N", help="messages per step of a ring (8)")
    scale.add_argument("--fault", action="append", default=[], metavar="WORDS", help="as of run; @ is from the start")
    scale.add_argument("--transport", default="mrc", metavar="NAME", help="as of run (mrc)")
    scale.add_argument("--seed", type=int, default=1, help="another seed draws other random choices (1)")
    scale.add_argument("--samples", type=int, default=SAMPLES, metavar="N", help="runs of parts that are alike (4)")
    scale.add_argument("--thin", type=int, metavar="N", help="divide blocks by N (so that parts have 256 NICs or so)")
    scale.add_argument("--exact", action="store_true", help="all of the job in one run, as far as memory goes")
    scale.add_argument("--without-bar", action="store_true", help="answer where no error bar was measured")
    add_workers(scale)
    add_json(scale)


def check(given: argparse.Namespace) -> None:
    """ValueError for a job that cannot be."""
    Job(given.job, given.bytes, given.steps, 0 if given.job == RING else given.group, given.rounds)
    if not 1 <= given.samples <= SAMPLES_MAX:
        raise ValueError(f"--samples must be between 1 and {SAMPLES_MAX} (got {given.samples})")
    check_workers(given.workers)
    check_seed(given.seed)


def scale_command(given: argparse.Namespace) -> int:
    from running.transport_choice import transport
    from scale import report
    from scale.answer import answered, memory_bytes
    from scale.bar import bar_for
    from scale.carried import done
    from studies.farm import Pool

    cut, seed = cut_of(given), given.seed
    transport(given.transport)
    bar = None if given.exact or given.without_bar else bar_for(cut, given.transport)
    want_compiled(given, LONG_S)
    workers = workers_for(given.workers, memory_bytes(cut, given.transport, given.exact), write_error)
    with Pool(workers, done) as engine:
        answer = answered(
            cut, seed, engine, transport=given.transport, samples=given.samples, whole=given.exact, tell=write_error
        )
    if given.json:
        told: dict[str, Any] = report.document(cut, seed, given.transport, answer, bar)
        write_out(json.dumps(told, indent=1) + "\n")
    else:
        write_out("\n".join(report.text(cut, seed, given.transport, answer, bar, given.exact)) + "\n")
    return 0


def cut_of(given: argparse.Namespace) -> Cut:
    """The job on its plan. ValueError says what is wrong with them."""
    from running import fault_words
    from scale.carried import PHASE
    from scale.part import Cut, thinned
    from scenarios import Phase
    from topo import load_plan

    plan = load_plan(given.plan)
    job = Job(given.job, given.bytes, given.steps, 0 if given.job == RING else given.group, given.rounds)
    faults = tuple(fault_words.parse(text, [Phase(PHASE, 1.0)]) for text in given.fault)
    thin = 1 if given.job == RING or given.exact else given.thin or thinned(plan)
    return Cut(plan, job, faults, thin)
