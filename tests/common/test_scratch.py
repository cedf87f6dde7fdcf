"""Scratch folders, caches and lock files: their owner's alone, and removed when the owner is gone."""

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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from common import cache, files, locks, scratch
from common.locks import OWNER as LOCK
from common.plain_file import NotPlainError
from common.scratch import UNLOCKED_S, Scratch, remove_leftovers
from tests.helpers.stranger import let_all_enter
from tests.helpers.tracked import python_files
from tests.helpers.waiting import eventually

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


HOLD = """import fcntl, sys
file = open(sys.argv[1])
fcntl.flock(file, fcntl.LOCK_EX)
print('held', flush=True)
input()"""


@contextmanager
def holding(path: Path, user: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a lock for as long as it may."""
    words = [sys.executable if user is None else "/usr/bin/python3", "-c", HOLD, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=user) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_lock_file_is_its_owners_alone_also_an_old_one_and_a_link_or_a_fifo_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.touch(0o644)
    for path in (old, tmp_path / "new"):
        os.close(locks.opened(path))
        assert mode(path) == 0o600
    for path in (tmp_path / "rows", old):
        path.touch(0o644)
        locks.close_to_others(path)
        assert mode(path) == 0o600
    victim = tmp_path / "victim"
    victim.touch(0o644)
    (tmp_path / "link").symlink_to(victim)
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "dangling", "fifo"):
        with pytest.raises(NotPlainError, match="must be a regular file"):
            locks.opened(tmp_path / name)
        with pytest.raises(NotPlainError, match="must be a regular file"):
            locks.close_to_others(tmp_path / name)
    assert mode(victim) == 0o644
    assert not (tmp_path / "none").exists()


def test_a_wait_names_the_holder_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "TELL_S", 0.05)
    said: list[str] = []
    path = tmp_path / "lock"
    path.touch()
    with holding(path) as process:
        with pytest.raises(locks.LockedError) as caught, locks.held(path, "the lock of this test", 0.3, said.append):
            pass
        (line,) = said
        assert line.startswith("waiting for the lock of this test, at most 0 s more: process ")
        for text in (line, str(caught.value)):
            assert f"process {process.pid} of user {os.geteuid()} ({sys.executable} -c import fcntl, sys" in text
        assert str(caught.value).endswith("after 0.3 s: end it, or try again later")
    said.clear()
    with locks.held(path, "the lock of this test", 0.3, said.append):
        assert said == []


def test_a_lock_that_is_inherited_names_the_process_that_still_has_it(tmp_path: Path) -> None:
    """The process that took it has ended: `/proc/locks` names that one for ever."""
    path = tmp_path / "lock"
    lock = locks.opened(path)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock]) as heir:
        os.close(lock)
        eventually(lambda: f"process {heir.pid} " in locks.holder(path), "the heir is named")
        heir.communicate(b"\n")
    assert locks.holder(path) == "another process"


@pytest.mark.root
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a Python that other users can run")
def test_a_stranger_who_had_it_open_before_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_all_enter(tmp_path)
    path = tmp_path / "lock"
    path.touch(0o644)
    with (
        holding(path, user=65534) as process,
        pytest.raises(locks.LockedError, match=f"process {process.pid} of user 65534"),
        locks.held(path, "the lock of this test", 0.1),
    ):
        pass


@pytest.fixture(autouse=True)
def root_without_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of root get the replacement that every user gets."""
    monkeypatch.setattr(cache, "_ROOTS", "/proc/nope")


def test_the_users_cache_is_taken_where_it_can_be_made_and_a_relative_place_ignored(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "yet"))
    assert cache.directory() == str(tmp_path / "not" / "yet" / "mrclab")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.directory() == str(tmp_path / ".cache" / "mrclab")
    assert not any(tmp_path.iterdir())  # to ask for the place makes nothing
    monkeypatch.setenv("XDG_CACHE_HOME", "nosuch/relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.directory() == str(tmp_path / ".cache" / "mrclab")


def test_a_place_that_cannot_be_written_is_replaced_once_and_for_children(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nope")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = cache.directory()
    assert Path(found).parent.parent == tmp_path
    assert Path(found).parent.stat().st_mode & 0o777 == 0o700
    assert "/proc/nope/mrclab cannot be written" in capsys.readouterr().err
    assert cache.directory() == found == os.path.join(os.environ["XDG_CACHE_HOME"], "mrclab")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("how", ["link", "open to others", "file"])
def test_a_name_that_others_have_taken_is_passed_over_and_the_next_process_finds_the_same_folder(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In /tmp any user may make a folder of any name: it must not keep another user from working."""
    place = tmp_path / f"mrclab-cache-{os.geteuid()}"
    if how == "link":
        (tmp_path / "theirs").mkdir()
        place.symlink_to(tmp_path / "theirs")
    elif how == "file":
        place.touch()
    else:
        place.mkdir()
        place.chmod(0o777)
    found = set()
    for _ in range(2):
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nope")
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        found.add(Path(cache.directory()).parent)
    (own,) = found
    assert own.parent == tmp_path
    assert own != place
    assert own.stat().st_mode & 0o777 == 0o700


STRANGER = 1234567


def stranger_owns(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """As if another user had made these files: only root could hand them over."""
    found, stranger = os.stat, {os.path.realpath(path) for path in paths}

    def stat(path: Any, **options: Any) -> os.stat_result:
        status = found(path, **options)
        own = isinstance(path, int) or os.path.realpath(path) not in stranger
        return status if own else os.stat_result((*status[:4], STRANGER, *status[5:]))

    monkeypatch.setattr(os, "stat", stat)


@pytest.mark.parametrize("part", ["", "home", "home/.cache", "home/.cache/mrclab"])
@pytest.mark.parametrize("how", [0o777, 0o775, "stranger", "sticky"])
def test_a_cache_that_another_user_could_write_or_exchange_is_replaced_and_not_executed(
    how: int | str, part: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`sudo -E` keeps HOME and XDG_CACHE_HOME: root executed what their owner had put there."""
    place = tmp_path / "top" / "home" / ".cache" / "mrclab"
    place.mkdir(parents=True)
    for folder in (place, *list(place.parents)[:4]):
        folder.chmod(0o755)
    changed = tmp_path / "top" / part
    if how == "stranger":
        stranger_owns(monkeypatch, changed)
    else:
        changed.chmod(0o1777 if how == "sticky" else int(how))
    monkeypatch.setenv("XDG_CACHE_HOME", str(place.parent))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found, said = cache.directory(), capsys.readouterr().err
    if how == "sticky" and changed != place:  # such as /tmp, where each entry is its owner's
        assert (found, said) == (str(place), "")
        return
    assert Path(found).parent.parent == tmp_path
    remedy = {0o777: f": chmod go-w {changed}", 0o775: f": chmod g-w {changed}", "sticky": f": chmod go-w {changed}"}
    assert f"{place} must be this user's alone (others may write to {changed}{remedy.get(how, '')})" in said
    assert (cache.directory(), capsys.readouterr().err) == (found, "")


def test_root_takes_its_own_home_in_place_of_the_callers(monkeypatch, tmp_path, capsys) -> None:
    """`./lab up` asks for root with `sudo -E`: no words are due each time."""
    for name in ("eve", "root"):
        (tmp_path / name).mkdir(mode=0o755)
    stranger_owns(monkeypatch, tmp_path / "eve")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "eve"))
    monkeypatch.setattr(cache, "_ROOTS", str(tmp_path / "root"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert cache.directory() == cache.directory() == str(tmp_path / "root" / "mrclab")
    assert capsys.readouterr().err == ""


def test_temporary_files_in_another_users_folder_are_no_replacement(monkeypatch, tmp_path) -> None:
    stranger_owns(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(cache, "_replacement", lambda temporary: temporary)
    assert cache.directory() == "/tmp/mrclab"


def test_a_link_to_a_cache_is_followed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its owner could lead it elsewhere after the look at what it names."""
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link"))
    assert cache.directory() == str(tmp_path / "real" / "mrclab")


def test_a_file_that_another_user_put_into_a_cache_is_not_in_use(monkeypatch, tmp_path) -> None:
    for name, mode in (("own", 0o755), ("shared", 0o775), ("theirs", 0o755)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    stranger_owns(monkeypatch, tmp_path / "theirs")
    assert [files.in_use(tmp_path / name) for name in ("own", "shared", "theirs", "none")] == [True, *[False] * 3]


def test_a_new_cache_is_its_users_alone_whatever_the_umask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    before = os.umask(0)
    try:
        files.make_cache(files.cache_directory())
    finally:
        os.umask(before)
    assert cache.directory() == str(tmp_path / ".cache" / "mrclab")
