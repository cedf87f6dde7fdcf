"""The hunt: tries until time or tries are over; a failing case is shrunk and written down."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from common.outcome import told
from common.seeds import Purpose, derive
from studies.hunting import found
from studies.hunting.attempt import AttemptOutcome, Tried, attempt
from studies.hunting.case import Case
from studies.hunting.draw import draw
from studies.hunting.shrink import Shrinker, Shrunk, Try


@dataclass(slots=True)
class Catch:
    """One thing that a hunt found: as it was drawn, and as small as it became."""

    number: int  # of the try, from 1
    seconds: float  # since the hunt began, when it was first seen
    drawn: Case
    shrunk: Shrunk
    name: str  # of its file
    path: Path | None = None
    lost: str = ""
    """Why the finding could not be written down."""

    @property
    def sentence(self) -> str:
        """What broke, and how."""
        check, reason = next(iter(self.shrunk.outcome.broken.items()))
        return f"{check}: {reason}"


@dataclass(slots=True)
class Hunt:
    """`seed` decides every try. `attempt` runs a case; `tell` hears of each try and of each step of shrinking.

    `make` turns the seeds of tries into their cases and outcomes, in the same order; without it this process does.
    """

    seed: int
    attempt: Try = attempt
    make: Callable[[Iterator[int]], Iterator[Tried]] | None = None
    tell: Callable[[str], None] = lambda line: None
    clock: Callable[[], float] = time.monotonic
    given: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the transport that the user gave, in every case."""
    tries: int = 0
    silent: int = 0
    catches: list[Catch] = field(default_factory=list)
    _began_s: float = 0.0

    def seeds(self) -> Iterator[int]:
        """The seeds of all tries, in their order."""
        chance = Random(derive(self.seed, Purpose.HUNT))
        while True:
            yield chance.getrandbits(48)

    def run(
        self, tries: int | None = None, seconds: float | None = None, output: Path | None = None, go_on: bool = False
    ) -> None:
        """Until something is found (or, with `go_on`, on and on), or tries or seconds are over."""
        self._began_s = self.clock()
        seeds = islice(self.seeds(), tries)
        made = self.make(seeds) if self.make is not None else self._inline(seeds)
        while seconds is None or self.elapsed_s < seconds:
            if (done := next(made, None)) is None:
                return
            case, outcome = done
            self.tries += 1
            self.silent += outcome.silent
            self.tell(f"try {self.tries}")
            if outcome.failed:
                self._caught(case, outcome, output)
                if not go_on:
                    return

    def _inline(self, seeds: Iterator[int]) -> Iterator[Tried]:
        for seed in seeds:
            case = draw(seed, self.given)
            yield case, self.attempt(case)

    @property
    def elapsed_s(self) -> float:
        """Since the hunt began."""
        return self.clock() - self._began_s

    def _caught(self, case: Case, outcome: AttemptOutcome, output: Path | None) -> None:
        seen_s = self.elapsed_s
        check, reason = next(iter(outcome.broken.items()))
        self.tell(f"try {self.tries} broke: {check}: {reason}; {case.words()}; shrinking")
        shrinker = Shrinker(self.attempt, lambda smaller, runs: self.tell(f"shrinking, run {runs}: {smaller.words()}"))
        slug = re.sub(r"[^a-z0-9]+", "_", check.lower()).strip("_")
        name = f"{slug}_{self.seed}_{self.tries}"
        catch = Catch(self.tries, seen_s, case, shrinker.shrink(case, outcome), name)
        self.catches.append(catch)
        if output is not None:
            self.keep(catch, output)

    def keep(self, catch: Catch, output: Path) -> None:
        """Write a finding down. A full disk costs the file and not the finding: a later call writes it."""
        small = catch.shrunk
        try:
            catch.path = found.write(output, catch.name, small.case, small.outcome, catch.number, small.runs)
            catch.lost = ""
        except OSError as error:
            catch.lost = told(error)
