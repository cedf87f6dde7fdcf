"""A file that is replaced is never half there."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from common import files
from common.outcome import error_line
from common.plain_file import NotPlainError


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.write_json(path, {"a": 1})
    with path.open() as reader:
        files.write_json(path, {"a": 2})
        assert json.load(reader) == {"a": 1}
    assert json.loads(path.read_text()) == {"a": 2}
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o002, 0o644), (0o027, 0o640), (0o077, 0o600)])
@pytest.mark.parametrize("write", [files.write, files.write_named, files.write_new])
def test_the_users_umask_says_who_may_read_a_file(
    mask: int, mode: int, write: Callable[[Path, str], object], tmp_path: Path
) -> None:
    before = os.umask(mask)
    try:
        write(tmp_path / "grades.csv", "anna,9\n")
    finally:
        os.umask(before)
    assert (tmp_path / "grades.csv").stat().st_mode & 0o777 == mode


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    files.write(path, "before")

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        files.write(path, "after")
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("write", [files.write, files.write_named, files.write_new])
def test_a_full_disk_is_told_with_the_file_that_met_it(
    write: Callable[[Path, str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's own error of a write says nothing of a file."""
    opened = os.fdopen

    def full(handle: int, *words: Any, **more: Any) -> object:
        os.close(handle)
        return opened(os.open("/dev/full", os.O_WRONLY), *words, **more)

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match="No space left") as raised:
        write(tmp_path / "a", "text")
    assert error_line(raised.value) == f"{tmp_path / 'a'}: no space left on device"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_a_user_names_is_replaced_and_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    """As root, replacing /dev/null or /dev/stdout would take them from every program of the machine."""
    fifo, link, plain = (tmp_path / name for name in ("fifo", "link", "plain"))
    os.mkfifo(fifo)
    link.symlink_to(plain)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert not files.write_named(fifo, [b"a", b"b"])
        assert os.read(reader, 9) == b"ab"
    finally:
        os.close(reader)
    assert files.write_named(plain, "first")
    assert not files.write_named(link, "second")
    assert link.is_symlink()
    assert plain.read_text() == "second"
    with pytest.raises(IsADirectoryError):
        files.write_named(tmp_path, "third")


@pytest.mark.parametrize("write", [files.write, files.write_named, files.write_new])
def test_a_folder_that_is_missing_is_told_with_the_file_that_was_to_be_there(
    tmp_path: Path, write: Callable[[Path, str], object]
) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        write(tmp_path / "gone" / "a.txt", "text")
    assert error_line(raised.value) == f"{tmp_path / 'gone' / 'a.txt'}: no such file or directory"


def test_a_new_file_is_there_whole_or_not_at_all_and_never_in_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    files.write_new(path, "first")
    with pytest.raises(FileExistsError):
        files.write_new(path, "second")
    assert path.read_text() == "first"

    def killed(*_: object, **__: object) -> None:
        assert not (tmp_path / "b").exists(), "nothing is there before all of it is"
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", killed)
    with pytest.raises(KeyboardInterrupt):
        files.write_new(tmp_path / "b", "third")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_what_of_a_cache_nobody_has_used_for_a_month_goes(tmp_path: Path) -> None:
    long_ago_s = time.time() - files.KEPT_S - 10
    for name in ("old.so", "used.so", "other.json"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (long_ago_s, long_ago_s))
    (tmp_path / "new.so").touch()
    assert files.in_use(tmp_path / "used.so")
    assert not files.in_use(tmp_path / "absent.so")
    files.drop_unused(tmp_path, "*.so", time.time())
    assert {path.name for path in tmp_path.iterdir()} == {"used.so", "new.so", "other.json"}


def test_what_is_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").symlink_to("/none/x")
    (tmp_path / "file").write_text("")
    (tmp_path / "there").mkdir()
    cases = {
        tmp_path / "runs" / "smoke": rf"{tmp_path}/runs must be a folder \(it is a link to /none/x, which is missing\)",
        tmp_path / "runs": rf"{tmp_path}/runs must be a folder \(it is a link",
        tmp_path / "file" / "a": rf"{tmp_path}/file must be a folder \(it is none\)",
        Path("/proc/self/smoke"): r"/proc/self/smoke must be in a folder where others can be made \(no such file",
    }
    for path, said in cases.items():
        with pytest.raises(NotPlainError, match=said):
            files.make_folder(path)
    files.make_folder(tmp_path / "there" / "sub" / "x")
    files.make_folder(tmp_path / "there")
    assert (tmp_path / "there" / "sub" / "x").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
def test_a_link_of_another_user_leads_no_folder_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In another user's folder, `start` and `sweep` of root wrote into the folder that the link named."""
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "there"
    there.mkdir()
    for name, words in (("mylab", ["start", "1"]), ("runs", ["run", "smoke", "--world", "simulated", "--seed", "1"])):
        link = tmp_path / name
        link.symlink_to(there)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        assert main(words) == 2
        assert f"({name} is a symbolic link of user 65534)" in capsys.readouterr().err
        with pytest.raises(NotPlainError, match=f"{name} is a symbolic link of user 65534"):
            files.make_folder(link / "a" / "b")
        assert list(there.iterdir()) == []
        monkeypatch.setenv("SUDO_UID", "65534")
        files.make_folder(link / "a" / "b")
        monkeypatch.delenv("SUDO_UID")
        shutil.rmtree(there / "a")


@pytest.mark.parametrize("words", [["report"], ["run", "smoke", "--world", "simulated"], ["sweep", "smoke"]])
def test_a_link_to_nowhere_in_the_place_of_runs_is_named(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").symlink_to("/none/x")
    assert main([*words, "--runs", str(tmp_path / "runs")]) == 2
    assert "/runs must be a folder (it is a link to /none/x, which is missing)" in capsys.readouterr().err
