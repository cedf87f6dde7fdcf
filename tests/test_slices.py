"""Slices of the slow tests: each test is in exactly one, new tests included, and what a slice leaves out is printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.slices import AUTO, FILE, NUMBER, TOGETHER, Durations, chosen, members

ROOT = Path(__file__).resolve().parents[1]
SUITE = """
import pytest

@pytest.mark.slow
@pytest.mark.parametrize("case", range(12))
def test_many(case): pass

@pytest.mark.slow
@pytest.mark.root
def test_of_links(): pass

@pytest.mark.slow
@pytest.mark.by_hand("takes a day")
def test_for_patient_people(): pass

def test_quick(): pass
"""
SETTINGS = "[pytest]\nmarkers =\n    root:\n    slow:\n    by_hand(reason):\naddopts = --strict-markers\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A small suite in a clone of three commits; eight of its slow tests were measured."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_small.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    measured = {f"tests/test_small.py::test_many[{case}]": float(case) for case in range(8)}
    (tmp_path / FILE).write_text(json.dumps({TOGETHER: measured}))
    git(tmp_path, "init", "--quiet")
    for number in range(3):
        git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", str(number))
    return tmp_path


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def ran(suite: Path, *words: str, status: int = 0, **settings: str) -> tuple[set[str], str]:
    """The tests that pytest ran with these words, and what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", NUMBER))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "tests.helpers.slicing", "-p", "no:cacheprovider", *words],
        cwd=suite, env={**environment, "PYTHONPATH": str(ROOT), **settings}, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return set(re.findall(r"::(test_\S+) (?:PASSED|SKIPPED)", done.stdout)), done.stdout + done.stderr


@pytest.mark.slow
def test_slices_together_run_each_slow_test_once(suite: Path) -> None:
    found = [ran(suite, "-m", "slow", "--slice", f"{number}/3")[0] for number in (1, 2, 3)]
    assert set.union(*found) == {f"test_many[{case}]" for case in range(12)} | {"test_of_links"}
    assert sum(map(len, found)) == 13
    assert ran(suite, "-m", "slow", "--slice", "2/3")[0] == found[1]


def test_a_slice_prints_all_that_it_leaves_out(suite: Path) -> None:
    tests, printed = ran(suite, "-m", "slow", "--slice", "2/3")
    left = {f"[{case}]" for case in range(12)} - {name.removeprefix("test_many") for name in tests}
    assert f"left out: {13 - len(tests)} in other slices" in printed
    (cases,) = re.findall(r"^    test_many (.*)$", printed, re.MULTILINE)
    assert set(cases.split()) == left
    assert "left out: 1 that are in no slice and run by hand\n takes a day:" in printed
    assert "    test_for_patient_people" in printed


@pytest.mark.slow
def test_workers_run_the_same_slice_and_its_left_out_tests_are_printed(suite: Path) -> None:
    alone = ran(suite, "-m", "slow", "--slice", "1/2")[0]
    printed = ran(suite, "-m", "slow", "--slice", "1/2", "-n", "2")[1]
    assert set(re.findall(r"PASSED \S+::(test_\S+)", printed)) == alone
    assert f"left out: {13 - len(alone)} in other slices" in printed


@pytest.mark.slow
def test_a_slice_without_tests_is_no_failure(suite: Path) -> None:
    empty = [ran(suite, "-m", "slow and root", "--slice", f"{number}/3")[0] for number in (1, 2, 3)]
    assert sorted(map(len, empty)) == [0, 0, 1]


@pytest.mark.slow
def test_quick_tests_are_in_every_slice(suite: Path) -> None:
    for number in (1, 2):
        assert "test_quick" in ran(suite, "--slice", f"{number}/2")[0]


