"""Tries: a case run in virtual time and judged, by one process or by several.

Several give tries out in the order of their seeds, so that a seed still decides a hunt.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from endpoint.nic import AlgorithmError
from judging import Run, evidence
from judging.judge import verdict_of
from running import RunSpec
from running.document import spec_of, written
from running.estimate import TooLargeError
from running.runner import make_run
from studies.farm.engine import Job
from studies.farm.engine import folder as scratch_folder
from studies.farm.pool import Pool
from studies.hunting.case import Case
from studies.hunting.draw import NOTHING, draw

AHEAD = 16  # tries for each worker that may be made before the hunt asks for them: shrinking keeps the hunt busy


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """`broken` are the sentences that did not hold, by check; empty when all held. `silent` says nothing was shown."""

    broken: dict[str, str]
    silent: bool = False

    @property
    def failed(self) -> bool:
        return bool(self.broken)

    def like(self, other: AttemptOutcome) -> bool:
        """Whether the same thing broke: the first check that another outcome names is broken here as well."""
        return bool(other.broken) and next(iter(other.broken)) in self.broken


Tried = tuple[Case, AttemptOutcome]


def attempt(case: Case, folder: Path | None = None) -> AttemptOutcome:
    """Run and judge a case; its journals are kept in `folder`, a folder of runs, when one is given."""
    if folder is not None:
        return tried(case.spec(), folder)
    with scratch_folder("") as own:
        return tried(case.spec(), Path(own))


def tried(spec: RunSpec, root: Path) -> AttemptOutcome:
    """The run, in a new directory below `root`."""
    try:
        path = make_run(spec, root)
    except TooLargeError:
        raise  # this machine's memory is no property of the case
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return AttemptOutcome({f"exception {type(error).__name__} in {last.name}": f"{where}: {error}"})
    run = Run.open(path)
    if raised := algorithm_error(run):
        return AttemptOutcome({"algorithm": raised})
    verdict = verdict_of(run, spec.checks())
    broken = {finding.check: finding.reason for finding in verdict.findings if finding.holds is False}
    return AttemptOutcome(broken, silent=verdict.holds is None)


def algorithm_error(run: Run) -> str:
    """The error of a class from the user's own file that ended the run, on one line; "" if there is none.

    The verdict of such a run is unknown, but for a hunt the error is a finding.
    """
    prefix = f"{AlgorithmError.__name__}: "
    messages = [evidence.error_text(line) for line in run.kind("error") if line.get("fatal")]
    return next((message.removeprefix(prefix) for message in messages if message.startswith(prefix)), "")


class AttemptPool(Pool[Job, tuple[int, AttemptOutcome]]):
    """A context manager: `workers` processes, which end with it. `given` are the user's settings for every case."""

    def __init__(self, workers: int, given: Mapping[str, Any] = NOTHING) -> None:
        super().__init__(workers, made_apart)
        self._given = given

    def outcomes(self, seeds: Iterator[int]) -> Iterator[Tried]:
        """Each seed's case and outcome, in order. RuntimeError names the seed of a try that ends its process."""
        cases: deque[Case] = deque()
        ready: dict[int, AttemptOutcome] = {}
        while True:
            for seed in islice(seeds, self.workers * AHEAD - len(cases)):
                cases.append(draw(seed, self._given))
                self.submit(Job(str(seed), written(cases[-1].spec()), f"a case of seed {seed}"))
            if not cases:
                return
            while cases[0].seed not in ready:
                seed, outcome = self.next()
                ready[seed] = outcome
            case = cases.popleft()
            yield case, ready.pop(case.seed)


def made_apart(scratch: str, job: Job) -> tuple[int, AttemptOutcome]:
    """In a worker: the try, with its seed."""
    with scratch_folder(scratch) as own:
        return job.seed, tried(spec_of(job.run), Path(own))
