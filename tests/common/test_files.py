"""Files: never half there when replaced, and reached only by links of root, this user and sudo's caller."""

import json
import os
import shutil
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from common import files
from common.interpreter import python
from common.outcome import error_line
from common.plain_file import NotPlainError, followed, opened_parent


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
def test_the_users_umask_says_who_may_read_a_file(mask, mode, write, tmp_path) -> None:
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
def test_a_full_disk_is_told_with_the_file_that_met_it(write, tmp_path, monkeypatch) -> None:
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
def test_a_folder_that_is_missing_is_told_with_the_file_that_was_to_be_there(tmp_path, write) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        write(tmp_path / "gone" / "a.txt", "text")
    assert error_line(raised.value) == f"{tmp_path / 'gone' / 'a.txt'}: no such file or directory"


def test_a_new_file_is_there_whole_or_not_at_all_and_never_in_place_of_another(tmp_path, monkeypatch) -> None:
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
def test_a_link_of_another_user_leads_no_folder_elsewhere(tmp_path, monkeypatch, refused) -> None:
    """In another user's folder, `start` and `sweep` of root wrote into the folder that the link named."""
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "there"
    there.mkdir()
    for name, words in (("mylab", ["start", "1"]), ("runs", ["run", "smoke", "--world", "simulated", "--seed", "1"])):
        link = tmp_path / name
        link.symlink_to(there)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        assert f"({name} is a symbolic link of user 65534)" in refused(*words)
        with pytest.raises(NotPlainError, match=f"{name} is a symbolic link of user 65534"):
            files.make_folder(link / "a" / "b")
        assert list(there.iterdir()) == []
        monkeypatch.setenv("SUDO_UID", "65534")
        files.make_folder(link / "a" / "b")
        monkeypatch.delenv("SUDO_UID")
        shutil.rmtree(there / "a")


@pytest.mark.parametrize("words", [["report"], ["run", "smoke", "--world", "simulated"], ["sweep", "smoke"]])
def test_a_link_to_nowhere_in_the_place_of_runs_is_named(words: list[str], tmp_path, refused) -> None:
    (tmp_path / "runs").symlink_to("/none/x")
    assert "/runs must be a folder (it is a link to /none/x, which is missing)" in refused(
        *words, "--runs", str(tmp_path / "runs")
    )


ROOT = Path(__file__).parents[2]
STRANGER, CALLER = 65534, 54321
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")


def given(link: Path, target: Path | str, user: int = STRANGER) -> Path:
    """A link of another user."""
    link.symlink_to(target)
    os.chown(link, user, user, follow_symlinks=False)
    return link


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "secret"
    folder.mkdir(mode=0o700)
    return folder


@as_root
@pytest.mark.parametrize("write", [files.write, files.write_named, files.write_new, files.open_growing])
@pytest.mark.parametrize("way", ["sub/g.svg", "sub/below/g.svg", "own/g.svg", "own/../own/g.svg"])
def test_nothing_is_written_behind_a_link_of_another_user(tmp_path: Path, secret: Path, way, write) -> None:
    (secret / "below").mkdir()
    given(tmp_path / "sub", secret)
    (tmp_path / "own").symlink_to("sub")  # root's own link leads to the stranger's
    with pytest.raises(NotPlainError, match=r"is a symbolic link of user 65534"):
        write(tmp_path / way, *([] if write is files.open_growing else ["text"]))
    assert [path.name for path in secret.rglob("*")] == ["below"]


@as_root
def test_a_link_of_another_user_in_place_of_a_named_file_is_refused(tmp_path: Path, secret: Path) -> None:
    there = secret / "kept"
    there.write_text("root's")
    link = given(tmp_path / "g.svg", there)
    with pytest.raises(NotPlainError, match=r"g.svg is a symbolic link of user 65534"):
        files.write_named(link, "text")
    own = tmp_path / "own.svg"
    own.symlink_to("g.svg")
    with pytest.raises(NotPlainError, match=r"g.svg is a symbolic link of user 65534"):
        files.write_named(own, "text")
    assert there.read_text() == "root's"


@as_root
def test_links_of_the_user_who_called_sudo_are_followed(tmp_path, secret: Path, monkeypatch) -> None:
    monkeypatch.setenv("SUDO_UID", str(CALLER))
    assert followed(given(tmp_path / "runs", "secret", CALLER) / "a") == secret / "a"
    assert not files.write_named(given(tmp_path / "g.svg", secret / "g", CALLER), "text")
    assert (secret / "g").read_text() == "text"


def test_a_path_is_followed_as_the_system_follows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/../a")
    (tmp_path / "whole").symlink_to(tmp_path / "link" / "b")
    (tmp_path / "round").symlink_to("round")
    monkeypatch.chdir(tmp_path)
    for way in ("link/b", "whole", "whole/..", "link/../link/./b", ".", "none/x", "/", "/proc/self/cwd/a", "link/none"):
        assert followed(Path(way)) == Path(way).resolve(), way
    with pytest.raises(OSError, match="Too many levels"):
        opened_parent(Path("round"))
    descriptors = len(os.listdir("/proc/self/fd"))
    for way in ("round", "none/x"):
        with pytest.raises(OSError, match=way):
            opened_parent(Path(way))
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_fifo_without_a_reader_is_not_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "g.svg"
    os.mkfifo(fifo)
    with pytest.raises(NotPlainError) as raised:
        files.write_named(fifo, "text")
    assert error_line(raised.value) == f"{fifo} must have a reader (it is a FIFO or a socket without one)"
    assert stat.S_ISFIFO(fifo.stat().st_mode)


@as_root
def test_a_fifo_of_another_user_is_refused_also_when_it_has_a_reader(tmp_path: Path) -> None:
    fifo = tmp_path / "g.svg"
    os.mkfifo(fifo)
    os.chown(fifo, STRANGER, STRANGER)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(NotPlainError, match="it is a FIFO of user 65534"):
        files.write_named(fifo, "text")
    os.close(reader)


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_standard_output_may_be_named_wherever_it_leads(tmp_path: Path, place: str, kind: str) -> None:
    program = (
        f"from pathlib import Path; from common import files; assert not files.write_named(Path({place!r}), 'text')"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (tmp_path / "out").open("wb") as file:
        stdout = subprocess.PIPE if kind == "pipe" else file
        done = subprocess.run(python("-c", program), stdout=stdout, env=environment, check=True)
    assert (done.stdout if kind == "pipe" else (tmp_path / "out").read_bytes()) == b"text"


@as_root
@pytest.mark.parametrize("where", ["run", "scenario", "runs"])
def test_a_run_behind_a_link_of_another_user_is_neither_read_nor_written(tmp_path, secret, where, refused) -> None:
    run = secret / "smoke" / "20261130-000000-1"
    run.mkdir(parents=True)
    (run / "options.json").write_text(json.dumps({"scenario": "smoke"}))
    runs = tmp_path / "runs"
    if where == "run":
        (runs / "smoke").mkdir(parents=True)
        given(runs / "smoke" / run.name, run)
    elif where == "scenario":
        runs.mkdir()
        given(runs / "smoke", secret / "smoke")
    else:
        given(runs, secret)
    for name in ("latest", "smoke", f"smoke/{run.name}", str(runs / "smoke" / run.name)):
        said = refused("report", name, "--runs", str(runs))
        assert "is a symbolic link of user 65534" in said or "no run" in said
    assert [path.name for path in run.iterdir()] == ["options.json"]
