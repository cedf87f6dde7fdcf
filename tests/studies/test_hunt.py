"""Hunts: what is drawn can be and must be survived, what breaks is made small, and planted bugs are found."""

import errno
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from endpoint.host import count_records
from judging.run import Run
from running.timeline import rehearse
from scenarios import library
from scenarios.scenario import Setting, TimedFault, Workload
from studies.hunting import found, invariants
from studies.hunting.attempt import AttemptOutcome, AttemptPool, attempt
from studies.hunting.case import Case
from studies.hunting.draw import APART, draw
from studies.hunting.hunt import RUNS_MAX, Hunt, Shrinker
from studies.hunting.survivable import (
    OUTAGE_ROUND_TRIPS,
    RESPITE_ROUND_TRIPS,
    longest_outage_s,
    paths_known,
    survivable,
)
from tests.helpers.hunted import FOUND
from tests.helpers.planted_bugs import BUGS
from topo.planfile import load_plan

TINY = load_plan("tiny")
ALL = TINY.planes * TINY.spines
LIMIT_S = 900


def a_case(*faults: TimedFault) -> Case:
    fabric = {"planes": 3, "leaves": 3, "spines": 3, "hosts_per_leaf": 2}
    load = Workload("mix", {"depth": 8, "qps": 2, "sizes": [[64, 1]]}, ("h0", "h2", "h4"))
    settings = {"evs_active": 4, "timestamps": True}
    return Case(5, fabric, (load, replace(load, name="other")), faults, {"queues": {"trim": 0.5}}, settings)


FAULTS = tuple(TimedFault(0.1 * n, "loss", f"p{n % 3}l0-p{n % 3}s{n // 3}", 0.05, 7.3, n) for n in range(8))


# --- what is drawn


def test_a_seed_draws_the_same_case_and_other_seeds_other_ones() -> None:
    assert draw(7) == draw(7)
    cases = [draw(seed) for seed in range(60)]
    assert len({case.describe() for case in cases}) > 40
    assert {fault.verb for case in cases for fault in case.faults} >= {"link-down", "loss", "drain", "switch-crash"}
    assert any(case.repeats > 1 for case in cases)
    assert {case.plan.queues.retransmit_priority for case in cases} == {0, 1, 6}
    assert any(case.settings.get("congested_ev") == "skip" for case in cases)


def test_verbs_that_hunts_learned_later_are_drawn_beside_what_a_seed_always_drew(monkeypatch) -> None:
    cases = [draw(seed) for seed in range(150)]
    assert {fault.verb for case in cases for fault in case.faults} >= set(APART)
    monkeypatch.setattr("studies.hunting.draw.APART_SHARE", 0.0)
    for seed, case in enumerate(cases):
        earlier = tuple(fault for fault in case.faults if fault.verb not in APART)
        assert draw(seed) == replace(case, faults=earlier)


def test_some_tries_have_another_topology_and_the_words_say_so() -> None:
    cases = [draw(seed) for seed in range(60)]
    assert {case.topology for case in cases} == {"leaf-spine", "pods", "rails", "uneven", "list"}
    assert any("without p" in case.describe() for case in cases)
    assert any(" of its rate" in case.describe() for case in cases)
    assert any(case.describe().endswith("on a list of 16 cables") for case in cases)
    pods = next(case for case in cases if case.topology == "pods")
    assert pods.plan.topology.longest_path_switches == 5
    assert "pods, cores)" in pods.describe()
    assert attempt(pods) == AttemptOutcome({})


@pytest.mark.parametrize("seed", range(25))
def test_every_case_that_is_drawn_can_be_run_and_leaves_every_pair_of_hosts_a_path(seed: int) -> None:
    case = draw(seed)
    rehearse(case.spec())
    assert survivable(case.plan, case.faults, paths_known(case.plan, case.settings))


