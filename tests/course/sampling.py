"""Labs on many seeds: `python -m tests.course.sampling spray --seeds 100`. Prints what the tests' bars rest on.

The reference must pass on every seed, each mutant must fail on at least 99 of 100, and each cheat on all. Cheats run
in the box of a check, the others in this process.
"""

import argparse
import importlib
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from course.catalogue import LABS, find
from course.exercise import Exercise, StudentWork
from course.labs.figure import tests as figure
from course.labs.figure.tests import Fault, rates
from course.result import TestResult
from course.student_folder import reference
from course.worker import carried_out, carry_out
from tests.course.mutants.mutant import Mutant
from tests.course.open_box import OpenWork

KINDS = ("reference", "mutants", "cheats")
NAMED_SHARE = 0.99
"""Of the seeds on which a wrong solution must fail."""


@dataclass(frozen=True, slots=True)
class Row:
    """One trial. `failed` is the first test that failed, "" without one; `named` whether its
    message has the cause."""

    lab: str
    kind: str
    name: str
    seed: int
    failed: str
    told: str
    named: bool
    seconds: float
    gates: dict[str, float] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether the trial went as it must."""
        return not self.failed if self.kind == "reference" else bool(self.failed) and self.named


def results(
    lab: Exercise, source: str, seed: int, until_failure: bool = False, only: str = "", trusted: bool = False
) -> tuple[TestResult, ...]:
    """The tests of a lab on a text, without what only a reader needs. `only`: the test of this name. `trusted`: the
    text runs in this process, and in no box."""
    with (
        tempfile.TemporaryDirectory(prefix="mrclab-course-test-") as folder,
        mock.patch.object(figure, "rates", remembered_rates),
    ):
        path = Path(folder) / lab.file
        path.write_text(source)
        work = (OpenWork if trusted else StudentWork)(source, path, seed, Path(folder) / "checked", brief=True)
        if only:
            return tuple(carried_out(test, work) for test in lab.tests if test.name == only)
        return carry_out(lab, work, until_failure)


RATES: dict[tuple[object, ...], list[float]] = {}


def remembered_rates(work: StudentWork, name: str, payload: int, faults: Sequence[Fault], steps: int) -> list[float]:
    """Runs of lab 10 depend on seed, payload and timeline only, which most of its wrong solutions share."""
    key = (work.seed, payload, tuple(faults), steps)
    if key not in RATES:
        RATES[key] = rates(work, name, payload, faults, steps)
    return RATES[key]


def first_failure(found: Sequence[TestResult]) -> TestResult | None:
    return next((one for one in found if not one.passed and not one.waits), None)


def wrong(lab: Exercise, kind: str) -> tuple[Mutant, ...]:
    """`MUTANTS` or `CHEATS` of a lab."""
    found: tuple[Mutant, ...] = getattr(importlib.import_module(f"tests.course.mutants.{lab.name}"), kind)
    return found


def trial(lab: Exercise, kind: str, mutant: Mutant | None, seed: int, only: str = "") -> Row:
    """The reference, or one wrong solution, on one seed."""
    began_s = time.monotonic()
    text = reference(lab, seed)
    found = results(
        lab, text if mutant is None else mutant.change(text, seed), seed, mutant is not None, only, kind != "cheats"
    )
    first = first_failure(found)
    words = "" if first is None else f"{first.name}: {first.outcome.happened}"
    named = mutant is not None and re.search(mutant.cause, words) is not None
    gates = {f"{one.name}: {gate.name}": gate.value for one in found for gate in one.outcome.gates}
    name = "reference" if mutant is None else mutant.name
    seconds = round(time.monotonic() - began_s, 2)
    failed = "" if first is None else first.name
    return Row(lab.name, kind, name, seed, failed, words, named, seconds, gates if mutant is None else {})


def trials(
    labs: Sequence[Exercise], kinds: Sequence[str], seeds: Sequence[int]
) -> Iterator[tuple[Exercise, str, int, Mutant | None]]:
    """What a sample consists of: few seeds of everything before more of anything."""
    for seed in seeds:
        for lab in labs:
            for kind in kinds:
                for one in (None,) if kind == "reference" else wrong(lab, kind.upper()):
                    yield lab, kind, seed, one


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labs", help="numbers or names with commas between them, or all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--test", default="", metavar="NAME", help="this test alone, such as hunt")
    parser.add_argument("--say", action="store_true", help="print the last message of each")
    arguments = parser.parse_args(words)
    labs = list(LABS.values()) if arguments.labs == "all" else [find(word) for word in arguments.labs.split(",")]
    kinds = KINDS if arguments.only is None else (arguments.only,)
    rows = []
    for lab, kind, seed, one in trials(labs, kinds, range(arguments.first, arguments.first + arguments.seeds)):
        rows.append(trial(lab, kind, one, seed, arguments.test))
        if not rows[-1].right:
            print(f"  {rows[-1].lab} {rows[-1].name}, seed {seed}: {rows[-1].told or 'passes'}", flush=True)
    return table(rows, arguments.say)


def table(rows: Sequence[Row], say: bool) -> int:
    """Print a line per solution, and the gates of references; the number of solutions that miss their bar."""
    bad = 0
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.lab, row.kind, row.name), []).append(row)
    print("| lab | kind | solution | fails | cause named | seconds, longest |\n|---|---|---|---:|---:|---:|")
    for (lab, kind, name), own in sorted(groups.items(), key=lambda one: (one[0][0], KINDS.index(one[0][1]))):
        failed, named = sum(bool(row.failed) for row in own), sum(row.named for row in own)
        misses = failed > 0 if kind == "reference" else min(failed, named) < NAMED_SHARE * len(own)
        bad += misses
        causes = "" if kind == "reference" else f"{named} of {len(own)}"
        longest = max(row.seconds for row in own)
        mark = "**missed** " if misses else ""
        print(f"| {lab} | {kind} | {mark}{name} | {failed} of {len(own)} | {causes} | {longest:.1f} |")
        if say or misses:
            print(f"    {next((row.told for row in own if not row.right), own[-1].told)}")
    for lab in dict.fromkeys(row.lab for row in rows):
        gates: dict[str, list[float]] = {}
        for row in rows:
            if row.lab == lab:
                for name, value in row.gates.items():
                    gates.setdefault(name, []).append(value)
        for name, values in gates.items():
            print(f"{lab} {name}: {min(values):.4g} to {max(values):.4g}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
