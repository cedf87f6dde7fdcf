"""The costs of tests, from `tests/costs.json`, and the order in which runs of CI take the slow ones.

The file holds processor seconds for each test of `RECORDED_S` or more, and seconds of a clock for tests with root:
those wait in real time. A hash of its name deals each slow test to one of `TURNS` groups, which take turns: so no test
moves to another group, and misses its turn, because others come, go or change their cost. Every second turn takes a
group backwards: a budget that suffices for half of a group leaves no test out twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

FILE = "tests/costs.json"
TURNS = 5  # a slow test waits for at most so many runs of CI, and twice as many if a run reaches half of its group
RUN = "MRCLAB_CI_RUN"
RECORDED_S = 0.1  # and more is no test of ring 0
SLOW_S, SLOW_ROOT_S = 0.6, 2.0  # and more is a slow test, unless it is marked `smoke`
CASE_S, CASE_ROOT_S = 0.3, 0.6  # and more is a slow case of a test with a cheaper case


@dataclass(frozen=True)
class Costs:
    """Seconds by the name of a test."""

    seconds: Mapping[str, float]

    @classmethod
    def read(cls, root: Path) -> Costs:
        file = root / FILE
        tables = json.loads(file.read_text()) if file.exists() else {}
        return cls({f"{path}::{test}": cost for path, table in tables.items() for test, cost in table.items()})

    def renewed(self, measured: Mapping[str, float], root: Path) -> None:
        """Write the file again, with new records of these tests: one line for each file of tests."""
        tables: dict[str, dict[str, float]] = {}
        for name, cost in sorted({**self.seconds, **measured}.items()):
            path, _, test = name.partition("::")
            if (root / path).exists() and cost >= RECORDED_S:
                tables.setdefault(path, {})[test] = round(cost, 1)
        lines = [f"{json.dumps(path)}: {json.dumps(table, ensure_ascii=False)}" for path, table in tables.items()]
        (root / FILE).write_text("{\n" + ",\n".join(lines) + "\n}\n")

    def slow(self, name: str, root: bool) -> bool:
        """Whether a test is slow by its record. Labs take their time, so tests with root may have more of it."""
        alone, case = (SLOW_ROOT_S, CASE_ROOT_S) if root else (SLOW_S, CASE_S)
        return self.seconds.get(name, 0.0) >= (alone if name in self.cheapest else case)

    @cached_property
    def cheapest(self) -> Set[str]:
        """Of the recorded cases of each test the cheapest, which shows in ring 1 that the test's rule is kept."""
        found: dict[str, str] = {}
        for name, cost in self.seconds.items():
            known = found.setdefault(name.partition("[")[0], name)
            if cost < self.seconds[known]:
                found[name.partition("[")[0]] = name
        return set(found.values())

    def of_slow(self, name: str) -> float:
        """Of a slow test; of one without a record, the median of all records of a second or more."""
        found = self.seconds.get(name)
        return found or median([cost for cost in self.seconds.values() if cost >= 1] or [1.0])


def ordered(names: Iterable[str], costs: Costs, run: int, changed: set[str]) -> tuple[list[str], list[str]]:
    """Slow tests in the order of a run of CI: those whose turn it is, and then all others.

    Of the others, tests beside what has changed come first; then those that were not run longest. Long ones come first
    among equals, so that no worker waits for one at the end; those that are due, at every second turn last.
    """

    def place(name: str) -> tuple[int, float, str]:
        return (turn(name) - run) % TURNS, -costs.of_slow(name), name

    due: list[str] = []
    others: list[str] = []
    for name in sorted(names, key=place):
        (others if place(name)[0] else due).append(name)
    if run // TURNS % 2:
        due.reverse()
    return due, sorted(others, key=lambda name: not touched(name, changed))


def turn(name: str) -> int:
    """The group of a slow test."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % TURNS


def touched(name: str, changed: set[str]) -> bool:
    """Whether a test lies beside what has changed: its file itself, or the folder of tests of a room."""
    path = name.partition("::")[0]
    return path in changed or path.split("/")[1] in changed


def git(root: Path, *words: str) -> str:
    """The output of git. ValueError without a clone."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"the order of slow tests needs git and a clone, or {RUN} ({error})") from error
    return done.stdout.strip()


def changes(root: Path) -> set[str]:
    """Files of tests that the last landing and the work since have changed, and the rooms of all other files."""
    try:
        paths = git(root, "diff", "--name-only", "HEAD^1").splitlines()
    except ValueError:  # the first commit, or no clone
        return set()
    return {path for path in paths if path.startswith("tests/")} | {
        part for path in paths if not path.startswith("tests/") for part in path.split("/")[:2]
    }


def run_number(root: Path, environment: Mapping[str, str] = os.environ) -> tuple[int, str]:
    """A number that grows from run to run of CI, and what it counts. ValueError: neither a clone nor told."""
    told = environment.get(RUN)
    if told:
        if not told.isdecimal():
            raise ValueError(f"{RUN} must be the number of this run of CI (got {told!r})")
        return int(told), f"run {told} of CI"
    if git(root, "rev-parse", "--is-shallow-repository") == "true":  # where every commit would be the first
        commit = git(root, "rev-parse", "HEAD")
        return int(commit, 16), f"commit {commit[:10]} of a shallow clone"
    count = git(root, "rev-list", "--count", "--first-parent", "HEAD")
    return int(count), f"commit number {count}"


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
