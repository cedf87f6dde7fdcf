"""A disk that fills in the middle of a long command, and is freed: the next call goes on, and nothing done is lost.

Each command is a process of its own. It must end by itself, in words and not in a trace-back.
"""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.helpers.small_disk import SmallDisk, small_disk

pytestmark = [pytest.mark.slow, pytest.mark.root]
ROOT = Path(__file__).parents[2]
NO_ROOM = "no space left on device"
LIMIT_S = 300.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 64 << 10) as made:
        yield made


class Called:
    """`./lab WORDS` as a process, interpreted: no build of the endpoint comes in between."""

    def __init__(self, tmp_path: Path, *words: str) -> None:
        self.words = words
        self.said = tmp_path / "said"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "MRCLAB_COMPILED": "off"}
        with self.said.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "cli", *words],
                cwd=tmp_path, env=environment, stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            assert self.process.poll() is None, self.said.read_text()

    def ended(self) -> tuple[int, str]:
        """The exit status, and what was said."""
        status = self.process.wait(LIMIT_S)
        said = self.said.read_text()
        assert "Traceback" not in said
        assert "defect" not in said
        return status, said


def rows(store: Path) -> set[str]:
    """The keys of the rows of a store."""
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
            return {key for (key,) in database.execute("SELECT key FROM rows")}
    except sqlite3.Error:
        return set()


SEEDS = {
    "sweep": (("smoke", "--seeds", "8", "--time", "0.3"), "sweeps", 8, "sweep.html"),
    "contest": (("--smoke", "--seeds", "2"), "sweeps", 12, "contest.html"),
    "reproduce": (("9a", "--short"), "reproduction-short", 4, "rows.sqlite"),  # its short form writes no page
}


@pytest.mark.parametrize("command", SEEDS)
def test_a_study_goes_on_from_the_rows_that_it_had(command: str, disk: SmallDisk, tmp_path: Path) -> None:
    own, folder, most, page = SEEDS[command]
    runs = disk.path / "runs"
    store = runs / folder / "rows.sqlite"
    words = (command, *own, "--workers", "1", "--plain", "--runs", str(runs))
    first = Called(tmp_path, *words)
    first.until(lambda: len(rows(store)) >= 1)
    disk.fill()
    status, said = first.ended()
    assert (status, NO_ROOM in said) == (1 if command == "reproduce" else 2, True), said
    kept = rows(store)
    assert 1 <= len(kept) < most, "the disk must fill in the middle"
    disk.free()
    status, said = Called(tmp_path, *words).ended()
    assert status == 0, said
    assert kept <= rows(store)
    assert len(rows(store)) == most
    assert list(runs.rglob(page))
    assert not list(runs.rglob("scratch-*")), "no worker leaves its files"
    if command != "reproduce":
        assert f"{most - len(kept)} runs made, {len(kept)} kept from before" in said


def test_a_grading_goes_on_from_the_results_that_it_had(disk: SmallDisk, tmp_path: Path) -> None:
    for name in ("anna", "ben", "carl", "dora"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "usids.py").write_text(f"ANSWERS = {{}}  # {name}\n")
    output = disk.path / "graded"
    words = ("grade", str(tmp_path / "in"), "--key", "k", "--labs", "1", "--workers", "1", "--output", str(output))
    first = Called(tmp_path, *words)
    first.until(lambda: bool(list(output.glob("results/*/usids.json"))))
    disk.fill()
    status, said = first.ended()
    assert (status, NO_ROOM in said) == (2, True), said
    kept = {path.parent.name for path in output.glob("results/*/usids.json")}
    disk.free()
    status, said = Called(tmp_path, *words).ended()
    assert status == 0, said
    assert said.count("kept from before") == len(kept) >= 1
    assert (output / "grades.csv").read_text().count("not yet") == 4


def hunt(disk: SmallDisk, tmp_path: Path) -> Called:
    grudge = f"selection={ROOT / 'docs/templates/grudge.py'}:Grudge"
    words = ("--seed", "26", "--tries", "1", "--plain", "--workers", "1", "--setting", grudge)
    return Called(tmp_path, "hunt", *words, "--output", str(disk.path / "found"), "--runs", str(disk.path / "runs"))


def test_a_finding_of_a_hunt_is_told_without_room_and_written_with_it(disk: SmallDisk, tmp_path: Path) -> None:
    first = hunt(disk, tmp_path)
    first.until(lambda: "shrinking" in first.said.read_text())
    disk.fill()
    status, said = first.ended()
    assert status == 1, said
    assert "found at try 1: goodput back" in said
    assert f"found: {NO_ROOM}" in said or f"{NO_ROOM}; the same tries find it again" in said
    assert "./lab hunt --seed 26 --tries 1 --go-on --setting selection=" in said
    disk.free()
    status, said = hunt(disk, tmp_path).ended()
    assert status == 1
    assert list((disk.path / "found").glob("*_26_1.py"))
    assert "report.html" in said


@pytest.mark.parametrize("early", [True, False], ids=["before its first line", "in its middle"])
@pytest.mark.parametrize("own", [["mrc"], ["mrc,roce", "--view"]], ids=["run", "race"])
def test_a_run_on_a_full_disk_says_so_first(early: bool, own: list[str], disk: SmallDisk, tmp_path: Path) -> None:
    """The files that are missing for its verdict are no reason."""
    disk.path.joinpath("runs").mkdir()
    if early:
        disk.fill()
    words = ("run", "smoke", "--world", "simulated", "--plain", "--transport", *own, "--runs")
    called = Called(tmp_path, *words, str(disk.path / "runs"))
    if not early:
        called.until(lambda: bool(list(disk.path.glob("runs/**/journal/h0.jsonl"))))
        disk.fill()
    status, said = called.ended()
    *_, reason = [line for line in said.splitlines() if line.startswith("mrclab: ")]
    assert (status, NO_ROOM in reason) == (2, True), said


def test_down_ends_a_lab_while_run_is_full(tmp_path: Path) -> None:
    """In a /run of its own: records and locks of labs lie there."""
    script = """
mount -t tmpfs -o size=600k tmpfs /run && mkdir /run/netns && cd "$1" || exit 99
lab() { "$PYTHON" -P -m cli "$@" 2>&1; echo "status $?"; }
lab up tiny --set switch=linux
head -c 9m /dev/zero >/run/rest 2>/dev/null
lab down
ls /run/netns /run/mrclab 2>&1
rm /run/rest
lab status
"""
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["unshare", "--mount", "--net", "bash", "-c", script, "bash", str(tmp_path)],
        env=environment, capture_output=True, text=True, check=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert "Traceback" not in done.stdout
    up, _, rest = done.stdout.partition("status 0")
    assert "tiny is up" in up, done.stdout
    assert "the lab is down" in rest, done.stdout
    assert "h0" not in rest.partition("the lab is down")[2], done.stdout
    assert "no lab is running" in rest, done.stdout