def test_an_outage_is_as_long_as_no_path_of_a_pair_is_sound() -> None:
    cut = [TimedFault(0.0, "port-down", f"h0.p{plane}", 1.0 + plane) for plane in range(2)]
    assert longest_outage_s(TINY, cut, ALL) == 1.0
    assert longest_outage_s(TINY, cut[:1], ALL) == 0.0
    stopped = [TimedFault(0.0, "switch-stop", f"p{plane}l0") for plane in range(2)]
    assert longest_outage_s(TINY, stopped, ALL) == float("inf")
    rtt_s = TINY.base_rtt_ns / 1e9
    assert survivable(TINY, [replace(one, for_s=(OUTAGE_ROUND_TRIPS - 1) * rtt_s) for one in cut], ALL)
    assert not survivable(TINY, [replace(one, for_s=(OUTAGE_ROUND_TRIPS + 1) * rtt_s) for one in cut], ALL)
    assert not survivable(TINY, [cut[0], replace(cut[0], at_s=0.5)], ALL)


@pytest.mark.parametrize(("respite", "round_trips"), [(RESPITE_ROUND_TRIPS - 1, 31), (RESPITE_ROUND_TRIPS + 1, 7)])
def test_outages_that_leave_too_little_time_between_them_are_one(respite: int, round_trips: int) -> None:
    """A hunt found five outages in 35 round trips: no path was sound for long enough to be found sound."""
    rtt_s = TINY.base_rtt_ns / 1e9
    cuts = [
        TimedFault(at * rtt_s, "port-down", f"h0.p{plane}", length * rtt_s)
        for at, length in ((2, 5), (7 + respite, 7))
        for plane in range(2)
    ]
    assert longest_outage_s(TINY, cuts, ALL) == pytest.approx(round_trips * rtt_s)
    assert survivable(TINY, cuts, ALL) is (round_trips <= OUTAGE_ROUND_TRIPS)


def test_a_queue_pair_of_few_paths_has_an_outage_when_as_many_are_bad() -> None:
    """A hunt found queue pairs of one path, which stand still as long as that path is cut."""
    assert paths_known(TINY, {}) > ALL
    assert paths_known(TINY, {"selection": "single_path"}) == 1
    assert paths_known(TINY, {"evs_active": 2, "evs_backup": 2}) == 2 * TINY.planes
    assert longest_outage_s(TINY, [TimedFault(0.0, "link-down", "p1l0-p1s0", 1.0)], 1) == 1.0


# --- shrinking


def breaks_when(rule: Callable[[Case], bool]) -> Callable[[Case], AttemptOutcome]:
    return lambda case: AttemptOutcome({"made up": "it broke"} if rule(case) else {})


def test_what_is_left_of_a_case_is_only_what_breaks_it() -> None:
    def rule(case: Case) -> bool:
        return sum(fault.target in ("p1l0-p1s0", "p2l0-p2s1") for fault in case.faults) == 2

    broken = a_case(*FAULTS)
    shrunk = Shrinker(breaks_when(rule)).shrink(broken, breaks_when(rule)(broken))
    assert sorted(fault.target for fault in shrunk.case.faults) == ["p1l0-p1s0", "p2l0-p2s1"]
    assert shrunk.finished
    assert (len(shrunk.case.workloads), shrunk.case.settings, shrunk.case.plan_keys) == (1, {}, {})
    assert shrunk.case.workloads[0].kind == "write_bw"
    assert shrunk.case.fabric == {"planes": 3, "leaves": 1, "spines": 2, "hosts_per_leaf": 2}
    assert all(fault.at_s == 0.0 and (fault.for_s or 0) < 0.05 for fault in shrunk.case.faults)
    assert shrunk.case.size < broken.size


def shrunk_where(case: Case, broken: Callable[[Case], bool]) -> Case:
    """The smallest case of a defect that is told by the case alone."""
    outcome = AttemptOutcome({"flows move": "one stood still"})
    found = Shrinker(lambda one: outcome if broken(one) else AttemptOutcome({})).shrink(case, outcome)
    assert broken(found.case)
    assert found.finished
    assert found.case.size < case.size
    return found.case


