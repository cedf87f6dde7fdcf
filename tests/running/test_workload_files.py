"""Workload files as scenarios: whole runs in virtual time, a GOAL program and its workload alike, what is refused."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from scenarios import library
from scenarios.user_traffic.replay import Source, placed
from schedules.errors import ScheduleError
from topo.planfile import load_plan

PAIR = "Nodes 2\nConnections 2\n0->1 start 0 size {size}\n1->0 start 5000000 size 100\n"
RELAY = "num_ranks 2\nrank 0 {\nsend 40000b to 1\n}\nrank 1 {\na: recv 40000b from 0\nb: calc 1000\nb requires a\n}\n"


def make(*words: str, folder: Path) -> tuple[int, Path]:
    """Run a workload in virtual time on the plan `tiny` at 100 Gb/s; exit status and folder."""
    rate = ["--world", "simulated", "--rate", "100000", "--seed", "5", "--plain", "--runs", str(folder / "runs")]
    status = main(["run", *words, "--plan", "tiny", *rate])
    return status, (folder / "runs" / "latest").resolve()


def test_a_matrix_runs_by_itself_and_ends_with_its_last_message(tmp_path: Path):
    file = tmp_path / "pair.cm"
    file.write_text(PAIR.format(size=1_000_000))
    status, run = make(str(file), folder=tmp_path)
    assert status == 0
    figures = json.loads((run / "verdict.json").read_text())["figures"]["completions"]
    (pair,) = figures
    assert (pair["workload"], pair["count"], pair["bytes"]) == ("pair", 2, 1_000_100)
    # 1,000,000 bytes at 2 ports of 100 Gb/s are 40 µs; headers and the way there add less than a fifth.
    assert 40_000 < pair["last_ns"] < 48_000
    assert 1.0 < pair["slowdown_p99"] < 1.2
    report = (run / "report.html").read_text()
    assert "Completion times" in report
    assert 'aria-label="Completion times and slowdowns of messages"' in report


def test_messages_of_a_run_are_written_as_csv(tmp_path: Path):
    file = tmp_path / "pair.cm"
    file.write_text(PAIR.format(size=8000))
    _, run = make(str(file), folder=tmp_path)
    main(["report", str(run), "--csv", str(tmp_path / "csv")])
    with (tmp_path / "csv" / "messages.csv").open() as rows:
        large, small = sorted(csv.DictReader(rows), key=lambda row: int(row["line"]))
    assert (large["source"], large["target"], large["line"], large["bytes"]) == ("h0", "h1", "3", "8000")
    assert (small["start_ns"], small["source"]) == ("5000", "h1")
    assert int(large["start_ns"]) < int(large["received_ns"]) < int(large["acknowledged_ns"])


def test_two_jobs_share_a_fabric_each_with_hosts_of_its_own(tmp_path: Path):
    for name, text in (("first.cm", PAIR.format(size=50_000)), ("second.goal", RELAY)):
        (tmp_path / name).write_text(text)
    status, run = make(f"{tmp_path / 'first.cm'},{tmp_path / 'second.goal'}@rail", folder=tmp_path)
    assert status == 0
    starts = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines() if '"workload"' in line]
    ranks = {line["name"]: line["ranks"] for line in starts if line["kind"] == "workload" and line["state"] == "start"}
    assert ranks == {"first": ["h0", "h2"], "second": ["h1", "h3"]}
    counts = {
        one["workload"]: one["count"]
        for one in json.loads((run / "verdict.json").read_text())["figures"]["completions"]
    }
    assert counts == {"first": 2, "second": 1}


def test_a_fault_meets_a_workload_file(tmp_path: Path):
    file = tmp_path / "pair.cm"
    file.write_text(PAIR.format(size=2_000_000))
    status, run = make(str(file), "--fault", "port-down h0.p0 @0.1", folder=tmp_path)
    assert status == 0
    (pair,) = json.loads((run / "verdict.json").read_text())["figures"]["completions"]
    assert pair["longest_ns"] > 1.5 * 80_000  # 2,000,000 bytes take 80 µs with both ports


def test_a_run_that_is_cut_short_is_false_and_says_what_is_unfinished(tmp_path: Path):
    file = tmp_path / "late.cm"
    file.write_text("Nodes 2\nConnections 1\n0->1 start 100000000000 size 5\n")  # after 0.1 s of the hardware
    status, run = make(str(file), "--time", "0.001", folder=tmp_path)
    assert status == 1
    assert "2 of 2 ranks did not finish" in (run / "summary.txt").read_text()


def test_an_old_run_is_judged_again_without_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "pair.cm"
    file.write_text(PAIR.format(size=9000))
    _, run = make(str(file), folder=tmp_path)
    file.unlink()
    capsys.readouterr()
    assert main(["report", str(run)]) == 0
    assert "all 2 ranks finished" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("gone.cm", "gone.cm: no such file"),
        ("large.cm", "plan tiny must have a host per rank: it has 4, and 5 are needed (large.cm 5)"),
        ("bad.goal", "bad.goal:1: the file must begin with 'num_ranks N'"),
        ("large.cm@middle", "the placement behind @ must be one of packed, rail, random (got 'middle')"),
        ("notes.txt,large.cm", "each file must end in .cm or .goal (got 'notes.txt')"),
        ("large.cm,notes.txt", "each file must end in .cm or .goal (got 'notes.txt')"),
        ("large.cm,", "each file must end in .cm or .goal (got '')"),
        (",large.cm", "each file must end in .cm or .goal (got '')"),
        ("idle.goal", "idle.goal: a workload must have at least one message"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_built(tmp_path, monkeypatch, capsys, source, complaint):
    monkeypatch.chdir(tmp_path)
    Path("large.cm").write_text("Nodes 5\nConnections 1\n0->4 start 0 size 5\n")
    Path("bad.goal").write_text("ranks 5\n")
    Path("idle.goal").write_text("num_ranks 2\nrank 0 {\ncalc 5\n}\n")
    status, _ = make(source, folder=tmp_path)
    assert status == 2
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.root
def test_a_matrix_runs_on_real_links_with_its_times_stretched(tmp_path: Path):
    file = tmp_path / "pair.cm"
    file.write_text(PAIR.format(size=100_000))
    main(["run", str(file), "--plan", "tiny", "--rate", "10", "--plain", "--runs", str(tmp_path / "runs")])
    run = (tmp_path / "runs" / "latest").resolve()
    found = {one["check"]: one["holds"] for one in json.loads((run / "verdict.json").read_text())["findings"]}
    assert found["schedule"] is found["bytes right"] is found["messages"] is True
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    begin_ns = max(line["t_ns"] for line in lines if line["kind"] == "workload" and line["state"] == "start")
    (late,) = [line for line in lines if line["kind"] == "message" and line["state"] == "sent" and line["line"] == 4]
    # 5 µs of the file are 50 ms on ports of 10 Mb/s that model 100 Gb/s.
    assert 40_000_000 < late["start_ns"] - begin_ns < 500_000_000


def test_placements_are_permutations_of_all_hosts_and_jobs_of_one_file_have_own_names():
    plan = load_plan("lab")
    hosts = {host.name for host in plan.hosts()}
    assert placed(plan, "packed", 1) == [f"h{number}" for number in range(8)]
    assert [placed(plan, "rail", 1)[number] for number in range(plan.leaves)] == [
        f"h{leaf * plan.hosts_per_leaf}" for leaf in range(plan.leaves)
    ]
    assert set(placed(plan, "rail", 1)) == set(placed(plan, "random", 1)) == hosts
    assert placed(plan, "random", 1) == placed(plan, "random", 1) != placed(plan, "random", 2)
    assert Source.parse("a/x.goal,b/x.goal,c.cm").names() == ["x-0", "x-1", "c"]
    with pytest.raises(ScheduleError):
        Source.parse("a.goal@packed@rail")
    assert library.is_workload("a.goal@rail")
    assert not library.is_workload("a.py")


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
def test_wrong_words_of_export_are_refused(words, complaint, refused):
    assert complaint in refused("export", *words)
