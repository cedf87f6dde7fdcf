"""What is printed is true in small things: clocks, last faults, numbers that are none, readers that go away."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from cli import main as cli
from cli import traffic
from cli.prompt import parse_injection
from cli.traffic import TrafficError
from judging.run import Run
from running.directory import find
from topo.fault import FaultError, make_fault
from topo.planfile import load_plan


def test_the_log_of_a_run_shows_the_same_clock_as_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["run", "smoke", "--world", "simulated", "--plain", "--seed", "1", "--runs", str(tmp_path)])
    log = capsys.readouterr().out
    run = Run.open(find(tmp_path, "latest"))
    told = dict(re.findall(r"^ *([\d.]+) s  ((?:link-down|port-down|switch-crash) \S+)$", log, re.MULTILINE))
    stamped = {what: float(at_s) for at_s, what in told.items()}
    assert stamped == {fault.title: pytest.approx(run.seconds(fault.start_ns), abs=0.01) for fault in run.faults}
    assert re.search(r"^ +simulating 8 switches", log, re.MULTILINE)  # before the first phase the clock shows nothing


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["p0l0-p0s0", "abc"], "loss: percent (share of packets lost) must be a number between 0 and 100 (got 'abc')"),
        (["p0l0", "p0s0", "much"], "(got 'much')"),
        (["p0l0", "p0s0"], "loss: percent (share of packets lost) must be a number between 0 and 100 (got none)"),
    ],
)
def test_a_number_that_is_none_or_missing_is_named(words: list[str], said: str) -> None:
    with pytest.raises(FaultError, match=re.escape(said)):
        make_fault(load_plan("tiny"), "loss", *parse_injection(words, "loss"))


@pytest.mark.parametrize(
    ("kind", "ranks", "said"),
    [
        ("write_bw", ["h0"], "write_bw must be given 2 hosts (got 1)"),
        ("write_bw", ["h0", "h1", "h2"], "write_bw must be given 2 hosts (got 3)"),
        ("all_reduce", ["h0"], "all_reduce must be given 2 to 4096 hosts (got 1)"),
        ("write_bw", ["h0", "h0"], "write_bw must be given each host once (got h0 h0)"),
    ],
)
def test_a_workload_says_how_many_hosts_it_must_be_given(kind: str, ranks: list[str], said: str) -> None:
    with pytest.raises(TrafficError, match=re.escape(said)):
        traffic.check(kind, ranks, {})


def test_a_drawing_is_never_svg_under_another_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["topo", "draw", "lab", "-o", str(tmp_path / "lab.png")]) == 2
    assert "`topo draw` writes .svg; `./lab graph` writes .png" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error() -> None:
    mrclab = f"{sys.executable} -m cli"
    for words in ("controller show p0l0 --planned --plan wide", "topo paths h0 h5 --plan wide", "list"):
        done = subprocess.run(
            ["bash", "-c", f"{mrclab} {words} | head -1"], capture_output=True, text=True, check=True, timeout=60
        )
        assert len(done.stdout.splitlines()) == 1
        assert done.stderr == ""


def test_the_version_is_told_by_itself_and_guessed_as_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"mrclab {version('mrclab')}\n"
    assert cli.main(["version"]) == 2
    assert "did you mean ./lab --version?" in capsys.readouterr().err
