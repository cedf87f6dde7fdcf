"""Tries made by several processes and given out in the order of their seeds, so that a seed still decides a hunt."""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from running.document import spec_of, written
from studies.farm.engine import Job, folder
from studies.farm.pool import Pool
from studies.hunting.attempt import AttemptOutcome, Tried, tried
from studies.hunting.case import Case
from studies.hunting.draw import NOTHING, draw

AHEAD = 16  # tries for each worker that may be made before the hunt asks for them: shrinking keeps the hunt busy


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
    with folder(scratch) as own:
        return job.seed, tried(spec_of(job.run), Path(own))
