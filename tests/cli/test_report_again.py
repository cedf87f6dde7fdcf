"""A run folder is data of others: it is judged by what lies in it, nothing in it runs, and no link leads out of it."""

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

SIMULATED = ("--world", "simulated", "--seed", "3", "--plain")
MINE = """
from pathlib import Path
from dataclasses import replace
from scenarios import smoke
Path({ran!r}).touch()
SCENARIO = replace(smoke.SCENARIO, name="mine"{change})
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with one of `smoke`."""
    runs = tmp_path_factory.mktemp("made")
    assert cli.main(["run", "smoke", *SIMULATED, "--runs", str(runs)]) == 0
    return runs


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "runs", symlinks=True))


def own(tmp_path: Path, change: str = "") -> Path:
    """A scenario file that leaves a trace when it runs."""
    file = tmp_path / "mine.py"
    file.write_text(MINE.format(ran=str(tmp_path / "ran"), change=change))
    return file


def report(runs: Path, *words: str) -> int:
    return cli.main(["report", *words, "--runs", str(runs)])


def test_a_run_is_judged_by_its_own_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "myplan.toml"
    shutil.copy(Path(cli.__file__).parents[1] / "topo/plans/tiny.toml", plan)
    runs = tmp_path / "runs"
    assert cli.main(["run", "smoke", "--plan", str(plan), *SIMULATED, "--runs", str(runs)]) == 0
    plan.unlink()
    capsys.readouterr()
    assert report(runs) == 0
    assert "other checks" not in capsys.readouterr().out