def test_an_uneven_fabric_shrinks_to_the_part_that_breaks() -> None:
    """As if what broke were a plane with fewer spines than another."""

    def broken(case: Case) -> bool:
        ways = [sum(1 for _ in case.plan.topology.ways(plane, 0, 1)) for plane in range(case.plan.planes)]
        return len(set(ways)) > 1

    parts = {"without": ["p2s1", "p0l2-p0s0"], "speeds": {"p0l0-p0s1": 0.5}, "more_hosts": {"l1": 1}}
    fabric = {"planes": 3, "leaves": 3, "spines": 3, "hosts_per_leaf": 1}
    load = Workload("write_bw", {"size": 64, "depth": 1}, ("h0", "h1"), name="load0")
    found = shrunk_where(Case(1, fabric, (load,), (), parts=parts), broken)
    assert found.fabric == {"planes": 3, "leaves": 2, "spines": 2, "hosts_per_leaf": 1}
    assert found.parts == {"without": ["p2s1"]}
    assert found.describe() == ("0 faults, write_bw on 3×2×2×1 (planes, leaves, spines, hosts per leaf), without p2s1")


def test_a_list_shrinks_cable_by_cable_and_to_two_tiers_where_that_breaks_too() -> None:
    pairs = ["h0-l0", "h1-l1", "h2-l2", "h3-l3", "l0-l1", "l1-l2", "l2-l3", "l3-l0"]
    names = [pair.split("-") for pair in pairs]
    rows: list[list[Any]] = [
        [one if one[0] == "h" else f"p{plane}{one}", f"p{plane}{other}"] for plane in range(2) for one, other in names
    ]
    rows[4].append(0.5)
    load = Workload("write_bw", {"size": 64, "depth": 1}, ("h0", "h1"), name="load0")
    case = Case(1, {}, (load,), (TimedFault(0.1, "loss", "p0l0-p0l1", 0.2, 5.0, 1),), parts={"cables": rows})
    assert case.describe() == "1 fault, write_bw on a list of 16 cables, 1 of them slow"
    assert shrunk_where(case, lambda one: one.plan.planes > 1).fabric["planes"] == 2
    found = shrunk_where(case, lambda one: one.plan.topology.spines == 0 and bool(one.faults))
    assert found.parts["cables"] == [["h0", "p0l0"], ["h1", "p0l1"], ["p0l0", "p0l1"]]
    rehearse(found.spec())


def test_shrinking_is_deterministic_and_counts_its_runs() -> None:
    asked: list[Case] = []

    def rule(case: Case) -> bool:
        asked.append(case)
        return len(case.faults) >= 3

    results = []
    for _ in range(2):
        asked.clear()
        shrunk = Shrinker(breaks_when(rule)).shrink(a_case(*FAULTS), AttemptOutcome({"made up": "it broke"}))
        assert shrunk.runs == len(asked) <= RUNS_MAX
        results.append((shrunk.case, shrunk.runs))
    assert results[0] == results[1]
    assert len(results[0][0].faults) == 3


def test_a_disk_that_fills_while_a_case_is_shrunk_leaves_the_finding() -> None:
    outcomes = [AttemptOutcome({"made up": "it broke"})] * 2

    def full(case: Case) -> AttemptOutcome:
        if not outcomes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/x")
        return outcomes.pop()

    shrunk = Shrinker(full).shrink(a_case(*FAULTS), AttemptOutcome({"made up": "it broke"}))
    assert (shrunk.outcome.broken, shrunk.finished, shrunk.runs) == ({"made up": "it broke"}, False, 3)


def test_shrinking_never_changes_what_breaks_nor_makes_a_case_that_need_not_be_survived() -> None:
    def other(case: Case) -> AttemptOutcome:
        assert survivable(case.plan, case.faults, paths_known(case.plan, case.settings))
        rehearse(case.spec())
        return AttemptOutcome({"made up" if len(case.faults) > 4 else "another": "it broke"})

    shrunk = Shrinker(other).shrink(a_case(*FAULTS), AttemptOutcome({"made up": "it broke"}))
    assert len(shrunk.case.faults) == 5
    assert list(shrunk.outcome.broken) == ["made up"]


# --- what must hold


Entry = tuple[float, str, str, dict[str, Any]]


