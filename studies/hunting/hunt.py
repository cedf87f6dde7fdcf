"""The hunt: tries until time or tries are over; a failing case is shrunk and written down."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count, islice, pairwise
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from common.outcome import error_line
from common.seeds import Purpose, derive
from scenarios import TimedFault, Workload
from studies.hunting import found, irregular
from studies.hunting.attempt import AttemptOutcome, Tried, attempt
from studies.hunting.case import PLAN_KEYS, Case
from studies.hunting.draw import draw
from studies.hunting.survivable import paths_known, survivable
from topo import PlanError
from topo.topologies import LeafSpine

# Making a failing case small: nothing that can be left out is left in. Entries go first, by delta debugging (A. Zeller
# and R. Hildebrandt, IEEE Transactions on Software Engineering 28, 2002); then everything else, one change at a time,
# until no change leaves the same check broken. Nothing is drawn: equal cases shrink to equal cases, in the same number
# of runs.
T = TypeVar("T")
Try = Callable[[Case], AttemptOutcome]

RUNS_MAX = 400
SHORTEST_S = 0.01
SIZE_KEYS = ("size", "depth", "qps", "rate_bps", "immediate_every")


@dataclass(slots=True)
class Shrunk:
    """The smallest case that was found, what it breaks, and how many runs that took."""

    case: Case
    outcome: AttemptOutcome
    runs: int
    finished: bool  # False: RUNS_MAX or a full disk came first, and something smaller may break as well


class Shrinker:
    """`attempt` runs a case. `tell` hears of every smaller case that still breaks. Only `possible` cases are run."""

    def __init__(
        self,
        attempt: Try,
        tell: Callable[[Case, int], None] = lambda case, runs: None,
        possible: Callable[[Case], bool] | None = None,
    ) -> None:
        self._attempt = attempt
        self._tell = tell
        self._possible = possible or survived_by_any
        self.runs = 0

    def shrink(self, case: Case, outcome: AttemptOutcome) -> Shrunk:
        """From a failing case to the smallest like it. The case itself is not run again."""
        self._case, self._outcome = case, outcome
        smaller = True
        with suppress(OSError):  # such as a full disk: what was found stays found
            while smaller and self.runs < RUNS_MAX:
                before = self._case
                self._entries()
                for candidates in (rounds, workloads, settings, fabrics, lengths, entries, sizes):
                    self._greedily(candidates)
                smaller = self._case != before
        return Shrunk(self._case, self._outcome, self.runs, not smaller)

    def _breaks(self, candidate: Case) -> bool:
        """Whether the same check breaks; if it does, go on from there."""
        if self.runs >= RUNS_MAX or not self._possible(candidate):
            return False
        self.runs += 1
        outcome = self._attempt(candidate)
        if not self._outcome.like(outcome) and not outcome.like(self._outcome):
            return False
        self._case, self._outcome = candidate, outcome
        self._tell(candidate, self.runs)
        return True

    def _entries(self) -> None:
        """Delta debugging over the timeline: drop halves, then quarters, then single entries."""
        pieces = 2
        while self._case.faults and self.runs < RUNS_MAX:
            entries = self._case.faults
            pieces = min(pieces, len(entries))
            cuts = [round(index * len(entries) / pieces) for index in range(pieces + 1)]
            rests = [entries[:low] + entries[high:] for low, high in pairwise(cuts)]
            if any(self._breaks(replace(self._case, faults=rest)) for rest in rests):
                pieces = max(2, pieces - 1)
            elif pieces == len(entries):
                return
            else:
                pieces = min(len(entries), 2 * pieces)

    def _greedily(self, candidates: Callable[[Case], Iterator[Case]]) -> None:
        """The first candidate that breaks, again and again, until none does."""
        while any(self._breaks(candidate) for candidate in candidates(self._case)):
            pass


def survived_by_any(case: Case) -> bool:
    """Whether the plan and its hosts are there, and the timeline ends in its phase and must be survived."""
    try:
        plan = case.plan
        for workload in case.workloads:
            for name in workload.ranks or ():
                plan.host(name)
    except (PlanError, ValueError):
        return False
    inside = all(entry.at_s + (entry.for_s or 0.0) <= case.faults_s for entry in case.faults)
    return inside and bool(case.workloads) and survivable(plan, case.faults, paths_known(plan, case.transport_settings))


def rounds(case: Case) -> Iterator[Case]:
    """Fewer repetitions."""
    if case.repeats > 1 or case.rounds > 1:
        yield replace(case, rounds=1, repeats=1)


def workloads(case: Case) -> Iterator[Case]:
    """Fewer of them, between fewer hosts with lower numbers, of a simpler kind."""
    yield from (replace(case, workloads=rest) for rest in without_one(case.workloads) if rest)
    for index, workload in enumerate(case.workloads):
        ranks = workload.ranks or ()
        simpler = [replace(workload, ranks=rest) for rest in without_one(ranks) if len(rest) >= 2]
        lowest = next(name for name in (f"h{index}" for index in count()) if name not in ranks)
        for place, name in enumerate(ranks):
            if int(name[1:]) > int(lowest[1:]):
                simpler.append(replace(workload, ranks=(*ranks[:place], lowest, *ranks[place + 1 :])))
        if workload.kind != "write_bw" and len(ranks) == 2:
            simpler.append(replace(workload, kind="write_bw", options=plain(workload.options)))
        for other in simpler:
            yield replace(case, workloads=(*case.workloads[:index], other, *case.workloads[index + 1 :]))


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a simple stream in place of another workload's."""
    return {"size": 4096, "depth": 2, "qps": options.get("qps", 1), "rate_bps": 500_000, "messages": 0}


