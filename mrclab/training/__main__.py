"""`python -m mrclab.training`: one rank of a data-parallel training job, as an ordinary process in a host."""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

from common import files
from common.seeds import Purpose, derive

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the order of additions must not depend on threads

import numpy as np

from common.journal import Journal
from common.outcome import error_line
from common.terminal.standard_streams import write_error
from mrclab.connection import in_virtual_time
from mrclab.context import Context
from mrclab.errors import JobFailedError, MRCError
from mrclab.training.model import Model, make_data
from mrclab.training.ring import RingAllReduce

RATE_MAX = 1000
"""Far above any rate at which the model learns; infinity and rates that float32 lacks would make every weight NaN."""

COUNTS_MAX = {"steps": 10**9, "samples": 1 << 20, "batch": 1 << 14, "hidden": 1 << 14}
"""Of the options with these names, which must be at least 1. No array of a step or of the data is then above 1 GiB."""

MEET_S, LOOK_S_MAX = 60.0, 0.05
"""How long a rank waits for the files of others, and between two looks."""


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    ranks = options.ranks.split(",")
    clock = time.monotonic_ns
    journal = Journal(options.journal, ranks[options.rank], lambda: clock())
    if not in_virtual_time():
        journal.write_process("program")
    try:
        with Context(options.device, program=f"{options.name}-{options.rank}") as context:
            if context.stepped:
                clock = context.now_ns
                journal.write_process("program", pid=0, realtime_ns=0)  # the same in every run of a seed
            _train(context, journal, options, len(ranks))
    except KeyboardInterrupt:
        return 130
    except (JobFailedError, MRCError, OSError) as error:
        cause = error_line(error)
        write_error(f"{options.name}: {cause}")
        journal.write("error", message=f"{options.name}: {cause}", fatal=False)
        _journal_state(journal, options, "stop", outcome="failed", cause=cause)
        return 1
    finally:
        journal.close()
    return 0


def _train(context: Context, journal: Journal, options: argparse.Namespace, ranks: int) -> None:
    pictures, labels = make_data(options.seed, options.samples)
    model = Model(options.seed, options.hidden)
    ring = RingAllReduce(context, options.rank, ranks, len(model.weights) + 1)
    ring.connect(_meet(context, options, "info", ring.info()))
    _meet(context, options, "ready", {})  # no rank writes to one that is not connected
    _journal_state(journal, options, "start", rank=options.rank, ranks=options.ranks.split(","))
    # The same batches on every rank, of which each takes its share.
    draw = np.random.default_rng(int(derive(options.seed, Purpose.BATCHES)))
    for step in range(options.steps):
        started_ns = context.now_ns()
        batch = draw.integers(0, len(labels), options.batch * ranks)
        share = batch[options.rank * options.batch : (options.rank + 1) * options.batch]
        loss, gradient = model.gradient(pictures[share], labels[share])
        computed_ns = context.now_ns()
        total = ring.sum(np.append(gradient, np.float32(loss)))
        ended_ns = context.now_ns()
        model.step(total[:-1] / np.float32(ranks), options.rate)
        mean = float(total[-1]) / ranks
        finite: dict[str, Any] = {"loss": round(mean, 6)} if math.isfinite(mean) else {}  # NaN is no JSON
        journal.write(
            "step",
            t_ns=ended_ns,
            workload=options.name,
            rank=options.rank,
            step=step,
            compute_ns=computed_ns - started_ns,
            comm_ns=ended_ns - computed_ns,
            total_ns=ended_ns - started_ns,
            bytes=total.nbytes,
            **finite,
            weights=model.digest(),
        )
        if options.rank == 0 and not options.quiet:
            words = f"step {step:4}  loss {mean:.4f}  {(ended_ns - started_ns) / 1e6:7.1f} ms"
            print(f"{words}  weights {model.digest()}", flush=True)
    # Who leaves takes its queue pairs along, and others may still want an acknowledgement.
    _meet(context, options, "done", {})
    _journal_state(journal, options, "stop", outcome="finished", cause="", result={"rounds": options.steps})


def _meet(context: Context, options: argparse.Namespace, name: str, mine: Any) -> list[Any]:
    """The values that all ranks bring, in order of rank: each puts a file into a folder that all see, and waits for the
    others'. TimeoutError names those that have not come. Each meeting of a job has a name of its own.

    Time is the lab's, so that ranks can meet in virtual time as well.
    """
    options.meet.mkdir(parents=True, exist_ok=True)
    ranks = range(len(options.ranks.split(",")))
    places = [options.meet / f"{options.name}-{name}-{number}.json" for number in ranks]
    files.write_json(places[options.rank], mine)
    look_s = min(LOOK_S_MAX, context.query_device().base_rtt_ns / 1e9)
    deadline_ns = context.now_ns() + round(MEET_S * 1e9)
    while missing := [number for number, place in enumerate(places) if not place.exists()]:
        if context.now_ns() > deadline_ns:
            raise TimeoutError(f"ranks {missing} have not come within {MEET_S:g} s")
        context.sleep(look_s)
    return [json.loads(place.read_text()) for place in places]


def _journal_state(journal: Journal, options: argparse.Namespace, state: str, **fields: Any) -> None:
    journal.write("workload", name=options.name, workload="program", state=state, **fields)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mrclab.training", description=__doc__)
    add = parser.add_argument
    add("--rank", type=int, required=True, help="this process, from 0")
    add("--ranks", required=True, help="the hosts of all ranks, such as h0,h1,h2")
    add("--meet", type=Path, required=True, help="a folder that all ranks see, without files of an earlier job")
    add("--name", default="job", help="of the job, in the journal (job)")
    add("--journal", help="file to append journal lines to")
    add("--device", help="the NIC, by its host (the one of this network namespace)")
    add("--seed", type=int, default=1, help="of the data, the first weights and the batches (1)")
    add("--steps", type=int, default=40, help="of the job (40)")
    add("--samples", type=int, default=4096, help="pictures in the data set (4096)")
    add("--batch", type=int, default=32, help="pictures of each rank a step (32)")
    add("--hidden", type=int, default=512, help="width of the hidden layer (512)")
    add("--rate", type=float, default=0.05, help="length of a step (0.05)")
    add("--quiet", action="store_true", help="rank 0 prints no steps")
    options = parser.parse_args(arguments)
    count = len(options.ranks.split(","))
    if count < 2 or not 0 <= options.rank < count:
        parser.error(
            "--rank must be from 0 to one less than the number of --ranks, which must be at least 2"
            f" (got {options.rank} of {count})"
        )
    for name, most in COUNTS_MAX.items():
        if not 1 <= (given := getattr(options, name)) <= most:
            parser.error(f"--{name} must be between 1 and {most} (got {given})")
    if options.seed < 0:
        parser.error(f"--seed must be at least 0 (got {options.seed})")
    if not 0 < options.rate <= RATE_MAX:  # false for nan
        parser.error(f"--rate must be above 0 and at most {RATE_MAX} (got {options.rate:g})")
    return options


if __name__ == "__main__":
    sys.exit(main())
