"""An algorithm from outside of the repository: `--setting selection=file.py:Class`, and congestion and loss alike."""

import json
from pathlib import Path

import pytest

from cli import main as cli
from judging.run import Run
from running.directory import find

FIRST_PLANE = '''
from endpoint.mrc.paths.selection import Selection


class FirstPlane(Selection):
    """Everything on the first live plane: wrong on purpose, so that it shows."""

    def next(self, usable):
        plane = self.evs.live[0] if self.evs.live else None
        return plane.take() if plane is not None and plane.bit & usable else None
'''
OWN = """
from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.parameter import Parameter


class Mine(Congestion):
    parameters = (Parameter("packets", int, 64, 1, 4096, "packets", "the window"),)

    def __init__(self, path, values, shared):
        super().__init__(path, values, shared)
        self.window_bytes = values["packets"] * path.mtu_bytes

    def on_ack(self, now_ns, acked_bytes, rtt_ns, marked, inflight_bytes):
        pass
"""
LOSS = """
from endpoint.mrc.loss.loss_detection import LossDetection


class Mine(LossDetection):
    def overdue(self, flight, window_bytes):
        return [0, 0] if flight.nxt > flight.una else []
"""
KIND = "parameter 'a' must be of kind bool, int, float or str (got <class 'list'>)"
MINE = FIRST_PLANE.replace("FirstPlane", "Mine")
QUICK = ("--world", "simulated", "--plain", "--seed", "1", "--time", "0.3")


def run(tmp_path: Path, *words: str) -> int:
    return cli.main(["run", "smoke", "--runs", str(tmp_path / "runs"), *QUICK, *words])


def test_a_selection_of_ones_own_decides_the_paths_and_is_part_of_the_runs_key(tmp_path, monkeypatch) -> None:
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


def test_a_congestion_control_of_ones_own_runs_with_its_parameter(tmp_path: Path) -> None:
    file = tmp_path / "window.py"
    file.write_text(OWN)
    own = ("--setting", f"congestion={file}:Mine", "--setting", "congestion.packets=3")
    assert run(tmp_path, *own) in (0, 1, 3)
    opened = Run.open(find(tmp_path / "runs", "latest"))
    windows = {qp["cwnd_bytes"] for one in opened.agent_samples["h0"] for qp in one["qps"] if "cwnd_bytes" in qp}
    mtu = max(windows) // 3
    assert windows == {3 * mtu}
    assert opened.options["settings"]["congestion.packets"] == 3


def window(declared: str) -> str:
    """A congestion control that declares its parameters so."""
    return OWN.replace("parameters = (", f"parameters = {declared}\n    old = (")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("congestion.packets=0", "congestion.packets must be an integer from 1 to 4096 packets (got 0)"),
        ("congestion.packet=3", "has no such parameter; valid: packets"),
        ("selection.depth=3", "selection mrc has no such parameter; valid: none"),
        ("window.packets=3", "there is no setting 'window.packets'; parameters belong to selection, congestion, loss"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(setting: str, said: str, tmp_path: Path, refused) -> None:
    file = tmp_path / "window.py"
    file.write_text(OWN)
    assert said in refused("run", "smoke", *QUICK, "--setting", f"congestion={file}:Mine", "--setting", setting)


@pytest.mark.parametrize(
    ("seam", "text", "said"),
    [
        ("loss", LOSS, "{file}:6: loss Mine.overdue: each"),
        ("selection", MINE.replace("plane.take()", "7"), "must return an EvPath"),
        (
            "congestion",
            OWN + "    pacing_bps = property(lambda self: 1 // 0, lambda self, v: None)\n",
            "{file}:15: ZeroDivisionError: integer division or modulo by zero (in congestion Mine.pacing_bps)",
        ),
    ],
)
def test_an_error_of_ones_own_class_ends_the_run_as_unknown_and_names_file_line_and_rule(
    seam: str, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    assert run(tmp_path, "--setting", f"{seam}={file}:Mine") == 3
    assert said.format(file=file) in capsys.readouterr().out
    findings = json.loads((find(tmp_path / "runs", "latest") / "verdict.json").read_text())["findings"]
    (complete,) = [finding for finding in findings if finding["check"] == "complete"]
    assert said.format(file=file) in complete["reason"], "reports and contests show the findings alone"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "selection: {file}: no such file"),
        ("x = (", "{file}:1: SyntaxError"),
        ("\n1 / 0\n", "{file}:2: ZeroDivisionError"),
        ("class Yours: pass", "has no class 'Mine'; it has Yours"),
        ("class Mine: pass", "{file}:1: class Mine must derive from Selection of endpoint.mrc.paths.selection"),
        (
            "# -*- coding: latin-1 -*-\n# é\nclass Mine: pass\n",
            "selection: {file}:3: class Mine must derive from Selection",
        ),
        (
            MINE.replace("    def next", "    heeds_signals = 'no'\n\n    def next"),
            "class Mine: heeds_signals must be True or False (got 'no')",
        ),
        (window("5"), "parameters must be a tuple of Parameters, such as (Parameter(…),) with its comma (got 5)"),
        (window('(Parameter("packets", int, 64))'), "with its comma (got Parameter(name='packets'"),
        (
            window('(Parameter("a b", int, 64),)'),
            "parameter 'a b' must have a name without spaces and dots, and no other's",
        ),
        (
            window('(Parameter("a", int, 1), Parameter("a", float, 1.0))'),
            "parameter 'a' must have a name without spaces",
        ),
        (window('(Parameter("a", list, 64),)'), KIND),
        (
            window('(Parameter("a", int, None, 9, 1),)'),
            "'a' must have a range of two numbers, the lower first (got 9 and 1)",
        ),
        (window('(Parameter("a", int, 5, "1", "9"),)'), "the lower first (got '1' and '9')"),
        (window('(Parameter("a", float, float("nan"), 0, 1),)'), "'a' must be a number from 0 to 1 (got nan)"),
        (
            window('(Parameter("a", int, 9, 0, 1, "ns"),)'),
            "the default of 'a' must be an integer from 0 to 1 ns (got 9)",
        ),
    ],
)
def test_what_is_no_algorithm_is_refused_by_its_line_before_anything_is_written(text, said, tmp_path, refused) -> None:
    seam, file = "congestion" if text and "(Congestion)" in text else "selection", tmp_path / "mine.py"
    if text is not None:
        file.write_bytes(text.encode("latin-1" if "latin-1" in text else "utf-8"))
    printed = refused("run", "smoke", *QUICK, "--runs", tmp_path / "runs", "--setting", f"{seam}={file}:Mine")
    assert said.format(file=file) in printed
    assert seam == "selection" or printed.startswith(f"mrclab: congestion: {file}:6: class Mine: ")
    assert not (tmp_path / "runs").exists()


def test_a_file_that_is_none_is_refused_by_its_setting_and_name(tmp_path: Path, refused) -> None:
    folder, circle = tmp_path / "folder.py", tmp_path / "circle.py"
    folder.mkdir()
    circle.symlink_to(circle)
    for file, said in ((folder, "this must be a Python file"), (circle, "no such file")):
        assert refused("run", "smoke", *QUICK, "--setting", f"selection={file}:Mine") == (
            f"mrclab: selection: {file}: {said}\n"
        )
