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
def test_a_typo_in_the_p4_program_is_shown_where_it_is(
    words: tuple[str, ...], programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(programs, "hdr.ipv6.hop_limit - 1", "hdr.ipv6.hop_limt - 1")
    assert cli.main(list(words)) == 2
    said = capsys.readouterr().err
    assert "error[" in said
    assert "hop_limt" in said
    assert "^" in said
    assert "Traceback" not in said
    assert not (programs.parent / "runs").exists()


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words[0])
def test_a_table_that_the_controller_does_not_find_is_named(
    words: tuple[str, ...], programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(programs, "my_sid", "my_own_sid")
    assert cli.main(list(words)) == 2
    said = capsys.readouterr().err
    assert "my_sid" in said
    assert "my_own_sid" in said  # among the valid names
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 3


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
