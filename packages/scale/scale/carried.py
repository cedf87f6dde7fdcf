"""Carrying a part: its exact run in virtual time, and the time of every step of every NIC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt

from common import files
from common.seeds import Purpose, derive
from judging import Run
from judging.measures import completions, counters
from running import Choices, RunSpec
from running.document import spec_of
from running.runner import make_run
from running.transport_choice import transport
from scale.job import Job
from scale.part import Part
from scenarios import library
from studies.farm import Job as FarmJob
from studies.farm import folder

PHASE = "run"
"""Of a workload file: from its start to its end."""
Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Carried:
    """One run of a part. `steps_ns` has a row per step and a column per host; nan for a step that did not end."""

    part: int
    steps_ns: Times
    packets: int
    resent: int


@dataclass(frozen=True, slots=True)
class PartJob(FarmJob):
    """A run of the part with this number, of so many steps and messages from a peer in each."""

    part: int = field(default=0, kw_only=True)
    steps: int = field(default=1, kw_only=True)
    rounds: int = field(default=1, kw_only=True)


def seeds(seed: int, title: str) -> Iterator[int]:
    """The seeds of a class's runs."""
    rng = Random(derive(seed, Purpose.PART, title))
    return (rng.getrandbits(31) for _ in count())


def spec(job: Job, part: Part, seed: int, transport_name: str, file: Path) -> RunSpec:
    """The run of a part, whose GOAL program is written to `file` if it is not there."""
    if not file.exists():
        files.write(file, "\n".join(job.goal(part.groups)) + "\n")
    choices = Choices(
        replace(transport(transport_name), payload="counted"),
        part.plan,
        seed,
        world="simulated",
        added_faults=part.faults,
        source=str(file),
    )
    return RunSpec(library.find(str(file)), choices)


def done(scratch: str, asked: PartJob) -> Carried:
    """Make the run, and read the times of its steps."""
    with folder(scratch) as place:
        run = Run.open(make_run(spec_of(asked.run), Path(place)))
        totals = counters.qp_totals(run)
        hosts = int(run.options["hosts"])
        steps = step_times(run, hosts, asked.steps, asked.rounds)
        return Carried(asked.part, steps, totals.get("data_packets", 0), totals.get("retransmits", 0))


def step_times(run: Run, hosts: int, steps: int, rounds: int) -> Times:
    """How long each host's steps took, ns: from its last receipt in the step before, or the start of all, to that in
    the step; nan from the first step on in which something is missing."""
    ended = np.full((steps, hosts), -np.inf)
    arrived = np.zeros((steps, hosts), dtype=np.int64)
    for line in run.kind("message"):
        if line.get("state") == "received":
            step, host = int(line["message"]) // rounds, int(str(line["node"])[1:])
            ended[step, host] = max(ended[step, host], int(line["end_ns"]))
            arrived[step, host] += 1
    begin_ns = min((message.start_ns for message in completions.completions(run)), default=0)
    ended[arrived < arrived.max(initial=1)] = np.nan
    return np.diff(ended, axis=0, prepend=float(begin_ns))
