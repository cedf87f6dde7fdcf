"""Only links of root, this user and sudo's caller are followed, wherever on a way; no FIFO is waited for."""

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.main import main
from common import files
from common.interpreter import python
from common.outcome import error_line
from common.plain_file import NotPlainError, followed, opened_parent

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
def test_nothing_is_written_behind_a_link_of_another_user(
    tmp_path: Path, secret: Path, way: str, write: Callable[..., object]
) -> None:
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
def test_links_of_the_user_who_called_sudo_are_followed(
    tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(CALLER))
    link = given(tmp_path / "runs", "secret", CALLER)
    assert followed(link / "a") == secret / "a"
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
def test_a_run_behind_a_link_of_another_user_is_neither_read_nor_written(
    tmp_path: Path, secret: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
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
        assert main(["report", name, "--runs", str(runs)]) == 2
        said = capsys.readouterr().err
        assert "is a symbolic link of user 65534" in said or "no run" in said
    assert [path.name for path in run.iterdir()] == ["options.json"]


@as_root
@pytest.mark.parametrize(
    "words",
    [
        ["graph", "tiny", "-o", "sub/g.svg"],
        ["topo", "draw", "tiny", "-o", "sub/g.svg"],
        ["export", "json", "tiny", "-o", "sub/g.json"],
        ["switch", "compile", "P4", "-o", "sub"],
        ["graph", "tiny", "-o", "g.svg"],
    ],
    ids=" ".join,
)
def test_no_command_writes_behind_a_link_of_another_user(
    tmp_path: Path, secret: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given(tmp_path / "sub", secret)
    given(tmp_path / "g.svg", secret / "x")
    assert main([str(ROOT / "p4" / "leaf.p4") if word == "P4" else word for word in words]) == 2
    assert "is a symbolic link of user 65534" in capsys.readouterr().err
    assert list(secret.iterdir()) == []
