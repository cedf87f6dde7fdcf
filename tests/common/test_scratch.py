"""Scratch folders: one's own stays while one lives, a killed owner's goes, whatever its process number is now."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common.scratch import LOCK, UNLOCKED_S, Scratch, remove_leftovers

OWNER = """
import sys, time
from pathlib import Path
from common.scratch import Scratch
print(Scratch("s-", Path(sys.argv[1])).path.name, flush=True)
sys.stdin.read()
"""


def owner(folder: Path, *before: str) -> tuple[subprocess.Popen[str], Path]:
    """A process that has a scratch folder until its standard input ends."""
    command = [*before, sys.executable, "-c", OWNER, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, folder / process.stdout.readline().strip()


def test_a_folder_is_private_and_goes_with_its_block(tmp_path: Path) -> None:
    with Scratch("s-", tmp_path / "new") as path:
        assert path.parent == tmp_path / "new"
        assert path.stat().st_mode & 0o777 == 0o700
        remove_leftovers(tmp_path / "new", "s-")
        assert path.exists()
    assert not any((tmp_path / "new").iterdir())


def test_a_killed_owners_folder_goes_and_a_living_ones_stays(tmp_path: Path) -> None:
    living, kept = owner(tmp_path)
    killed, left = owner(tmp_path)
    killed.kill()
    killed.communicate()
    remove_leftovers(tmp_path, "s-")
    assert kept.exists()
    assert not left.exists()
    living.communicate()
    remove_leftovers(tmp_path, "s-")
    assert not kept.exists()


@pytest.mark.root
def test_an_owner_in_another_process_namespace_is_no_leftover(tmp_path: Path) -> None:
    """In its namespace it is process 1 or 2: by number it would be dead here, or somebody else."""
    living, kept = owner(tmp_path, "unshare", "--pid", "--fork", "--mount-proc")
    remove_leftovers(tmp_path, "s-")
    assert kept.exists()
    living.kill()
    living.communicate()


def test_a_folder_in_the_making_stays_and_an_old_one_without_a_lock_goes(tmp_path: Path) -> None:
    (tmp_path / "s-new").mkdir()
    (tmp_path / "s-old").mkdir()
    long_ago = time.time() - UNLOCKED_S - 60
    os.utime(tmp_path / "s-old", (long_ago, long_ago))
    remove_leftovers(tmp_path, "s-")
    assert [path.name for path in tmp_path.iterdir()] == ["s-new"]


def test_links_files_and_locks_that_are_links_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / LOCK).touch()
    (tmp_path / "s-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "s-file").touch()
    (tmp_path / "s-odd").mkdir()
    (tmp_path / "s-odd" / LOCK).symlink_to(tmp_path / "elsewhere" / LOCK)
    remove_leftovers(tmp_path, "s-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "s-file", "s-link", "s-odd"]
    assert (tmp_path / "elsewhere" / LOCK).exists()


def test_a_folder_that_cannot_be_emptied_keeps_its_lock_file_and_goes_with_the_next_call(tmp_path, monkeypatch) -> None:
    """A worker that outlives its owner by a moment writes on while another one removes."""
    killed, left = owner(tmp_path)
    killed.kill()
    killed.communicate()
    (left / "runs").mkdir()
    with monkeypatch.context() as context:
        context.setattr(shutil, "rmtree", failing)
        remove_leftovers(tmp_path, "s-")
    assert (left / LOCK).exists()
    remove_leftovers(tmp_path, "s-")
    assert not left.exists()


def failing(path: Path, ignore_errors: bool = False) -> None:
    if not ignore_errors:
        raise OSError(errno.ENOTEMPTY, "written to meanwhile", path)
    (path / LOCK).unlink()
