"""What a run would take is told before it begins, and what cannot be is refused with the figures."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from cli import main as cli
from running import estimate
from running.directory import find
from running.options import Choices
from running.spec import RunSpec
from running.timeline import rehearse
from running.transport_choice import transport
from scenarios import library
from scenarios.scenario import Phase, Scenario, Workload
from tests.helpers.waiting import ran
from topo.emulation import state
from topo.plan import Links, Plan
from topo.planfile import load_plan, parse_plan

GB = 10**9
# Runs a command and prints, last, the most memory (KiB) that the process ever had.
MEASURED = """
import sys
from pathlib import Path
from cli import main as cli
status = cli.main(sys.argv[1:])
# ru_maxrss would count the pages of the process that this one was forked from.
print("peak", Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
sys.exit(status)
"""


def choices(plan: str = "tiny", rate_bps: int = 10_000_000, world: str = "simulated") -> Choices:
    return Choices(transport("mrc"), load_plan(plan).at_rate(rate_bps), seed=1, world=world)


def one_workload(kind: str, **options: object) -> Scenario:
    return Scenario(
        name="mine", title="", description="", plan="tiny", timeline=lambda _: [], checks=lambda _: [],
        workloads=lambda _: [Workload(kind, options)], phases=(Phase("reference", 5.0),),
    )  # fmt: skip


def measured(*words: str) -> tuple[subprocess.CompletedProcess[str], int]:
    """The command in a process of its own, and the most memory that it had, in bytes."""
    done = ran([sys.executable, "-c", MEASURED, *words], timeout=120)
    return done, int(done.stdout.splitlines()[-1].removeprefix("peak ")) * 1024


def test_the_papers_fabric_is_refused_at_once_with_the_figures(tmp_path) -> None:
    runs = tmp_path / "runs"
    words = ("run", "smoke", "--plan", "paper", "--world", "simulated", "--plain", "--runs", str(runs))
    done, peak_bytes = measured(*words)
    assert done.returncode == 2
    told = "smoke on plan paper (131,072 hosts, 6,144 switches) would take about 102 GB of memory, and this machine has"
    assert told in done.stderr
    assert "take a smaller plan" in done.stderr
    assert peak_bytes < 0.5 * GB
    assert not runs.exists()


def test_a_run_says_what_it_takes_and_takes_no_more(tmp_path) -> None:
    words = ("run", "smoke", "--world", "simulated", "--plain", "--seed", "1", "--runs", str(tmp_path))
    done, peak_bytes = measured(*words)
    assert "this run takes about" in done.stdout.splitlines()[1]
    options = json.loads((find(tmp_path, "latest") / "options.json").read_text())
    told = estimate.estimate(RunSpec(library.find("smoke"), choices(rate_bps=options["port_rate_bps"])))
    assert told.memory_bytes / 4 < peak_bytes < 1.5 * told.memory_bytes


PERMUTATION = """
from scenarios.scenario import Phase, Scenario, Workload

SCENARIO = Scenario(
    name="permutation", title="", description="", plan="tiny", timeline=lambda _: [], checks=lambda _: [],
    workloads=lambda _: [Workload("permutation", {"size": 65536, "depth": 4, "messages": 0, "shift": 65})],
    phases=(Phase("warmup", 0.1), Phase("reference", 1.0)),
)
"""
UNEVEN = """
name = "uneven"
[fabric]
topology = "uneven"
planes = 2
leaves = 4
spines = 2
hosts_per_leaf = 1
"""
MANY = """
name = "many"
[fabric]
planes = 4
leaves = 16
spines = 8
hosts_per_leaf = 8
"""


def test_a_run_of_many_hosts_in_virtual_time_takes_what_was_told(tmp_path) -> None:
    (tmp_path / "permutation.py").write_text(PERMUTATION)
    (tmp_path / "many.toml").write_text(MANY)
    words = ("run", str(tmp_path / "permutation.py"), "--plan", str(tmp_path / "many.toml"), "--world", "simulated")
    done, peak_bytes = measured(*words, "--plain", "--seed", "1", "--runs", str(tmp_path / "runs"))
    assert "phase reference" in done.stdout, done.stderr
    plan = load_plan(tmp_path / "many.toml")
    chosen = Choices(transport("mrc"), plan, seed=1, world="simulated")
    told = estimate.estimate(RunSpec(library.find(str(tmp_path / "permutation.py")), chosen))
    assert told.memory_bytes / 2 < peak_bytes < 1.2 * told.memory_bytes


def test_slow_cables_take_as_much_memory_as_fast_ones() -> None:
    fast = parse_plan(UNEVEN)
    cables = ", ".join(f'"p0l{index}-p0s0" = 0.1' for index in range(4))
    slow = parse_plan(f"{UNEVEN}speeds = {{ {cables} }}\n")
    told = [estimate.fabric_bytes(Choices(transport("mrc"), plan, seed=1, world="simulated")) for plan in (fast, slow)]
    assert slow.topology.fabric_links == 16
    assert sum(slow.topology.tier_links) < 13
    assert told[0] == told[1]


def test_a_thousand_hosts_in_virtual_time_fit_a_small_machine() -> None:
    """With 64 queue pairs, 1,024 hosts were measured to take 0.51 GB, and a permutation of 8,192 hosts 6.1 GB."""
    links = Links(25_000_000_000, 25_000_000_000, 1_000, 1_000)
    plan = Plan("thousand", 4, 32, 32, 32, links=links)
    stream = {"size": 65536, "depth": 4, "messages": 31, "shift": 513}
    scenario = replace(one_workload("permutation", **stream), phases=(Phase("reference", 0.01),))
    chosen = Choices(transport("mrc"), plan, seed=1, world="simulated")
    assert 0.5 * GB < estimate.fabric_bytes(chosen) < 0.7 * GB
    assert estimate.check(RunSpec(scenario, chosen), available_bytes=4 * GB).memory_bytes < 2.2 * GB
    large = Choices(transport("mrc"), Plan("large", 4, 256, 32, 32, links=links), seed=1, world="simulated")
    assert 6.1 * GB < estimate.check(RunSpec(scenario, large), available_bytes=15 * GB).memory_bytes < 13 * GB


@pytest.mark.parametrize("world", ["emulated", "simulated"])
def test_a_step_has_as_many_packets_at_any_rate(world: str) -> None:
    """So no workload fits one rate and not another."""
    for mbps in (1, 10, 100_000):
        estimate.estimate(RunSpec(library.find("smoke"), choices(rate_bps=mbps * 10**6, world=world)))


@pytest.mark.parametrize(
    ("scenario", "plan", "available_bytes", "said"),
    [
        (library.find("collision"), "rack", GB // 10, "MB of memory, and this machine has 100 MB to spare"),
        (one_workload("all_to_all", size=1 << 33), "tiny", 10**15, "workload main: all_to_all: size is 8589934592"),
        (one_workload("write_bw", size=1 << 28, depth=64), "lab", 10**15, "write_bw takes 2 ranks, not 8"),
        (one_workload("permutation", size=1 << 28, depth=64), "lab", 10**15, "would hold 17.4 GB on h0; a host has"),
    ],
)
def test_what_cannot_be_is_refused_with_the_figures(scenario: Scenario, plan, available_bytes, said) -> None:
    with pytest.raises(estimate.TooLargeError, match=said):
        estimate.check(RunSpec(scenario, choices(plan)), available_bytes)


def test_a_run_of_more_than_a_day_is_refused_with_its_length() -> None:
    long = Scenario(
        name="long", title="", description="", plan="tiny", timeline=lambda _: [], checks=lambda _: [],
        workloads=lambda _: [], phases=(Phase("reference", 100 * 3600.0),),
    )  # fmt: skip
    with pytest.raises(estimate.TooLargeError, match="would take about 4 days: shorten the phases with --time"):
        estimate.check(RunSpec(long, choices(world="emulated")), available_bytes=10**15)


@pytest.mark.parametrize("name", [*library.NAMES, *library.OF_THE_PAPER])
def test_every_shipped_scenario_fits_a_small_machine(name: str) -> None:
    scenario = library.find(name)
    for world in ("emulated", "simulated"):
        chosen = Choices(transport("mrc", scenario.settings), load_plan(scenario.plan), seed=1, world=world)
        assert 0 < estimate.check(RunSpec(scenario, chosen), available_bytes=4 * GB).seconds < 900
        rehearse(RunSpec(scenario, chosen))


def test_a_lab_that_is_up_is_said_before_the_machine_is_calibrated(tmp_path, monkeypatch, capsys) -> None:
    record = state.new_record(load_plan("tiny"), "token")
    record.phase = "running"
    monkeypatch.setattr(state, "read_record", lambda *_: record)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert cli.main(["run", "smoke", "--plain", "--calibrate", "--runs", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr()
    assert "a lab is there already: plan 'tiny' is running" in said.err
    assert "calibrating" not in said.out
