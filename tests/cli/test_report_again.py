"""`./lab report`: a run folder is data. It is judged by what lies in it, and nothing in it runs unasked."""

import json
import os
import shutil
from pathlib import Path

import pytest

from cli import main as cli
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


def test_an_own_scenario_is_kept_as_a_copy_that_runs_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_fuller_journal_is_not_replaced_by_a_lesser_one(runs: Path) -> None:
    run = find(runs, "latest")
    whole = (run / "journal.jsonl").read_bytes()
    part = run / "journal" / "h0.jsonl"
    lines = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[: len(lines) // 2]))
    assert report(runs) == 0
    assert (run / "journal.jsonl").read_bytes() == whole


def test_a_journal_that_ends_too_early_makes_a_run_unknown_and_not_false(runs: Path) -> None:
    run = find(runs, "latest")
    (run / "journal.jsonl").unlink()
    part = run / "journal" / "h0.jsonl"
    lines = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[: len(lines) // 2]))
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
def test_links_and_fifos_in_a_run_folder_are_refused_by_name(
    name: str, put: object, said: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