def lines(*kinds: Entry) -> Run:
    usual: list[Entry] = [
        (0.0, "runner", "options", {"base_rtt_ns": 50_000_000, "settings": {"probes_to_resurrect": 4}}),
        (0.0, "runner", "phase", {"name": "reference", "state": "start"}),
        (1.0, "runner", "phase", {"name": "reference", "state": "stop"}),
    ]
    found = [{"t_ns": round(t_s * 1e9), "node": node, "kind": kind, **own} for t_s, node, kind, own in (*usual, *kinds)]
    return Run(sorted(found, key=lambda line: int(line["t_ns"])))


def test_a_plane_taken_to_be_down_in_the_end_and_a_workload_that_got_what_was_not_sent_are_told() -> None:
    def plane(t_s: float, state: str) -> Entry:
        return (t_s, "h1", "plane", {"plane": 0, "side": "peer", "peer": "h2", "state": state})

    assert invariants.planes_healed()(lines(plane(2, "down"), plane(3, "up"))).holds is True
    finding = invariants.planes_healed()(lines(plane(2, "up"), plane(3, "down")))
    assert finding.reason == "h1 takes that of h2 port in plane 0 to be down at the end"
    assert finding.holds is False
    stop = {"name": "main", "state": "stop", "outcome": "failed", "cause": "h0 sent immediate 0x3"}
    finding = invariants.workloads_end_well()(lines((5.0, "h1", "workload", stop)))
    assert (finding.holds, finding.reason) == (False, "h1: h0 sent immediate 0x3")


@pytest.mark.parametrize(
    ("back_s", "cause", "holds"), [(2.15, "probed", False), (2.3, "probed", True), (2.05, "late_ack", True)]
)
def test_a_path_that_comes_back_before_its_probes_can_is_told(back_s: float, cause: str, holds: bool) -> None:
    path = {"qp": 1, "ev": 7, "peer": "h2", "plane": 0, "via": "p0s0"}
    out = (2.0, "h1", "ev", {**path, "old": "good", "new": "assumed_bad", "cause": "loss"})
    back = (back_s, "h1", "ev", {**path, "old": "assumed_bad", "new": "good", "cause": cause})
    assert invariants.probes_counted()(lines(out, back)).holds is holds


@pytest.mark.parametrize(("beyond", "holds"), [(0, False), (3, True)])
def test_a_sound_path_that_is_abandoned_is_told_unless_trimmed_packets_were_too_many(beyond: int, holds: bool) -> None:
    lost = {"qp": 1, "ev": 7, "peer": "h2", "plane": 0, "via": "p0s0", "old": "good", "new": "assumed_bad"}
    ports = [{"port": 1, "rx_packets": 10, "tx_packets": 10 - beyond, "drop_trimmed_share": beyond}]
    abandoned: Entry = (0.7, "h1", "ev", {**lost, "cause": "loss"})
    counted: Entry = (9.0, "p0l0", "sample", {"device": "p0l0", "ports": ports})
    assert invariants.sound_paths_kept(trimming=True)(lines(abandoned, counted)).holds is holds


@pytest.mark.parametrize(
    ("back_s", "cause", "holds"), [(0.72, "late_ack", True), (0.72, "probed", False), (0.9, "late_ack", False)]
)
def test_a_sound_path_may_be_left_only_until_the_late_acknowledgement(back_s: float, cause: str, holds: bool) -> None:
    path = {"qp": 1, "ev": 7, "peer": "h2", "plane": 0, "via": "p0s0"}
    left: Entry = (0.7, "h1", "ev", {**path, "old": "good", "new": "assumed_bad", "cause": "loss"})
    back: Entry = (back_s, "h1", "ev", {**path, "old": "assumed_bad", "new": "good", "cause": cause})
    assert invariants.sound_paths_kept(trimming=True)(lines(left, back)).holds is holds


@pytest.mark.parametrize(("counts", "holds"), [((50, 110, 170), False), ((50, 110, 112), True), ((0, 30, 60), True)])
def test_what_grows_from_round_to_round_is_told(counts: tuple[int, ...], holds: bool) -> None:
    rounds: list[Entry] = []
    for number, count in enumerate(counts, start=1):
        name = "after" if number == 1 else f"after {number}"
        rounds.append((10.0 * number, "runner", "phase", {"name": name, "state": "start"}))
        rounds.append((10.0 * number + 5, "h0", "records", {"label": name, "records": {"EvSet.list": count}}))
    finding = invariants.nothing_grows()(lines(*rounds))
    assert finding.holds is holds
    assert holds or "h0 keeps EvSet.list: 50, 110, 170 records" in finding.reason


