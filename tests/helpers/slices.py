"""Slices of the slow tests: which test is in which slice, and which slice a run of CI takes.

`tests/slow-durations.json` holds measured seconds. Its tests are dealt out longest first, each to the slice with the
least time so far. A test without a measurement goes to the slice that a hash of its name gives. So no test changes its
slice until the file is renewed, whatever tests come or go: a test that moved might miss its turn.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

FILE = "tests/slow-durations.json"
AUTO = 37  # slices of CI: at most two and a half minutes on two processors; a prime, see docs/testing.md
NUMBER = "MRCLAB_CI_RUN"
# Tests that need root measure real time, so that they run one after the other; the others run on both processors.
TOGETHER, ALONE = "together", "alone"
WEIGHTS = {TOGETHER: 1, ALONE: 2}


@dataclass(frozen=True)
class Slice:
    number: int  # from 1
    of: int
    origin: str  # why this one


def chosen(asked: str, environment: Mapping[str, str], root: Path) -> Slice:
    """The slice that `--slice` names: K/N, or `auto`. ValueError with what is valid."""
    if asked == "auto":
        number, origin = counted(environment, root)
        return Slice(number % AUTO + 1, AUTO, origin)
    found = re.fullmatch(r"(\d+)/(\d+)", asked)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise ValueError(f"--slice must be auto, or K/N with K between 1 and N, such as 2/{AUTO} (got {asked!r})")
    return Slice(int(found[1]), int(found[2]), "asked for")


def counted(environment: Mapping[str, str], root: Path) -> tuple[int, str]:
    """A number that grows from run to run of CI, and what it counts."""
    told = environment.get(NUMBER)
    if told:
        if not told.isdecimal():
            raise ValueError(f"{NUMBER} must be the number of this run of CI (got {told!r})")
        return int(told), f"run {told} of CI"
    if git(root, "rev-parse", "--is-shallow-repository") == "true":  # where every commit would be the first
        commit = git(root, "rev-parse", "HEAD")
        return int(commit, 16), f"commit {commit[:10]} of a shallow clone"
    count = git(root, "rev-list", "--count", "--first-parent", "HEAD")
    return int(count), f"commit number {count}"


def git(root: Path, *words: str) -> str:
    """What git prints. ValueError without a clone: no slice follows from a commit then."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"--slice auto needs git and a clone: name a slice, such as 2/{AUTO} ({error})") from error
    return done.stdout.strip()


class Durations:
    """Measured seconds of slow tests."""

    def __init__(self, tables: Mapping[str, Mapping[str, float]]) -> None:
        self._tables = {kind: dict(tables.get(kind, {})) for kind in WEIGHTS}

    @classmethod
    def read(cls, file: Path) -> Durations:
        return cls(json.loads(file.read_text()) if file.exists() else {})

    def write(self, file: Path) -> None:
        tables = {kind: dict(sorted(table.items())) for kind, table in self._tables.items()}
        file.write_text(json.dumps(tables, indent=1, ensure_ascii=False) + "\n")

    def measured(self, name: str, kind: str, seconds: float) -> None:
        """Take a new measurement."""
        for table in self._tables.values():
            table.pop(name, None)
        self._tables[kind][name] = round(seconds, 1)

    @property
    def names(self) -> set[str]:
        return {name for table in self._tables.values() for name in table}

    def seconds(self, name: str) -> float:
        """Of a test; of one without a measurement, the median of all."""
        known = {name: seconds for table in self._tables.values() for name, seconds in table.items()}
        return known.get(name, median(known.values()) if known else 0.0)

    def weighed(self, name: str) -> float:
        """Seconds of one processor that a measured test keeps others from using."""
        (weighed,) = (WEIGHTS[kind] * table[name] for kind, table in self._tables.items() if name in table)
        return weighed

    def dealt(self, of: int) -> dict[str, int]:
        """The slice of each test that was measured."""
        loads, result = [0.0] * of, {}
        for name in sorted(self.names, key=lambda name: (-self.weighed(name), name)):
            lightest = loads.index(min(loads))
            loads[lightest] += self.weighed(name)
            result[name] = lightest + 1
        return result


def members(names: Iterable[str], durations: Durations, of: int) -> dict[str, int]:
    """The slice of each of these tests."""
    dealt = durations.dealt(of)
    return {name: dealt.get(name) or int(hashlib.sha256(name.encode()).hexdigest(), 16) % of + 1 for name in names}


def grouped(names: Iterable[str]) -> list[str]:
    """Names of tests, file by file, one line for all cases of a test."""
    files: dict[str, dict[str, list[str]]] = {}
    for name in names:
        file, _, rest = name.partition("::")
        test, _, case = rest.partition("[")
        files.setdefault(file, {}).setdefault(test, []).append(f"[{case}" if case else "")
    lines = []
    for file, tests in files.items():
        lines += [f"  {file}", *(f"    {test} {' '.join(cases)}".rstrip() for test, cases in tests.items())]
    return lines