def settings(case: Case) -> Iterator[Case]:
    """Fewer changed settings and keys of the plan."""
    for name in case.settings:
        yield replace(case, settings={other: value for other, value in case.settings.items() if other != name})
    for section in case.plan_keys:
        rest = {other: keys for other, keys in case.plan_keys.items() if other != section}
        yield replace(case, plan_keys=rest)


def fabrics(case: Case) -> Iterator[Case]:
    """Two even tiers in place of another topology; one plane, leaf, spine or host fewer, or two on other topologies."""
    if case.parts:
        for numbers, parts in irregular.smaller(case.fabric, case.parts):
            yield replace(case, fabric=numbers, parts=parts)
        return
    if case.topology != LeafSpine.NAME:
        yield replace(case, fabric={name: case.fabric[name] for name in PLAN_KEYS})
    for name, number in case.fabric.items():
        if number > 1:
            yield replace(case, fabric={**case.fabric, name: number - 1})
        if number > 2 and case.topology != LeafSpine.NAME:
            yield replace(case, fabric={**case.fabric, name: number - 2})


def lengths(case: Case) -> Iterator[Case]:
    """Shorter phases."""
    for name, least in (("faults_s", 0.3), ("after_s", 2.0), ("reference_s", 0.5)):
        value = getattr(case, name)
        for shorter in (least, round(value / 2, 3)):
            if least <= shorter < value:
                changed: dict[str, Any] = {name: shorter}
                yield replace(case, **changed)


def entries(case: Case) -> Iterator[Case]:
    """Earlier and shorter faults with round numbers, in both directions instead of one."""
    for index, entry in enumerate(case.faults):
        for other in simpler_entries(entry):
            changed = (*case.faults[:index], other, *case.faults[index + 1 :])
            yield replace(case, faults=tuple(sorted(changed, key=lambda fault: fault.at_s)))


def simpler_entries(entry: TimedFault) -> Iterator[TimedFault]:
    """The same entry with less of one thing."""
    if entry.at_s > 0:
        yield replace(entry, at_s=0.0)
        if (earlier := round(entry.at_s / 2, 2)) < entry.at_s:
            yield replace(entry, at_s=earlier)
    if entry.for_s is not None:
        for shorter in (round(entry.for_s / 2, 3), round(entry.for_s, 1), round(entry.for_s, 2)):
            if SHORTEST_S <= shorter < entry.for_s:
                yield replace(entry, for_s=shorter)
    if entry.value is not None and (rounded := round(entry.value)) != entry.value and rounded > 0:
        yield replace(entry, value=float(rounded))
    if entry.seed > 1:
        yield replace(entry, seed=1)


def sizes(case: Case) -> Iterator[Case]:
    """Smaller messages, fewer of them at a time, slower."""
    for index, workload in enumerate(case.workloads):
        for key in SIZE_KEYS:
            value = workload.options.get(key)
            least = {"size": 64, "rate_bps": 100_000}.get(key, 1)
            for smaller in (least, int(value) // 2) if isinstance(value, int) else ():
                if least <= smaller < int(value or 0):
                    other: Workload = replace(workload, options={**workload.options, key: smaller})
                    yield replace(case, workloads=(*case.workloads[:index], other, *case.workloads[index + 1 :]))


def without_one(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Every way to leave one out."""
    for index in range(len(items)):
        yield (*items[:index], *items[index + 1 :])


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
        """The check that broke, and how."""
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
        self.tell(f"try {self.tries} broke: {check}: {reason}; {case.describe()}; shrinking")
        shrinker = Shrinker(
            self.attempt, lambda smaller, runs: self.tell(f"shrinking, run {runs}: {smaller.describe()}")
        )
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
            catch.lost = error_line(error)