@pytest.mark.parametrize(("left_s", "lost", "holds"), [(4.5, 1, True), (4.5, 0, False), (3.9, 6, False)])
def test_only_a_path_abandoned_of_late_beside_lost_trimmed_packets_may_be_bad_at_the_end(left_s, lost, holds) -> None:
    """The run ends at 6 s; forty round trips are two."""
    left = {"qp": 1, "ev": 7, "peer": "h2", "plane": 0, "via": "p0s0", "old": "good", "new": "assumed_bad"}
    agent: Entry = (2.0, "h1", "sample", {"qps": [{"qp": 1, "peer": "h2", "acked_bytes": 1}], "ports": []})
    switch: Entry = (6.0, "switches", "sample", {"device": "p0l0", "ports": [{"port": 1, "drop_trimmed_share": lost}]})
    assert (
        invariants.paths_healed()(lines(agent, (left_s, "h1", "ev", {**left, "cause": "loss"}), switch)).holds is holds
    )


def test_a_queue_pair_that_stands_still_is_told() -> None:
    def sample(t_s: float, acked: int, **more: int) -> Entry:
        return (t_s, "h0", "sample", {"qps": [{"qp": 1, "peer": "h1", "acked_bytes": acked, **more}], "ports": []})

    moving = [sample(n / 10, n * 100) for n in range(60)]
    still = [sample(n / 10, min(n, 20) * 100) for n in range(60)]
    end = [(1.0, "runner", "phase", {"name": "faults", "state": "start"})]
    end += [(6.0, "runner", "phase", {"name": "faults", "state": "stop"})]
    assert invariants.flows_move()(lines(*moving, *end)).holds is True
    assert invariants.flows_move()(lines(*still, *end)).holds is False
    waiting = [sample(n / 10, min(n, 20) * 100, pending=1) for n in range(60)]
    assert invariants.flows_move()(lines(*waiting, *end)).holds is False
    for back in (invariants.flows_back(phase="faults"), invariants.goodput_back(phase="faults")):
        assert [back(lines(*samples, *end)).holds for samples in (moving, still)] == [True, False]
        assert back(lines(*moving)).holds is None  # nothing is known about a phase that the run has not reached
    # Hunts found queue pairs whose workload had nothing for them, because a rate or another host held it up.
    for first in (21, 40):  # a write is posted at 2.1 s or at 4.0 s, and carried at 5.4 s; 35 round trips are 1.75 s
        idle = [sample(n / 10, min(n, 20) * 100, pending=int(n >= first)) for n in range(54)]
        idle += [sample(n / 10, n * 100, pending=1) for n in range(54, 60)]
        assert invariants.flows_move()(lines(*idle, *end)).holds is (first == 40)


def test_the_records_count_is_of_what_an_object_keeps_by_who_keeps_it() -> None:
    class Keeper:
        def __init__(self) -> None:
            self.records: list[Any] = [[], []]
            self.self = self

    keeper = Keeper()
    before = count_records([keeper])
    keeper.records += [[1], [2]]
    after = count_records([keeper])
    assert after["Keeper.list"] - before["Keeper.list"] == 4
    assert after.get("Keeper.dict") == before.get("Keeper.dict")


# --- whole hunts


def test_a_hunt_over_sound_code_finds_nothing_and_its_tries_follow_from_its_seed() -> None:
    seen: list[Case] = []

    def watched(case: Case) -> AttemptOutcome:
        seen.append(case)
        return attempt(case) if len(seen) <= 4 else AttemptOutcome({})

    hunt = Hunt(4, watched)
    hunt.run(tries=8)
    assert (hunt.tries, hunt.catches) == (8, [])
    assert [draw(seed) for seed, _ in zip(Hunt(4).seeds(), seen, strict=False)] == seen


