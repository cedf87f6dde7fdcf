"""The right to change a lab, where a lab is taken down and another `up` begins at the same moment."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from common import locks
from tests.helpers.stranger import as_a_stranger, let_all_enter
from topo.emulation import state
from topo.emulation.state import LabError


def test_a_down_that_ends_leaves_the_files_of_the_next_up(tmp_path: Path) -> None:
    """Between the removal of the files and the end of `down`, another process may have made the folder anew."""
    root = tmp_path / "lab"
    down, newcomer = state.locked(root), state.locked(root)
    with down:
        (root / "lab.json").write_text("{}")
        state.remove(root)
        newcomer.__enter__()
        (root / ".lab.json.new").write_text("{}")  # the newcomer's record, not in its place yet
    with pytest.raises(LabError, match="being changed by process"), state.locked(root):
        pass
    (root / ".lab.json.new").rename(root / "lab.json")
    newcomer.__exit__(None, None, None)
    assert (root / "lab.json").exists()


def test_a_right_that_made_no_lab_leaves_no_folder(tmp_path: Path) -> None:
    root = tmp_path / "lab"
    with state.locked(root):
        assert root.exists()
    assert not root.exists()


LOCKS: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "lock": partial(state.locked, wait=True),
    "faults.lock": state.faults_locked,
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_of_the_lab_is_closed_to_others_also_where_an_older_version_made_it(name: str, tmp_path: Path) -> None:
    for _ in range(2):
        with LOCKS[name](tmp_path):
            assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
        tmp_path.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)


@pytest.mark.root
@pytest.mark.parametrize("name", LOCKS)
def test_a_stranger_who_holds_a_lock_of_the_lab_is_named_and_not_waited_for_for_ever(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`flock` takes a descriptor that only reads: before this version of the program, every user could have one."""
    monkeypatch.setattr(locks, "TELL_S", 0.02)
    monkeypatch.setattr(state, "LOCK_S", 0.1)
    let_all_enter(tmp_path)
    (tmp_path / name).touch(0o644)
    with as_a_stranger():
        theirs = os.open(tmp_path / name, os.O_RDONLY)
    try:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        with pytest.raises(LabError, match=rf"still held by process {os.getpid()} of user"), LOCKS[name](tmp_path):
            pass
        assert f"at most 0 s more: process {os.getpid()} of user" in capsys.readouterr().err
    finally:
        os.close(theirs)
    with as_a_stranger(), pytest.raises(PermissionError):
        os.open(tmp_path / name, os.O_RDONLY)


def test_folders_that_a_user_has_nested_deeper_than_python_recurses_are_removed(tmp_path: Path) -> None:
    root = tmp_path / "lab"
    (root / "switch").mkdir(parents=True)
    nested = "import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(3000)]"
    # Made by a process, which ring 0 refuses: what it cannot remove it must not make. pytest recurses as well where it
    # removes old folders, and this one would end a later session of tests.
    subprocess.run([sys.executable, "-c", nested], cwd=root / "switch", check=True)
    try:
        state.remove(root)
        assert not root.exists()
    finally:
        subprocess.run(["rm", "-rf", "--", root], check=True)
