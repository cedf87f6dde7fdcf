"""A path selection or congestion control from outside of the repository: `--setting selection=file.py:Class`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli import main as cli
from judging.run import Run
from running.directory import find

ROOT = Path(__file__).parents[2]
FIRST_PLANE = '''
class FirstPlane:
    """Everything on the first live plane: wrong on purpose, so that it shows."""

    heeds_signals = True

    def __init__(self, evs, rng):
        self._evs = evs

    def next(self, usable):
        plane = self._evs.live[0] if self._evs.live else None
        return plane.take() if plane is not None and plane.bit & usable else None
'''


def run(tmp_path: Path, *words: str) -> int:
    runs = ("--runs", str(tmp_path / "runs"), "--world", "simulated", "--plain", "--seed", "1", "--time", "0.3")
    return cli.main(["run", "smoke", *runs, *words])


def test_a_selection_of_ones_own_decides_the_paths_and_is_part_of_the_runs_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text(FIRST_PLANE)
    run(tmp_path, "--setting", "selection=mine.py:FirstPlane")
    path = find(tmp_path / "runs", "latest")
    options = json.loads((path / "options.json").read_text())
    assert options["settings"]["selection"] == f"{file}:FirstPlane"
    ports = Run.open(path).agent_samples["h0"][3]["ports"]
    sent = {port["plane"]: port["tx_bytes"] for port in ports}
    assert sent[0] > 20 * max(sent[1], 1)
    file.write_text(FIRST_PLANE + "\n# edited\n")
    run(tmp_path, "--setting", "selection=mine.py:FirstPlane")
    again = json.loads((find(tmp_path / "runs", "latest") / "options.json").read_text())
    assert {k for k in options["hashes"] if options["hashes"][k] != again["hashes"][k]} == {"transport"}


def test_a_congestion_control_that_knows_no_late_host_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "window.py"
    text = (ROOT / "endpoint/mrc/congestion/fixed_window.py").read_text()
    file.write_text(text.replace("class FixedWindow", "class Mine").replace("host_was_late", "host_was_early"))
    assert run(tmp_path, "--setting", f"congestion={file}:Mine") == 2
    assert "class Mine lacks host_was_late (endpoint/mrc/congestion/congestion.py)" in capsys.readouterr().err


def test_a_congestion_control_of_ones_own_runs(tmp_path: Path) -> None:
    file = tmp_path / "window.py"
    shutil.copy(ROOT / "endpoint/mrc/congestion/fixed_window.py", file)
    file.write_text(file.read_text().replace("class FixedWindow", "class Mine"))
    assert run(tmp_path, "--setting", f"congestion={file}:Mine") in (0, 1, 3)
    assert Run.open(find(tmp_path / "runs", "latest")).kind("step")


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (None, "Mine", "selection: {file}: no such file"),
        ("x = (", "Mine", "{file}:1: SyntaxError"),
        ("\n1 / 0\n", "Mine", "{file}:2: ZeroDivisionError"),
        ("class Yours: pass", "Mine", "has no class 'Mine'; it has Yours"),
        ("class Mine: pass", "Mine", "class Mine lacks heeds_signals, next (endpoint/mrc/paths/selection.py)"),
    ],
)
def test_what_is_no_selection_is_refused_by_file_and_line_before_anything_is_written(
    text: str | None, name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    if text is not None:
        file.write_text(text)
    assert run(tmp_path, "--setting", f"selection={file}:{name}") == 2
    assert said.format(file=file) in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