def test_a_hunt_of_two_processes_sees_what_one_process_sees_in_the_same_order() -> None:
    seeds = [seed for seed, _ in zip(Hunt(4).seeds(), range(6), strict=False)]
    with AttemptPool(2) as pool:
        made = list(pool.outcomes(iter(seeds)))
    assert [case for case, _ in made] == [draw(seed) for seed in seeds]
    assert [outcome for _, outcome in made] == [attempt(draw(seed)) for seed in seeds]


def test_a_worker_that_is_killed_costs_a_hunt_no_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other hunts on this machine have scratch folders as well
    seeds = [seed for seed, _ in zip(Hunt(4).seeds(), range(6), strict=False)]
    with AttemptPool(2) as pool:
        made = pool.outcomes(iter(seeds))
        cases = [next(made)[0]]
        multiprocessing.active_children()[0].kill()
        cases += [case for case, _ in made]
        assert list(tmp_path.glob("mrclab-farm-*"))
    assert cases == [draw(seed) for seed in seeds]
    assert list(tmp_path.iterdir()) == []


def test_an_exception_inside_a_run_is_something_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("no such peer")

    monkeypatch.setattr("running.worlds.simulated.SimulatedWorld.wait_until", fail)
    assert attempt(draw(1)).broken == {
        "exception KeyError in fail": f"test_hunt.py:{fail.__code__.co_firstlineno + 1}: 'no such peer'"
    }


def test_what_is_found_is_a_scenario_that_runs_by_itself(tmp_path: Path) -> None:
    for case in (draw(3), replace(a_case(*FAULTS[:1]), rounds=3, repeats=2, workloads=a_case().workloads[:1])):
        path = found.write(tmp_path, f"case_{case.seed}", case, AttemptOutcome({"made up": 'it """broke"""'}), 5, 17)
        loaded = library.find(str(path))
        again, setting = case.scenario(), setting_of(case)
        assert loaded.phases == again.phases
        assert load_plan(loaded.plan) == case.plan
        assert sorted(loaded.timeline(setting), key=repr) == sorted(again.timeline(setting), key=repr)
        assert list(loaded.workloads(setting)) == list(again.workloads(setting))
        assert (dict(loaded.settings), loaded.count_records) == (dict(again.settings), again.count_records)
        assert f"./lab run {path} --world simulated --seed {case.seed}" in path.read_text()
    words = ["run", str(tmp_path / f"case_{draw(3).seed}.py"), "--world", "simulated", "--seed", str(draw(3).seed)]
    assert main([*words, "--runs", str(tmp_path / "runs"), "--plain"]) in (0, 3)


