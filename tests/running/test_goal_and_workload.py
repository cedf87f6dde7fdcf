"""A collective as a GOAL program and as a workload of the lab: the same packets in virtual time."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main

SCENARIO = """from judging import checks
from scenarios.scenario import Phase, Scenario, Workload

SCENARIO = Scenario(
    name="own", title="own", description="", plan="tiny", until_done=True, phases=(Phase("run", 50.0),),
    workloads=lambda setting: [Workload({kind!r}, {options!r}, phase="run")],
    checks=lambda setting: [checks.bytes_right()],
)
"""
ANONYMOUS = ("psn", "va", "cause_psn", "sacked")
"""What a random start decides: sequence numbers and addresses of memory. All else is compared."""


def packets(source: Path, folder: Path) -> list[dict[str, Any]]:
    """Every event of every packet of a run: when, where, how large, on which path, how long the queue was."""
    words = ["--plan", "tiny", "--world", "simulated", "--rate", "100000", "--seed", "9", "--plain"]
    assert main(["run", str(source), *words, "--record-packets", "0..40", "--runs", str(folder)]) == 0
    lines = (folder / "latest" / "packets.jsonl").read_text().splitlines()[1:]
    return [{name: value for name, value in json.loads(line).items() if name not in ANONYMOUS} for line in lines]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param("all_reduce", {"size": 4 * 3 * 65_536, "rounds": 2}, marks=pytest.mark.slow),
        ("all_gather", {"size": 4 * 10_000, "rounds": 3, "segment": 4_096}),
        ("all_to_all", {"size": 4 * 70_000, "rounds": 1}),
    ],
)
def test_a_collective_in_goal_gives_the_packets_of_the_lab_s_own(kind, options, tmp_path: Path):
    own, goal = tmp_path / "own.py", tmp_path / "ring.goal"
    own.write_text(SCENARIO.format(kind=kind, options=options))
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    assert main(["export", "goal", kind, "--ranks", "4", *given, "-o", str(goal)]) == 0
    expected = packets(own, tmp_path / "own")
    assert len(expected) > 100
    assert packets(goal, tmp_path / "goal") == expected


def test_a_run_s_messages_are_a_matrix_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    goal, matrix = tmp_path / "gather.goal", tmp_path / "again.cm"
    main(["export", "goal", "all_gather", "--ranks", "4", "--size", "400000", "-o", str(goal)])
    packets(goal, tmp_path / "runs")
    assert main(["export", "cm", "latest", "--runs", str(tmp_path / "runs"), "-o", str(matrix)]) == 0
    lines = matrix.read_text().splitlines()
    assert lines[:2] == ["Nodes 4", "Connections 24"]  # three steps of two segments on each of four ranks
    packets(matrix, tmp_path / "again")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ["goal", "broadcast"],
            "the program must be one of all_reduce, all_gather, all_to_all, training (got 'broadcast')",
        ),
        (["goal", "all_reduce"], "--ranks must be given"),
        (["cm", "incast", "--ranks", "4", "--rounds", "2"], "--rounds must be left out"),
        (["cm", "gone", "--ranks", "4"], "--ranks must be left out: a run has its own; patterns are permutation"),
        (["cm", "gone"], "the name must be a pattern (permutation, incast, all_to_all) or a run: no run 'gone'"),
        (["json", "tiny", "--ranks", "4"], "--ranks must be left out with json"),
        (["goal", "all_reduce", "--ranks", "4", "--switch", "p0l0"], "--switch must be left out with goal"),
    ],
)
def test_wrong_words_of_export_are_refused(words, complaint, capsys):
    assert main(["export", *words]) == 2
    assert complaint in capsys.readouterr().err
