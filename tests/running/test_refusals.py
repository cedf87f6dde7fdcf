"""What is wrong with a P4 program or a scenario is said in one message, before anything is built or written."""

import os
import shutil
from pathlib import Path

import pytest

import controller.pipelines
from cli import main as cli
from topo.emulation.lab import Lab

PROGRAMS = Path(controller.pipelines.PROGRAMS)
WORDS = [("run", "smoke", "--world", "simulated", "--plain"), ("trace", "h0", "h3", "--plan", "tiny"), ("up", "tiny")]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of p4/ that the commands use instead; nothing may come to building a lab."""
    folder = tmp_path / "p4"
    shutil.copytree(PROGRAMS, folder)
    monkeypatch.setattr(controller.pipelines, "PROGRAMS", folder)
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    def up(*_: object, **__: object) -> None:
        raise AssertionError("a lab was built")

    monkeypatch.setattr(Lab, "up", up)
    monkeypatch.chdir(tmp_path)
    return folder


def edit(folder: Path, old: str, new: str) -> None:
    """Replace a text in every file of a P4 program; at least one must hold it."""
    found = [path for path in folder.rglob("*.p4") if old in path.read_text()]
    assert found
    for path in found:
        path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("old", "new", "shown", "lines"),
    [
        ("hdr.ipv6.hop_limit - 1", "hdr.ipv6.hop_limt - 1", ("error[", "hop_limt", "^"), 99),  # a typo, where it is
        ("my_sid", "my_own_sid", ("my_sid", "my_own_sid"), 3),  # no table for the controller; the valid names
    ],
)
def test_what_is_wrong_in_a_p4_program_is_shown(
    words: tuple[str, ...],
    old: str,
    new: str,
    shown: tuple[str, ...],
    lines: int,
    programs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    edit(programs, old, new)
    assert cli.main(list(words)) == 2
    said = capsys.readouterr().err
    assert [word for word in (*shown, "Traceback") if word not in said] == ["Traceback"]
    assert len(said.splitlines()) <= lines
    assert not (programs.parent / "runs").exists()


SCENARIO = """
from judging import checks
from scenarios.scenario import Scenario, TimedFault, Workload, phases

SCENARIO = Scenario(
    name="mine", title="Mine", description="", plan="tiny", phases=phases(),
    workloads=lambda setting: [Workload("all_reduce", {"rounds": 0})],
    timeline=lambda setting: TIMELINE,
    checks=lambda setting: CHECKS,
)
"""


@pytest.mark.parametrize(
    ("timeline", "judged", "said"),
    [
        ("[]", "[checks.goodput_keep(0.1)]", "AttributeError: module 'judging.checks' has no attribute"),
        ("[TimedFault()]", "[]", "TypeError: TimedFault.__init__() missing"),
        ("[][1]", "[]", "IndexError: list index out of range"),
    ],
)
def test_what_breaks_in_a_scenario_of_ones_own_is_said_with_its_line(
    timeline: str, judged: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(SCENARIO.replace("TIMELINE", timeline).replace("CHECKS", judged))
    runs = tmp_path / "runs"
    assert cli.main(["run", str(file), "--world", "simulated", "--plain", "--runs", str(runs)]) == 2
    printed = capsys.readouterr().err
    assert f"mine.py:{8 if timeline != '[]' else 9}: {said}" in printed
    assert not runs.exists()
