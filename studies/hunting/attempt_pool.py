"""Tries made by several processes and given out in the order of their seeds, so that a seed still decides a hunt."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path
from typing import Any, Self

from common.scratch import Scratch
from running.machine.workers import Workers
from studies.hunting.attempt import SCRATCH, AttemptOutcome, Tried, attempt
from studies.hunting.draw import NOTHING, draw

AHEAD = 16  # tries for each worker that may be made before the hunt asks for them: shrinking keeps the hunt busy
DEATHS_MAX = 3  # of workers, one after the other, without a try that ends


class AttemptPool:
    """A context manager: `workers` processes, which end with it. `given` are the user's settings for every case."""

    def __init__(self, workers: int, given: Mapping[str, Any] = NOTHING) -> None:
        self._number = workers
        self._given = given

    def __enter__(self) -> Self:
        self._scratch = Scratch(SCRATCH)
        self._workers = Workers(self._number, self._scratch.path / "pool")
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.close()
        self._scratch.close()

    def outcomes(self, seeds: Iterator[int]) -> Iterator[Tried]:
        """Each seed's case and outcome, in order. RuntimeError names the seed of a try that ends its process."""
        numbers: deque[int] = deque()
        futures: deque[Future[AttemptOutcome]] = deque()  # of the same tries, as far as they have been handed out
        deaths = 0
        while True:
            numbers.extend(islice(seeds, self._number * AHEAD - len(numbers)))
            if not numbers:
                return
            try:
                futures.extend(self._submit(seed) for seed in islice(numbers, len(futures), None))
                outcome = futures[0].result()
            except BrokenProcessPool as error:
                deaths += 1
                if deaths >= DEATHS_MAX:
                    begun = ", ".join(str(seed) for seed in islice(numbers, self._number))
                    raise RuntimeError(
                        f"{deaths} workers died one after the other, in a case of seed {begun}"
                    ) from error
                self._workers.restart()
                futures.clear()
                continue
            deaths = 0
            futures.popleft()
            yield draw(numbers.popleft(), self._given), outcome

    def _submit(self, seed: int) -> Future[AttemptOutcome]:
        return self._workers.submit(try_seed, str(self._workers.scratch), seed, self._given)


def try_seed(scratch: str, seed: int, given: Mapping[str, Any]) -> AttemptOutcome:
    """In a worker: the case of a seed. It is drawn again by who wants it, for a timeline cannot be sent."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        return attempt(draw(seed, given), Path(folder))
