"""Locks that strangers cannot take, and waits that say for whom they are and end."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from common import locks
from common.plain_file import NotPlainError
from tests.helpers.stranger import let_all_enter
from tests.helpers.waiting import eventually

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
