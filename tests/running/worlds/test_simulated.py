"""Whole runs in virtual time: the same to the last packet from a seed, in both forms of endpoint and fabric."""

import gc
import json
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from cli.main import main
from common.compiled import build as building, finder
from common.compiled.unit import find
from endpoint import compiled, profile
from endpoint.host import count_records
from endpoint.nic.config import Settings, derive
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
from running.worlds.profiles import HostProfiles
from running.worlds.simulated import SimulatedWorld, collecting
from running.worlds.virtual_time import MakeFabric
from scenarios import library
from scenarios.scenario import SAMPLE_S, Phase
from switch.engine import Engine
from switch.native.engine import NativeEngine
from switch.native.fabric import NativeFabric
from switch.reference.engine import ReferenceEngine
from tests.helpers.baseline import BASELINE
from tests.helpers.engines.stepped_fabric import SteppedFabric
from tests.helpers.fuzzing import seeds
from tests.helpers.random_run import RandomRun
from tests.topo.topologies.shapes import SMALL
from topo.planfile import load_plan
from topo.profile import nic_profile

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


def test_switches_are_sampled_like_hosts_unless_that_would_be_many_rows(tmp_path, monkeypatch) -> None:
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
    assert judge(path, judged_with.checks, judged_with.story) == verdict


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


def stepped(make: Callable[[int], Engine]) -> MakeFabric:
    def fabric(seeds: Sequence[int], hosts: int, host_ports: int) -> SteppedFabric:
        return SteppedFabric([make(seed) for seed in seeds], hosts, host_ports)

    return fabric


OVER_NATIVE = stepped(lambda seed: NativeEngine(seed=seed))
OVER_REFERENCE = stepped(lambda seed: ReferenceEngine(seed=seed))


def compare(seed: int, directory: Path, slow: MakeFabric) -> int:
    """Returns the bytes of journal that are the same."""
    run = RandomRun(seed)
    expected = run.journals(directory / "slow", slow)
    got = run.journals(directory / "fast", NativeFabric)
    assert got.keys() == expected.keys()
    for name, lines in expected.items():
        for place, line in enumerate(lines):
            assert got[name][place : place + 1] == [line], f"seed {seed}: {name}, line {place + 1}"
        assert len(got[name]) == len(lines), f"seed {seed}: {name} goes on"
    return sum(map(len, (line for lines in expected.values() for line in lines)))


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 5))])
def test_a_random_run_is_the_same_as_one_instant_after_the_other(seed: int, tmp_path: Path) -> None:
    assert compare(seed, tmp_path, OVER_NATIVE) > 0


@pytest.mark.parametrize("seed", [1, 4])
def test_a_run_whose_packets_are_recorded_is_the_same_run(seed: int, tmp_path: Path) -> None:
    run = RandomRun(seed)
    recorded = run.journals(tmp_path / "recorded", NativeFabric)
    plain = run.journals(tmp_path / "plain", NativeFabric, record=False)
    assert len(recorded.pop("packets")) > 100
    assert plain.pop("packets") == []
    assert without_samples(recorded) == without_samples(plain) == plain


def without_samples(journals: dict[str, list[str]]) -> dict[str, list[str]]:
    """What both runs journal: one whose packets are recorded also tells where receivers put some of them."""
    return {
        name: [line for line in lines if json.loads(line)["kind"] not in ("sampled", "memory")]
        for name, lines in journals.items()
    }


def test_the_commits_random_runs_are_the_same_as_one_instant_after_the_other(tmp_path: Path) -> None:
    assert sum(compare(seed, tmp_path / str(seed), OVER_NATIVE) for seed in seeds()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1006))
def test_a_random_run_is_the_same_on_the_interpreter(seed: int, tmp_path: Path) -> None:
    assert compare(seed, tmp_path, OVER_REFERENCE) > 0


@pytest.mark.parametrize(
    "plan", [load_plan("tiny"), load_plan("lab"), load_plan("rack").single_plane(), *SMALL.values()]
)
def test_a_simulated_hosts_profile_is_the_one_that_an_agent_reads(plan) -> None:
    profiles = HostProfiles(plan)
    for host in plan.hosts():
        made, read = profiles.of(host), profile.parse(nic_profile(plan, host))
        whole = {name: replace(other, paths=tuple(other.paths)) for name, other in made.destinations.items()}
        assert replace(made, destinations=whole, self_probes=tuple(made.self_probes)) == read
        assert len(made.self_probes) == len(read.self_probes)
        first = next(iter(made.destinations.values()))
        assert [first.paths[0], *first.paths[1:]] == list(first.paths)


