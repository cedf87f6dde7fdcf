"""A run folder that a stranger made: root's private files stay private, and a few kilobytes take no memory."""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli import main as cli
from common import plain_file
from page.feed import Feed
from running.directory import find

ROOT = Path(__file__).resolve().parents[2]
SECRET = "of root alone"
MEMORY = 1 << 30
"""The command alone takes 300 MB of it."""
SPARSE = 40 << 30
READERS = {
    "report": ("report", "{run}"),
    "view": ("view", "{run}", "--export", "{out}/x.html"),
    "perfetto": ("export", "perfetto", "{run}", "-o", "{out}/x.json"),
    "cm": ("export", "cm", "{run}", "-o", "{out}/x.cm"),
    "compare": ("compare", "{run}", "{run}-2"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("made")
    assert cli.main(["run", "smoke", "--world", "simulated", "--seed", "3", "--plain", "--runs", str(runs)]) == 0
    return find(runs, "latest")


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A run as strangers hand it in: without its replay, and with its journal in parts."""
    run = Path(shutil.copytree(made, tmp_path / "runs" / "smoke" / made.name))
    for name in ("journal.jsonl", "replay.html", "report.html", "summary.txt", "verdict.json"):
        (run / name).unlink()
    shutil.copytree(run, run.with_name(f"{run.name}-2"))
    return run


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


def words(name: str, run: Path, out: Path) -> list[str]:
    out.mkdir(exist_ok=True)
    return [word.format(run=run, out=out) for word in READERS[name]]


@pytest.mark.parametrize("name", READERS)
def test_a_journal_that_is_a_link_is_refused_before_anything_is_written(
    name: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private = tmp_path / "private"
    shutil.move(run / "journal", private)
    with (private / "h0.jsonl").open("a") as file:
        file.write(json.dumps({"t_ns": 1, "node": "h0", "kind": "secret", "what": SECRET}) + "\n")
    private.chmod(0o700)
    (run / "journal").symlink_to(private)
    before = everything(run)
    assert cli.main(words(name, run, tmp_path / "out")) == 2
    assert "journal must be a directory (it is a symbolic link)" in capsys.readouterr().err
    assert everything(run) == before
    assert not everything(tmp_path / "out")


def test_a_folder_that_becomes_a_link_between_two_looks_is_not_followed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look by name is won by a stranger who swaps the folder behind it; what is opened is not."""
    private = tmp_path / "private"
    shutil.move(run / "journal", private)
    (run / "journal").symlink_to(private)
    monkeypatch.setattr(plain_file, "check_folder", lambda path: None)
    with pytest.raises(OSError, match="journal must be a directory"):
        Feed(run)


@pytest.mark.root
def test_a_file_below_the_link_of_another_user_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "h0.jsonl").write_text(SECRET)
    (tmp_path / "journal").symlink_to("private")
    plain_file.read_bytes(tmp_path / "journal" / "h0.jsonl")  # this user's own link
    os.chown(tmp_path / "journal", 65534, 65534, follow_symlinks=False)
    with pytest.raises(OSError, match="is a symbolic link of user 65534"):
        plain_file.read_bytes(tmp_path / "journal" / "h0.jsonl")


@pytest.mark.parametrize("name", READERS)
def test_a_sparse_journal_is_refused_with_file_and_line(name: str, run: Path, tmp_path: Path) -> None:
    number = 1 + (run / "journal" / "h1.jsonl").read_bytes().count(b"\n")
    os.truncate(run / "journal" / "h1.jsonl", SPARSE)
    done = bounded(words(name, run, tmp_path / "out"))
    assert done.returncode == 2, done.stderr
    assert f"h1.jsonl:{number} must be a line of at most {plain_file.LINE_BYTES_MAX} bytes" in done.stderr
    assert not (run / "report.html").exists()
    assert not (run / "replay.html").exists()


def test_a_packet_log_of_one_line_is_refused(run: Path, tmp_path: Path) -> None:
    (run / "packets.jsonl").touch()
    os.truncate(run / "packets.jsonl", SPARSE)
    for name in ("view", "perfetto"):
        done = bounded(words(name, run, tmp_path / "out"))
        assert done.returncode == 2, done.stderr
        assert "packets.jsonl:1 must be a line of at most" in done.stderr


@pytest.mark.parametrize("name", ["options.json", "plan.toml"])
def test_another_file_of_any_size_is_refused(name: str, run: Path, tmp_path: Path) -> None:
    os.truncate(run / name, SPARSE)
    done = bounded(words("report", run, tmp_path / "out"))
    assert done.returncode == 2, done.stderr
    assert f"{name} must have at most" in done.stderr


def bounded(command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command that may not take the machine's memory. A mapped file counts as addresses, not as memory."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "cli", *command],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)),
    )  # fmt: skip
