"""A lab on many seeds: `python -m tests.course.sampling spray --seeds 100`. Prints what the tests' bars rest on.

The reference must pass on every seed, each mutant must fail on at least 99 of 100, and each cheat on all.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from course.carrying import carry_out
from course.catalogue import find
from course.lab import Lab, Work
from course.mylab import reference
from course.result import TestResult
from tests.course.mutants.mutant import Mutant


def results(lab: Lab, source: str, seed: int, until_failure: bool = False) -> tuple[TestResult, ...]:
    """The tests of a lab on a text, in this process."""
    with tempfile.TemporaryDirectory(prefix="mrclab-course-test-") as folder:
        path = Path(folder) / lab.file
        path.write_text(source)
        return carry_out(lab, Work(source, path, seed, Path(folder) / "checked"), until_failure)


def first_failure(found: Sequence[TestResult]) -> TestResult | None:
    return next((one for one in found if not one.passed), None)


def wrong(lab: Lab, kind: str) -> tuple[Mutant, ...]:
    """`MUTANTS` or `CHEATS` of a lab."""
    found: tuple[Mutant, ...] = getattr(importlib.import_module(f"tests.course.mutants.{lab.name}"), kind)
    return found


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lab")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--only", choices=("reference", "mutants", "cheats"))
    parser.add_argument("--say", action="store_true", help="print the first failure of each")
    arguments = parser.parse_args(words)
    lab, seeds = find(arguments.lab), range(arguments.first, arguments.first + arguments.seeds)
    bad = 0
    if arguments.only in (None, "reference"):
        bad += sample_reference(lab, seeds)
    for kind in ("MUTANTS", "CHEATS"):
        if arguments.only in (None, kind.lower()):
            bad += sum(sample_wrong(lab, one, seeds, arguments.say) for one in wrong(lab, kind))
    return bad


def sample_reference(lab: Lab, seeds: Sequence[int]) -> int:
    """The reference on every seed, with the range of each gate; the seeds that fail."""
    ranges: dict[tuple[str, str], list[float]] = {}
    failed = 0
    for seed in seeds:
        found = results(lab, reference(lab, seed), seed)
        for one in found:
            for gate in one.outcome.gates:
                ranges.setdefault((one.name, gate.name), []).append(gate.value)
        if (first := first_failure(found)) is not None:
            failed += 1
            print(f"  seed {seed}: {first.name}: {first.outcome.happened}", flush=True)
    print(f"{lab.name} reference: passes on {len(seeds) - failed} of {len(seeds)} seeds", flush=True)
    for (test, name), values in ranges.items():
        print(f"  {test}: {name}: {min(values):.4g} to {max(values):.4g}")
    return failed


def sample_wrong(lab: Lab, mutant: Mutant, seeds: Sequence[int], say: bool) -> int:
    """A mutant on every seed: 1 when it passes more than one in a hundred, or its cause is not named."""
    passed, unnamed = 0, 0
    told = ""
    for seed in seeds:
        first = first_failure(results(lab, mutant.change(reference(lab, seed), seed), seed, until_failure=True))
        passed += first is None
        if first is not None:
            told = f"{first.name}: {first.outcome.happened}"
            unnamed += not re.search(mutant.cause, told)
    bad = passed > len(seeds) / 100 or unnamed > 0
    print(
        f"{'BAD ' if bad else ''}{lab.name} {mutant.name}: fails on {len(seeds) - passed} of {len(seeds)}", flush=True
    )
    if unnamed or say:
        print(f"    {told}", flush=True)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