@pytest.mark.parametrize("trims", [True, False])
def test_a_transport_knows_whether_its_fabric_trims(trims: bool) -> None:
    plan = load_plan("tiny", {"trimming.enabled": str(trims).lower()})
    for nic in (HostProfiles(plan).of(plan.host("h0")), profile.parse(nic_profile(plan, plan.host("h0")))):
        assert derive(nic, Settings()).trimming == trims


def test_a_hosts_records_are_the_same_whichever_other_hosts_share_its_process() -> None:
    plan = load_plan("tiny")
    profiles, (first, *others) = HostProfiles(plan), plan.hosts()
    own = profiles.of(first)
    assert all(other.paths[0] for other in own.destinations.values())
    alone = count_records([own])
    for host in others:
        assert all(other.paths[0] for other in profiles.of(host).destinations.values())
    assert count_records([own]) == alone


ROOT = Path(__file__).parents[3]
# Runs a scenario in virtual time and prints the form and a digest of all journals, but for what real clocks say.
PROGRAM = """
import hashlib, json, sys, tempfile
from pathlib import Path
from endpoint import FORM
from scenarios import library
from running.options import Choices
from running.runner import make_run
from running.spec import RunSpec
from running.transport_choice import transport
from topo.planfile import load_plan

name, seed = sys.argv[1], int(sys.argv[2])
scenario = library.find(name)
with tempfile.TemporaryDirectory() as folder:
    choices = Choices(
        transport(sys.argv[3]), load_plan(scenario.plan), seed=seed, world="simulated", time_factor=float(sys.argv[4])
    )
    run = make_run(RunSpec(scenario, choices), Path(folder))
    digest, lines = hashlib.sha256(), 0
    for path in sorted((run / "journal").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            if json.loads(line)["kind"] not in ("process", "options"):
                digest.update(line.encode())
                lines += 1
print(FORM.compiled, lines, digest.hexdigest())
"""


def runs(form: str, name: str, seed: int, transport: str, factor: float, **more: str) -> tuple[str, ...]:
    words = [sys.executable, "-c", PROGRAM, name, str(seed), transport, str(factor)]
    environment = {**os.environ, finder.SWITCH: form, "PYTHONHASHSEED": "random", **more}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return tuple(done.stdout.split())


@pytest.fixture(scope="module")
def build() -> None:
    """A build of the sources as they are. `./lab test` makes one; making one here would take a minute unasked."""
    if find(compiled.UNIT, compiled.UNIT.key()) is None:
        pytest.skip("the endpoint is not compiled as it is; ./lab compile")


@pytest.mark.parametrize(
    ("name", "transport"),
    [
        ("link-flap", "mrc"),
        pytest.param("incast", "mrc", marks=pytest.mark.slow),
        pytest.param("link-flap", "roce", marks=pytest.mark.slow),
    ],
)
@pytest.mark.smoke
def test_both_forms_write_the_same_journals_to_the_byte(build: None, name: str, transport: str) -> None:
    fast, lines, digest = runs("on", name, 7, transport, 0.02)
    slow, *same = runs("off", name, 7, transport, 0.02)
    assert (fast, slow) == ("True", "False")
    assert int(lines) > 100
    assert same == [lines, digest]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(building.QUICK) is None, reason="needs tcc")
@pytest.mark.parametrize("transport", ["mrc", "roce"])
def test_a_quick_build_writes_the_same_journals_to_the_byte(tmp_path, monkeypatch, transport: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert building.build(compiled.UNIT, print, quick=True).quick
    fast, *made = runs("on", "link-flap", 7, transport, 0.02)
    slow, *same = runs("off", "link-flap", 7, transport, 0.02)
    assert (fast, slow, made) == ("True", "False", same)


def test_twenty_runs_of_a_seed_have_one_hash_in_any_process_and_form(build: None) -> None:
    found = {
        runs(form, "link-flap", 11, "mrc", 0.05, PYTHONHASHSEED=hash_seed)[1:]
        for form in ("on", "off")
        for hash_seed in [str(number) for number in range(10)]
    }
    assert len(found) == 1