def test_no_file_that_a_run_folder_names_is_run(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = find(runs, "latest")
    options = json.loads((run / "options.json").read_text())
    (run / "options.json").write_text(json.dumps({**options, "source": str(own(tmp_path))}))
    assert report(runs) == 0
    assert not (tmp_path / "ran").exists()
    assert capsys.readouterr().out.startswith("judged with other checks: only those that hold for every run")


def test_the_verdict_that_a_run_folder_holds_moves_no_terminal(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = find(runs, "latest") / "verdict.json"
    file.write_text(json.dumps({"verdict": "\x1b]0;owned\x07\nfalse"}))
    assert report(runs) == 0
    said = capsys.readouterr().err
    assert said.splitlines() == ["the first verdict was {0}]0;owned{0}{0}false".format("\N{REPLACEMENT CHARACTER}")]


def test_an_own_scenario_is_kept_as_a_copy_that_runs_on_request(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(own(tmp_path).parent)
    runs = tmp_path / "runs"
    assert cli.main(["run", "mine.py", *SIMULATED, "--runs", str(runs)]) == 0
    run = find(runs, "latest")
    first = (run / "verdict.json").read_text()
    (tmp_path / "mine.py").unlink()  # edited, moved or gone: the run has its own
    (tmp_path / "ran").unlink()
    monkeypatch.chdir("/")
    capsys.readouterr()
    assert report(runs) == 0
    assert not (tmp_path / "ran").exists()
    assert capsys.readouterr().out.startswith("judged with other checks")
    assert (run / "verdict.json").read_text() == first
    assert (run / "verdict-again.json").exists()
    assert report(runs, "--trust") == 0
    assert (tmp_path / "ran").exists()
    assert "other checks" not in capsys.readouterr().out


def test_a_copy_that_was_edited_is_said_to_be_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    assert cli.main(["run", str(own(tmp_path)), *SIMULATED, "--runs", str(runs)]) == 0
    run = find(runs, "latest")
    first = (run / "verdict.json").read_text()
    shutil.copy(own(tmp_path, ", checks=lambda setting: []"), run / "scenario.py")
    capsys.readouterr()
    report(runs, "--trust")
    assert "is not the file that the run was made with" in capsys.readouterr().out.splitlines()[0]
    assert (run / "verdict.json").read_text() == first


@pytest.mark.smoke  # no other test of ring 1 has the former
def test_a_fuller_journal_is_not_replaced_by_a_lesser_one_which_makes_a_run_unknown_and_not_false(runs: Path) -> None:
    run = find(runs, "latest")
    whole = (run / "journal.jsonl").read_bytes()
    part = run / "journal" / "h0.jsonl"
    lines = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[: len(lines) // 2]))
    assert report(runs) == 0
    assert (run / "journal.jsonl").read_bytes() == whole
    (run / "journal.jsonl").unlink()
    assert report(runs) == 3
    assert "h0" in (run / "summary.txt").read_text()


def _link(path: Path) -> None:
    target = path.with_name("elsewhere")
    shutil.move(path, target)
    path.symlink_to(target)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("name", ["options.json", "plan.toml", "journal/h0.jsonl", "verdict.json"])
@pytest.mark.parametrize(("put", "said"), [(_link, "a symbolic link"), (_fifo, "a FIFO")])
def test_links_and_fifos_in_a_run_folder_are_refused_by_name(name, put: object, said, runs: Path, capsys) -> None:
    run = find(runs, "latest")
    assert callable(put)
    put(run / name)
    assert report(runs, str(run)) == 2
    assert f"{Path(name).name} must be a regular file (it is {said})" in capsys.readouterr().err


def test_a_link_in_place_of_a_result_is_replaced_and_not_written_through(runs: Path, tmp_path: Path) -> None:
    run = find(runs, "latest")
    (run / "summary.txt").unlink()
    (tmp_path / "theirs").write_text("thesis")
    (run / "summary.txt").symlink_to(tmp_path / "theirs")
    assert report(runs) == 0
    assert (tmp_path / "theirs").read_text() == "thesis"


def test_a_run_of_an_incident_has_a_page_and_no_verdict(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = find(runs, "latest")
    (run / "options.json").write_text('{"scenario": "incident", "plan": "incident-1", "level": 1}')
    assert report(runs) == 2
    assert f"{run} has no phases to judge" in capsys.readouterr().err


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


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A run as strangers hand it in: without its replay, and with its journal in parts."""
    original = find(made, "latest")
    run = Path(shutil.copytree(original, tmp_path / "handed in" / "smoke" / original.name))
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
def test_a_journal_that_is_a_link_is_refused_before_anything_is_written(name: str, run: Path, tmp_path, capsys) -> None:
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


def test_a_folder_that_becomes_a_link_between_two_looks_is_not_followed(run: Path, tmp_path, monkeypatch) -> None:
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


def test_a_file_of_any_size_is_refused_with_its_line(run: Path, tmp_path: Path) -> None:
    """Of many gigabytes, and of one line: a journal, a packet log, and the small files of a run."""
    told: list[str] = []
    commands: list[list[str]] = []
    for name, readers, said in (
        ("journal/h1.jsonl", READERS, "h1.jsonl:{line} must be a line of at most {most} bytes"),
        ("packets.jsonl", ("view", "perfetto"), "packets.jsonl:1 must be a line of at most {most} bytes"),
        ("options.json", ("report",), "options.json must have at most"),
        ("plan.toml", ("report",), "plan.toml must have at most"),
    ):
        folder = Path(shutil.copytree(run.parent, tmp_path / name.replace("/", "-"))) / run.name
        (folder / name).touch()
        line = 1 + (folder / name).read_bytes().count(b"\n")
        os.truncate(folder / name, SPARSE)
        commands += [words(reader, folder, tmp_path / "out") for reader in readers]
        told += [said.format(line=line, most=plain_file.LINE_BYTES_MAX)] * len(readers)
    results = bounded(commands)
    for command, expected, (status, errors) in zip(commands, told, results, strict=True):
        assert status == 2, (command, errors)
        assert expected in errors, command
    assert not [*tmp_path.glob("*/*/report.html"), *tmp_path.glob("*/*/replay.html"), *(tmp_path / "out").iterdir()]


COMMANDS = """
import contextlib, io, json, sys
from cli.main import main
results = []
for words in json.load(sys.stdin):
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        results.append((main(words), errors.getvalue()))
print(json.dumps(results), file=sys.stderr)
"""


def bounded(commands: list[list[str]]) -> list[tuple[int, str]]:
    """The status and the errors of each command, in one process that may not take the machine's memory.

    A mapped file counts as addresses, not as memory.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", COMMANDS], input=json.dumps(commands),
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)),
    )  # fmt: skip
    return [(status, errors) for status, errors in json.loads(done.stderr.splitlines()[-1])]
