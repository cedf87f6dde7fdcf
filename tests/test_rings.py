"""Rings of the tests: what ring 0 refuses, the order of the slow tests, and what a budget leaves out."""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests import rings
from tests.helpers import costs
from tests.helpers.costs import FILE, RUN, TURNS, Costs

ROOT = Path(__file__).resolve().parents[1]
SUITE = """
import ctypes, multiprocessing, os, socket, subprocess, threading
import pytest

@pytest.fixture(scope="session")
def started(): return subprocess.run(["true"])

def test_pure(): pass
def test_dear(): pass
@pytest.mark.smoke
def test_dear_and_the_one_of_its_kind(): pass
def test_of_a_process(): subprocess.run(["true"])
def test_that_holds_it_for_an_error():
    try: os.system("true")
    except BaseException: assert False
def test_of_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(subprocess.run(["true"])))
    thread.start(), thread.join()
    assert found
def test_of_a_fixture(started): pass
def test_of_the_same_fixture(started): pass
def test_of_a_spawned_process(): multiprocessing.get_context("spawn").Process(target=print).start()
def test_of_a_socket(): socket.socket(socket.AF_UNIX).bind("socket")
def test_of_a_browser(): import playwright
def test_of_a_namespace(): ctypes.CDLL(None).unshare(0)
@pytest.mark.root
def test_of_links(): pass
@pytest.mark.slow
@pytest.mark.parametrize("case", range(12))
def test_many(case): pass
@pytest.mark.slow
@pytest.mark.by_hand("takes a day")
def test_for_patient_people(): pass
"""
MARKS = "[pytest]\nmarkers =\n    root:\n    smoke:\n    slow:\n    by_hand(reason):\n"


def ran(folder: Path, *words: str, status: int = 0, run: str = "1") -> tuple[set[str], str]:
    """The tests of a small suite that pass with these words, and what is printed."""
    (folder / "tests").mkdir()
    (folder / "tests" / "test_small.py").write_text(SUITE)
    (folder / "pytest.ini").write_text(MARKS)
    (folder / FILE).write_text(
        '{"tests/test_small.py": {"test_dear": 3, "test_dear_and_the_one_of_its_kind": 3, "test_many[0]": 500}}'
    )
    words = ("-p", "tests.helpers.rings", "-p", "no:cacheprovider", f"--basetemp={folder / 'temporary'}", "-rA", *words)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", RUN))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=folder, env={**environment, "PYTHONPATH": str(ROOT), RUN: run},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return set(re.findall(r"^PASSED \S+::(\S+)", done.stdout, re.MULTILINE)), done.stdout


def test_ring_0_refuses_what_starts_something_leaves_out_what_is_dear_and_needs_enough_tests(tmp_path: Path) -> None:
    passed, printed = ran(tmp_path, "--ring", "0", "--at-least", "2", status=1)
    assert passed == {"test_pure"}
    assert "at least 2 tests must pass (got 1)" in printed
    assert "1 passed, 9 skipped, 16 deselected" in printed
    for begun in ("a process", "a socket", "a namespace", "a browser"):
        assert f"begins {begun}: a test of ring 1" in printed


def test_a_budget_leaves_out_what_would_end_too_late_and_says_so(tmp_path: Path) -> None:
    passed, printed = ran(tmp_path, "-m", "slow", f"--until={int(time.monotonic()) + 300}", run="7")
    assert passed == {"test_dear", *(f"test_many[{case}]" for case in range(1, 12))}
    left = "1 slow tests, in the order of this run; a group's next turn takes them first:"
    assert f"{left}\n  tests/test_small.py\n    test_many [0]" in printed


def test_the_first_test_whose_turn_it_is_runs_in_any_budget(tmp_path: Path) -> None:
    passed, printed = ran(tmp_path, "-m", "slow", "--ring", "due", "--until=1", run="2")
    assert passed == {"test_many[0]"}
    assert "2 slow tests, in the order of this run" in printed


def test_a_test_that_takes_long_is_slow_unless_it_is_the_one_of_its_kind(tmp_path: Path) -> None:
    passed, _ = ran(tmp_path, "-m", "not slow", "-k", "dear", "--renew-costs")
    assert passed == {"test_dear_and_the_one_of_its_kind"}
    known = {f"tests/test_small.py::{name}": cost for name, cost in (("test_dear", 3), ("test_many[0]", 500))}
    assert Costs.read(tmp_path).seconds == known, "renewed is what ran"


@pytest.mark.smoke
def test_each_record_is_of_a_test_that_is_there() -> None:
    """A test takes its record along when its name changes, or rings 0 and 1 run it however long it takes."""
    for file, table in json.loads((ROOT / FILE).read_text()).items():
        text = (ROOT / file).read_text()
        assert not [test for test in table if not re.search(rf"\b{re.split('[:[]', test)[0]}\b", text)], file


def test_of_the_dear_cases_of_a_test_the_cheapest_stays_in_ring_1() -> None:
    records = {"f::t[a]": 0.5, "f::t[b]": 0.4, "f::t[c]": 0.2, "f::u[a]": 0.5, "f::u[b]": 0.6, "f::w[a]": 1, "f::x": 2}
    known = Costs(records)
    assert {name for name in records if known.slow(name, root=False)} == {*records} - {"f::t[c]", "f::u[a]"}
    assert {name for name in records if known.slow(name, root=True)} == {"f::u[b]", "f::x"}
    assert not known.slow("f::t[new]", root=False)