def test_the_command_prints_its_seed_first_and_says_what_it_did(tmp_path, capsys, refused) -> None:
    words = ["hunt", "--seed", "4", "--tries", "1", "--runs", str(tmp_path), "--output", str(tmp_path / "found")]
    assert main([*words, "--plain"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "hunt of seed 4"
    assert said[-1].startswith("1 try, ")
    assert main([*words, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"seed": 4, "tries": 1, "silent": 0, "found": []}
    assert "--tries must be a number above 0" in refused("hunt", "--tries", "-1")
    assert "--workers must be between 1 and 256 (got 0)" in refused("hunt", "--workers", "0")


def test_what_a_killed_hunt_left_is_removed_by_the_next_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = (
        "from studies.hunting.attempt import AttemptPool; import sys; AttemptPool(1).__enter__();"
        "print(1, flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", own], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline()
        (left,) = tmp_path.glob("mrclab-farm-*")
        killed.kill()
    assert left.exists()
    with AttemptPool(1):
        assert left not in set(tmp_path.glob("mrclab-farm-*"))
    assert not list(tmp_path.glob("mrclab-farm-*"))


def hunted(name: str) -> dict[str, Any]:
    """A hunt for a planted bug, in a process of its own, whose transport is interpreted: only that can be changed."""
    words = [sys.executable, "-m", "tests.helpers.planted_bugs", name]
    environment = {**os.environ, "MRCLAB_COMPILED": "off"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_every_planted_bug_is_found_and_shrunk_to_at_most_three_entries(name: str) -> None:
    result = hunted(name)
    assert result["found"], f"{name} was not found in {result['tries']} tries"
    assert result["after"] <= 3
    assert result["finished"]
    assert result["run_again"] == 1


def test_sentences_that_must_hold_have_own_names_and_paths_need_not_be_good_where_queues_lose() -> None:
    names = [check.__qualname__ for check in invariants.must_hold(setting_of(draw(1)))]
    assert len(names) == len(set(names)) >= 12
    # A hunt found a loaded fabric without trimming, whose last loss came just before the end.
    usual = a_case()
    every = {check.__qualname__ for check in invariants.must_hold(setting_of(replace(usual, plan_keys={})))}
    without = replace(usual, plan_keys={"trimming": {"enabled": False}})
    assert every - {check.__qualname__ for check in invariants.must_hold(setting_of(without))} == {"paths_healed"}


@pytest.mark.parametrize("name", FOUND)
def test_what_a_hunt_has_found_is_mended(name: str) -> None:
    assert attempt(FOUND[name]).broken == {}


def setting_of(case: Case) -> Setting:
    return case.spec().setting


# --- settings of the user's


def test_a_users_settings_are_in_every_case_before_drawn_ones_and_shrinking_keeps_them(tmp_path: Path) -> None:
    given = {"selection": "reps", "evs_active": 8}
    for seed in range(30):
        case, plain = draw(seed, given), draw(seed)
        assert (case.fabric, case.workloads, case.settings) == (plain.fabric, plain.workloads, plain.settings)
        assert case.transport_settings == {**plain.settings, **given}
        assert case.spec().choices.transport.settings == case.transport_settings
        assert survivable(case.plan, case.faults, paths_known(case.plan, case.transport_settings))
    case = replace(a_case(FAULTS[0]), given={"selection": "reps"})
    broken = AttemptOutcome({"messages": "one is missing"})
    shrunk = Shrinker(lambda smaller: broken).shrink(case, broken)
    assert shrunk.case.settings == {}
    assert shrunk.case.transport_settings == {"selection": "reps"}
    path = found.write(tmp_path, "kept", shrunk.case, broken, 1, shrunk.runs)
    assert library.find(str(path)).settings == {"selection": "reps"}


@pytest.mark.parametrize(
    ("word", "told"),
    [("selection=nonsense", "no path selection"), ("mpr=x", "mpr is"), ("selection.x=3", "no such parameter")],
)
def test_a_setting_that_no_run_takes_is_refused_before_the_hunt(word: str, told: str, refused, tmp_path) -> None:
    assert told in refused("hunt", "--setting", word, "--tries", "1", "--plain", "--output", str(tmp_path / "found"))
    assert not list(tmp_path.iterdir())


RAISES = """
from endpoint.mrc.paths.selection import Selection


class Mine(Selection):
    def __init__(self, evs, rng, values):
        super().__init__(evs, rng, values)
        FIRST

    def next(self, usable):
        raise LookupError("a path\\n that is not there")
"""


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("1 / 0", "{file}:8: ZeroDivisionError: division by zero (in selection Mine.__init__)"),
        ("pass", "{file}:11: LookupError: a path that is not there (in selection Mine.next)"),
    ],
)
def test_an_algorithm_that_raises_is_found_whenever_it_raises(first: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(RAISES.replace("FIRST", first))
    case = replace(a_case(FAULTS[0]), given={"selection": f"{file}:Mine"})
    assert attempt(case).broken == {"algorithm": said.format(file=file)}


@pytest.mark.slow
def test_the_guides_wrong_algorithm_is_found_at_the_first_try_and_as_small_as_the_guide_shows(tmp_path, capsys) -> None:
    root = Path(__file__).parents[2]
    setting = f"selection={root / 'docs/templates/grudge.py'}:Grudge"
    words = ["--seed", "26", "--tries", "1", "--plain", "--output", str(tmp_path / "found"), "--runs", str(tmp_path)]
    assert main(["hunt", "--setting", setting, *words]) == 1
    page, printed = (root / "docs/guide.md").read_text(), capsys.readouterr().out
    for line in (
        "found at try 1: goodput back",
        "shrunk  1 fault, incast on 2×2×1×1",
        "in 40 runs",
        "--seed 901513958",
    ):
        assert line in page
        assert line in printed
