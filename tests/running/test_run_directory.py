"""Run directories have one owner, and names that sort by age; workers end with their owner and leave no file."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import rmtree
from threading import Barrier

import pytest

from running.directory import RunDirectory, before, by_age, find
from tests.helpers.owner import living
from tests.helpers.waiting import eventually

MAKERS = 16


def test_runs_of_one_scenario_and_seed_that_begin_together_do_not_meet(tmp_path: Path) -> None:
    together = Barrier(MAKERS)

    def make(_: int) -> Path:
        together.wait()
        return RunDirectory.create(tmp_path, "smoke", 7).path

    for _ in range(8):
        with ThreadPoolExecutor(MAKERS) as makers:
            made = list(makers.map(make, range(MAKERS)))
        assert len(set(made)) == MAKERS
        assert all((path / "journal").is_dir() for path in made)
        assert (tmp_path / "latest").resolve() in made
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def made(root: Path, scenario: str, seed: int) -> Path:
    directory = RunDirectory.create(root, scenario, seed)
    directory.write_options({"scenario": scenario})
    return directory.path


def test_runs_of_one_second_or_of_a_clock_that_is_set_back_are_in_order(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(time, "gmtime", lambda: time.struct_time((2026, 11, 24, 8, 0, 0, 1, 328, 0)))
    paths = [made(tmp_path, "smoke", seed) for seed in range(13, 0, -1)]  # seeds fall while time goes on
    assert find(tmp_path, "smoke") == paths[-1].resolve()
    assert [before(path) for path in paths[1:]] == paths[:-1]
    assert find(tmp_path, f"smoke/{paths[3].name}") == paths[3].resolve()
    with pytest.raises(FileNotFoundError, match="the first run of smoke"):
        before(paths[0])
    # nor does a clock that is set back change the order
    tmp_path, paths = tmp_path / "set-back", []
    for hour in (8, 7, 9, 8):
        monkeypatch.setattr(time, "gmtime", lambda hour=hour: time.struct_time((2026, 11, 24, hour, 0, 0, 1, 328, 0)))
        paths.append(made(tmp_path, "smoke" if hour != 7 else "spray", hour))
    assert find(tmp_path, "smoke") == paths[-1].resolve()
    assert before(paths[3]) == paths[2]
    assert before(paths[2]) == paths[0]


def test_what_was_made_is_what_was_not_there(tmp_path: Path) -> None:
    first = RunDirectory.create(tmp_path / "new" / "runs", "smoke", 1)
    assert {made.path for made in first.made} == {
        tmp_path / "new", tmp_path / "new/runs", tmp_path / "new/runs/smoke", first.path, tmp_path / "new/runs/latest",
    }  # fmt: skip
    second = RunDirectory.create(tmp_path / "new" / "runs", "smoke", 1)
    assert {made.path for made in second.made} == {second.path, tmp_path / "new/runs/latest"}


def test_without_runs_or_behind_a_link_to_none_is_no_latest_run_and_without_a_link_it_is_the_newest(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no run yet in .* SCENARIO/RUN with an options\.json"):
        find(tmp_path, "latest")
    made(tmp_path, "spray", 1)
    rmtree(made(tmp_path, "smoke", 1))
    with pytest.raises(FileNotFoundError, match="no run 'latest'; there is: spray/"):
        find(tmp_path, "latest")
    # Such as in a folder of runs that was copied without links.
    made(tmp_path, "spray", 1)
    newest = made(tmp_path, "smoke", 1).resolve()
    assert find(tmp_path, "latest") == newest
    (tmp_path / "latest").unlink()
    assert find(tmp_path, "latest") == newest
    with pytest.raises(FileNotFoundError, match="no run 'lastest'; there is: latest, sp"):
        find(tmp_path, "lastest")


def test_a_folder_that_goes_while_runs_are_listed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = made(tmp_path, "smoke", 1)
    gone = made(tmp_path, "spray", 2).parent
    scandir = os.scandir

    def removed_just_before(path: Path) -> object:
        if path == gone:
            monkeypatch.setattr(os, "scandir", scandir)
            rmtree(gone)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", removed_just_before)
    assert by_age(tmp_path) == [kept]
    assert not gone.exists()


LIMIT_S = 60
WORKERS = 3


@pytest.mark.parametrize("attempt", range(4))
def test_nothing_is_left_when_the_owner_is_killed_while_all_workers_write(attempt: int, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.owner", str(WORKERS), str(scratch)], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    eventually(lambda: len(list(scratch.glob("*/0"))) >= WORKERS or owner.poll() is not None, "all write", LIMIT_S)
    assert owner.poll() is None
    owner.send_signal(signal.SIGKILL)
    _, errors = owner.communicate(timeout=LIMIT_S)
    eventually(lambda: not living(owner.pid), "no worker is left", LIMIT_S)
    assert not scratch.exists(), errors