def test_the_slice_follows_from_the_commit_and_the_next_commit_takes_the_next(suite: Path) -> None:
    slices = []
    for number in range(2 * AUTO):
        found = chosen("auto", {}, suite)
        assert found.origin == f"commit number {3 + number}"
        slices.append(found.number)
        git(suite, "commit", "--quiet", "--allow-empty", "--message", "one more")
    assert sorted(slices[:AUTO]) == list(range(1, AUTO + 1))
    assert slices[AUTO:] == slices[:AUTO]


def test_a_landing_of_many_commits_is_one_step_where_it_is_a_merge(suite: Path) -> None:
    before = chosen("auto", {}, suite).number
    git(suite, "switch", "--quiet", "--create", "branch")
    for number in range(AUTO):
        git(suite, "commit", "--quiet", "--allow-empty", "--message", f"on the branch, {number}")
    git(suite, "switch", "--quiet", "-")
    git(suite, "merge", "--quiet", "--no-ff", "--no-edit", "branch")
    assert chosen("auto", {}, suite).number == before % AUTO + 1


def test_runs_that_ci_counts_take_the_slices_in_turn_whatever_is_landed(suite: Path) -> None:
    found = [chosen("auto", {NUMBER: str(run)}, suite).number for run in range(100, 100 + AUTO)]
    assert sorted(found) == list(range(1, AUTO + 1))


def test_a_shallow_clone_takes_its_slice_from_the_commits_name(suite: Path, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{suite}", str(shallow))
    assert re.fullmatch("commit [0-9a-f]{10} of a shallow clone", chosen("auto", {}, shallow).origin)


@pytest.mark.parametrize("asked", ["0/3", "4/3", "3", "1/0", "-1/3", "all"])
def test_another_slice_is_refused(asked: str, suite: Path) -> None:
    printed = ran(suite, f"--slice={asked}", status=4)[1]
    assert f"--slice must be auto, or K/N with K between 1 and N, such as 2/{AUTO} (got '{asked}')" in printed


def test_without_a_clone_no_slice_follows(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--slice auto needs git and a clone: name a slice"):
        chosen("auto", {}, tmp_path)


def test_slices_take_as_long_as_each_other_or_as_one_test() -> None:
    durations = Durations.read(ROOT / FILE)
    loads = dict.fromkeys(range(1, AUTO + 1), 0.0)
    for name, number in durations.dealt(AUTO).items():
        loads[number] += durations.weighed(name)
    longest = max(durations.weighed(name) for name in durations.names)
    assert max(loads.values()) < max(1.1 * min(loads.values()), longest + 1)
    assert max(loads.values()) < 2 * 150, "two and a half minutes on two processors"


def test_a_new_test_moves_no_other() -> None:
    durations = Durations({TOGETHER: {f"test_{number}": float(number) for number in range(20)}})
    names = [f"test_{number}" for number in range(25)]
    before = members(names, durations, 3)
    assert {name: members([*names, "test_new"], durations, 3)[name] for name in names} == before
    assert members(names[5:], durations, 3) == {name: before[name] for name in names[5:]}


@pytest.mark.slow
def test_durations_are_renewed_for_the_slow_tests_that_ran(suite: Path) -> None:
    ran(suite, "-k", "test_quick or test_of_links or test_many and 11", "--renew-durations", "-n", "1")
    written = json.loads((suite / FILE).read_text())
    assert set(written["alone"]) == {"tests/test_small.py::test_of_links"}
    assert len(written[TOGETHER]) == 9
    assert written[TOGETHER]["tests/test_small.py::test_many[7]"] == 7.0


@pytest.mark.slow
def test_measured_tests_are_slow_tests_that_exist() -> None:
    """And no slice is without tests, as pytest collects them."""
    words = ["-m", "slow and not by_hand", "--collect-only", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    )
    slow = {line for line in done.stdout.splitlines() if "::" in line}
    durations = Durations.read(ROOT / FILE)
    assert durations.names - slow == set(), f"remove them from {FILE}"
    assert set(members(slow, durations, AUTO).values()) == set(range(1, AUTO + 1))
