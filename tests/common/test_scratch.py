"""Scratch folders: one's own stays while one lives, a killed owner's goes, whatever its process number is now."""

import errno
import fcntl
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from common import scratch
from common.locks import OWNER as LOCK
from common.plain_file import NotPlainError
from common.scratch import UNLOCKED_S, Scratch, remove_leftovers
from tests.helpers.tracked import python_files

ROOT = Path(__file__).resolve().parents[2]
OWNER = """
import sys, time
from pathlib import Path
from typing import Any
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


def test_no_folder_is_made_where_another_user_could_put_one_in_its_place(monkeypatch, tmp_path, capsys) -> None:
    """Programs of root import what lies in some, such as `launch`'s. Under a full /tmp, Python itself takes the current
    folder, whosever it is."""
    shared, usual = tmp_path / "shared", tmp_path / "usual"
    for folder, mode in ((shared, 0o777), (usual, 0o1777)):
        folder.mkdir()
        folder.chmod(mode)
    monkeypatch.setattr(scratch, "USUAL", str(usual))
    monkeypatch.setenv("TMPDIR", str(shared))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for said in (f"mrclab: {shared} must be a folder in which no other user can rename yours", ""):
        with Scratch("s-") as path:
            assert path.parent == usual
        err = capsys.readouterr().err
        assert err.startswith(said)
        assert bool(err) == bool(said)
    assert os.environ["TMPDIR"] == str(usual)  # for child processes
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    usual.chmod(0o777)
    with pytest.raises(NotPlainError, match="name another one by TMPDIR"):
        Scratch("s-")
    assert not any(shared.iterdir())


@pytest.mark.parametrize("descriptors", [200, 8000])
def test_a_folder_goes_however_deep_a_user_has_nested_others_in_it(tmp_path: Path, descriptors: int) -> None:
    """The page's has been given to a user: no later command of root could begin, since each removes it first."""
    nested = "import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(3000)]"
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(descriptors, most), most))
    try:
        with Scratch("s-", tmp_path) as path:
            subprocess.run([sys.executable, "-c", nested], cwd=path, check=True)
        assert not any(tmp_path.iterdir())
        process, left = owner(tmp_path)
        subprocess.run([sys.executable, "-c", nested], cwd=left, check=True)
        process.kill()
        process.communicate()
        remove_leftovers(tmp_path, "s-")
        assert not left.exists()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
        subprocess.run(["rm", "-rf", "--", *tmp_path.iterdir()], check=True)  # pytest's own removal recurses


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


def test_a_folder_that_is_taken_for_a_leftover_before_its_lock_is_held_is_made_again(tmp_path, monkeypatch) -> None:
    taken: list[Path] = []
    flock = fcntl.flock

    def late(lock: int, how: int) -> None:
        if not taken:
            taken.extend(tmp_path.iterdir())
            remove_leftovers(tmp_path, "s-")
        flock(lock, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with Scratch("s-", tmp_path) as path:
        assert path.is_dir()
        assert [path] != taken
        assert list(tmp_path.iterdir()) == [path]


def test_temporary_folders_of_processes_that_may_be_killed_are_scratch_folders() -> None:
    """A folder of `tempfile` alone stays when its owner is killed: only scratch folders and caches are swept."""
    made = re.compile(r"tempfile\.(?:mkdtemp|TemporaryDirectory)\(|\bTemporaryDirectory\(")
    found = {
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in python_files()
        for line in file.read_text().splitlines()
        if made.search(line) and ("dir=" not in line or "or None" in line)
    }
    assert not found


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


def failing(path: Path, ignore_errors: bool = False, dir_fd: int | None = None) -> None:
    if not ignore_errors:
        raise OSError(errno.ENOTEMPTY, "written to meanwhile", path)
    (path / LOCK).unlink()


def test_a_folder_that_becomes_a_link_during_its_removal_leads_nowhere(tmp_path, monkeypatch) -> None:
    """Its user renames it while root removes what is in it, and puts a link to folders of the same names there."""
    left, victim = tmp_path / "s-left", tmp_path / "victim"
    for name in ("first", "second"):
        for folder in (left, victim):
            (folder / name).mkdir(parents=True)
            (folder / name / "file").touch()
    (left / LOCK).touch()
    removed = shutil.rmtree

    def swapping(*path, **how) -> None:
        removed(*path, **how)
        if not left.is_symlink():
            left.rename(tmp_path / "renamed")
            left.symlink_to(victim)

    monkeypatch.setattr(shutil, "rmtree", swapping)
    remove_leftovers(tmp_path, "s-")
    assert left.is_symlink()
    assert sorted(path.name for path in victim.rglob("file")) == ["file", "file"]


def linked_folder(made: Path, victim: Path) -> None:
    made.rmdir()
    made.symlink_to(victim)


def linked_lock(made: Path, victim: Path) -> None:
    (made / LOCK).symlink_to(victim / LOCK)


@pytest.mark.parametrize("swap", [linked_folder, linked_lock])
def test_a_folder_that_is_replaced_before_its_lock_is_made_leads_nowhere(swap, tmp_path, monkeypatch) -> None:
    """By the user in whose folder root makes it."""
    victim = tmp_path / "victim"
    victim.mkdir()
    make = tempfile.mkdtemp

    def swapping(**how: Any) -> str:
        made: str = make(**how)
        swap(Path(made), victim)
        return made

    monkeypatch.setattr(tempfile, "mkdtemp", swapping)
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        Scratch("s-", tmp_path)
    assert not any(victim.iterdir())


@pytest.mark.root
def test_root_removes_what_it_has_made_for_another_user(tmp_path: Path) -> None:
    """The folder of the page's server is that server's user's, its lock file is root's."""
    killed, left = owner(tmp_path)
    killed.kill()
    killed.communicate()
    os.chown(left, 65534, 65534)
    remove_leftovers(tmp_path, "s-")
    assert not left.exists()