NAMES = [f"tests/{room}/test_it.py::test_{number}" for room in ("topo", "cli") for number in range(150)]


def test_each_slow_test_has_its_turn_once_in_five_runs_and_the_longest_not_run_come_next() -> None:
    runs = [costs.ordered(NAMES, Costs({}), run, set()) for run in range(40, 40 + TURNS)]
    assert Counter(name for due, _ in runs for name in due) == Counter(NAMES)
    for (due, others), (following, _) in pairwise(runs):
        assert sorted([*due, *others]) == sorted(NAMES)
        assert set(others[: len(following)]) == set(following)


def test_what_a_budget_cuts_off_comes_first_at_the_groups_next_turn_so_no_test_waits_more_than_ten_runs() -> None:
    reached: dict[str, list[int]] = {name: [] for name in NAMES}
    for run in range(60):
        due, _ = costs.ordered(NAMES, Costs({}), run, set())
        for name in due[: -(-len(due) // 2)]:  # a slow machine reaches half of the group
            reached[name].append(run)
    assert all(runs[0] < 10 and runs[-1] >= 50 for runs in reached.values())
    assert max(later - earlier for runs in reached.values() for earlier, later in pairwise(runs)) == 10


def test_long_tests_and_tests_beside_a_change_come_first() -> None:
    dear = Costs({NAMES[3]: 50.0, "others": 1.0, "median": 1.0})
    run = costs.turn(NAMES[3])
    due, others = costs.ordered(NAMES, dear, run, {"cli", "tests/topo/test_other.py"})
    assert due[0] == NAMES[3]
    assert costs.ordered(NAMES, dear, run + TURNS, set())[0] == due[::-1]
    touched = [name.startswith("tests/cli/") for name in others]
    assert touched == sorted(touched, reverse=True)
    assert 0 < sum(touched) < len(others)
    assert costs.touched("tests/topo/test_other.py::test_a", {"tests/topo/test_other.py"})


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_the_number_of_a_run_is_told_or_that_of_the_commit(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    with pytest.raises(ValueError, match=f"the order of slow tests needs git and a clone, or {RUN}"):
        costs.run_number(tmp_path, {})
    git(tmp_path, "init", "--quiet")
    for number in range(3):
        (tmp_path / "room").mkdir(exist_ok=True)
        (tmp_path / "room" / "code.py").write_text(str(number))
        git(tmp_path, "add", "room")
        git(tmp_path, "commit", "--quiet", "--message", str(number))
    assert costs.run_number(tmp_path, {}) == (3, "commit number 3")
    assert costs.changes(tmp_path) == {"room", "code.py"}
    git(tmp_path, "switch", "--quiet", "--create", "branch", "HEAD^")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "beside")
    git(tmp_path, "switch", "--quiet", "-")
    git(tmp_path, "merge", "--quiet", "--no-ff", "--no-edit", "branch")
    assert costs.run_number(tmp_path, {})[0] == 4, "a landing of many commits is one step where it is a merge"
    assert costs.run_number(tmp_path, {RUN: "96"}) == (96, "run 96 of CI")
    with pytest.raises(ValueError, match=f"{RUN} must be the number of this run of CI"):
        costs.run_number(tmp_path, {RUN: "the last"})
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{tmp_path}", str(clone))
    assert re.fullmatch("commit [0-9a-f]{10} of a shallow clone", costs.run_number(clone, {})[1])


@pytest.mark.parametrize("words", [["--minutes", "3"], ["--due", "--minutes", "-1"], ["--all", "--quick"]])
def test_a_ring_that_cannot_be_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        rings.main(words)


def test_each_ring_is_run_by_few_calls_of_pytest_and_a_failure_is_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, ...]] = []

    def pytest(*words: str, form: str | None = None) -> int:
        calls.append(words)
        return len(calls) % 3

    monkeypatch.setattr(rings, "pytest", pytest)
    assert rings.main(["--quick", "tests/topo"]) == 1
    assert [words[:2] for words in calls] == [("--ring", "0")]
    calls.clear()
    assert rings.main(["--all", "--minutes", "30"]) == 1
    assert [words[words.index("-m") + 1] for words in calls] == [
        "not root and not slow", "root and not slow", "slow and not root", "slow and root", "slow and not root",
        "slow and root",
    ]  # fmt: skip
    assert [("--until" in words) for words in calls] == [False] * 2 + [True] * 4
    calls.clear()
    assert rings.main(["--due"]) == 1
    assert [words[:2] for words in calls] == [("--ring", "due")] * 2
    assert not any("--until" in words for words in calls)
    calls.clear()
    assert rings.main(["--due", "--minutes", "23", "--began", str(rings.uptime_s() - 20 * 60)]) == 1
    without_root, with_root = (float(words[words.index("--until") + 1]) - time.monotonic() for words in calls)
    assert 100 < without_root < with_root <= 180, "20 of the 23 minutes are over, and tests with root get their share"
