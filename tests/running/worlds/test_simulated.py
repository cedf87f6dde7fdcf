"""Whole runs in virtual time: no root, no sockets, the same to the last packet from the same seed."""

import gc
import json
import weakref
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from cli.main import main
from judging.judge import judge
from judging.run import Run
from judging.verdict import Verdict
from running import estimate
from running.assessment import assessment
from running.directory import RunDirectory
from running.options import Choices
from running.runner import make_run
from running.spec import RunSpec
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld, collecting
from scenarios import library
from scenarios.scenario import SAMPLE_S, Phase
from tests.helpers.baseline import BASELINE
from topo.planfile import load_plan

TINY = load_plan("tiny")


def simulate(name: str, tmp_path: Path, seed: int = 3, transport_name: str = "mrc") -> tuple[Verdict, Path]:
    scenario = library.find(name)
    choices = Choices(
        transport(transport_name, scenario.settings), load_plan(scenario.plan), seed=seed, world="simulated"
    )
    spec = RunSpec(scenario, choices)
    path = make_run(spec, tmp_path)
    return judge(path, spec.checks(), scenario.story), path


def hosts_journal(path: Path) -> list[str]:
    return [file.read_text() for file in sorted((path / "journal").glob("h*.jsonl"))]


def failures(verdict: Verdict) -> list[str]:
    return [f"{finding.check}: {finding.reason}" for finding in verdict.findings if finding.holds is not True]


def test_smoke_ends_true_and_leaves_a_whole_run_directory(tmp_path: Path) -> None:
    verdict, path = simulate("smoke", tmp_path)
    assert failures(verdict) == []
    assert {entry.name for entry in path.iterdir()} >= {
        "options.json", "plan.toml", "journal", "journal.jsonl", "verdict.json", "summary.txt", "report.html",
    }  # fmt: skip
    assert json.loads((path / "verdict.json").read_text())["verdict"] == "true"
    assert (tmp_path / "latest").resolve() == path.resolve()
    assert load_plan(path / "plan.toml") == load_plan("tiny")


def test_closed_worlds_do_not_pile_up(tmp_path: Path) -> None:
    """A hunt of 400 tries kept 400 worlds: the collector of garbage looks at what was frozen hardly ever again."""

    def closed(number: int) -> weakref.ref[SimulatedWorld]:
        directory = RunDirectory.create(tmp_path, "closed", number)
        world = SimulatedWorld(TINY, transport("mrc"), number, directory, lambda event: None)
        world.close()
        return weakref.ref(world)

    def run(number: int) -> weakref.ref[SimulatedWorld]:
        with collecting():
            return closed(number)

    usual = gc.get_threshold()
    worlds = [run(number) for number in range(6)]
    assert gc.get_threshold() == usual
    assert sum(world() is not None for world in worlds) <= 2


def test_switches_are_sampled_like_hosts_unless_that_would_be_many_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def samples(sampled: bool) -> list[int]:
        scenario = replace(
            library.find("smoke"),
            phases=(Phase("warmup", 0.5), Phase("reference", 0.5), Phase("faults", 0.5)),
            sample_switches=sampled,
            timeline=lambda setting: [],
        )
        choices = Choices(transport("mrc", scenario.settings), load_plan(scenario.plan), seed=3, world="simulated")
        path = make_run(RunSpec(scenario, choices), tmp_path)
        return [int(line["t_ns"]) for line in Run.open(path).switch_samples["p0l0"]]

    often = samples(True)
    assert samples(False) == often
    ports = 2 * TINY.topology.fabric_links + TINY.host_count * TINY.planes
    monkeypatch.setattr(estimate, "SWITCH_ROWS_MAX", 5 * ports)
    assert len(samples(False)) == 6  # and the totals at the end
    assert samples(True) == often
    interval_ns = often[1] - often[0]
    assert interval_ns == pytest.approx(SAMPLE_S * load_plan("tiny").pace * 1e9, abs=1)
    assert {later - earlier for earlier, later in pairwise(often[:-1])} == {interval_ns}


def test_the_same_seed_gives_the_same_journal_and_another_seed_another(tmp_path: Path) -> None:
    first = hosts_journal(simulate("smoke", tmp_path / "a", seed=5)[1])
    assert hosts_journal(simulate("smoke", tmp_path / "b", seed=5)[1]) == first
    assert hosts_journal(simulate("smoke", tmp_path / "c", seed=6)[1]) != first


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in library.NAMES if name != "smoke"])
def test_every_scenario_ends_true_in_virtual_time(name: str, tmp_path: Path) -> None:
    assert failures(simulate(name, tmp_path)[0]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", library.NAMES)
def test_every_scenario_runs_on_the_baseline_and_says_what_it_cannot_hold(name: str, tmp_path: Path) -> None:
    # How much a flapping link delays training steps is ECMP's draw: with seed 3 none of them twice.
    verdict, path = simulate(name, tmp_path, 4 if name == "link-flap" else 3, transport_name="roce")
    assert {finding.check: finding.holds for finding in verdict.findings if not finding.holds} == BASELINE[name]
    assert not any("could not be judged" in finding.reason for finding in verdict.findings)
    report = (path / "report.html").read_text()
    assert "the RoCE baseline" in report
    assert report.rstrip().endswith("</html>")
    judged_with = assessment(path)
    assert judged_with.notice == ""
    again = judge(path, judged_with.checks, judged_with.story)
    assert again == verdict


@pytest.mark.slow
@pytest.mark.parametrize("transport_name", ["mrc-oblivious", "mrc-single-path"])
def test_link_flap_is_false_on_the_other_transports(transport_name: str, tmp_path: Path) -> None:
    """Oblivious spraying goes on sending by the link that is down, and keeps 96 % of its goodput; 97 are asked for."""
    verdict, path = simulate("link-flap", tmp_path, transport_name=transport_name)
    assert not any("could not be judged" in finding.reason for finding in verdict.findings)
    assert verdict.holds is False, (path / "summary.txt").read_text()


def test_a_run_is_broken_off_at_a_virtual_time_and_unknown(tmp_path: Path) -> None:
    words = ["run", "smoke", "--world", "simulated", "--seed", "3", "--plain", "--runs", str(tmp_path)]
    assert main([*words, "--until", "2.5"]) == 3
    run = Run.open(tmp_path / "latest")
    assert list(run.phases) == ["warmup", "reference"]
    assert 2.5 <= run.seconds(run.end_ns) < 4.0
    assert "the run was interrupted in phase 'reference'" in (tmp_path / "latest" / "summary.txt").read_text()
