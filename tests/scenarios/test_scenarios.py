"""Scenarios: draws with their rates, loads worked out by hand, forms, and claims that are true as they stand."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean, pvariance
from typing import Any

import pytest

from common.journal import Journal
from judging import jobs
from judging.judge import judge
from judging.measures.paths import PathKey
from judging.run import Run
from judging.verdict import Verdict
from running.directory import RunDirectory
from running.options import Choices
from running.runner import Runner
from running.spec import RunSpec
from running.timeline import rehearse
from running.transport_choice import TRANSPORTS, transport
from running.worlds.simulated import SimulatedWorld
from scenarios import cold_start, ddp, flap_trace, job, job_port, library, lossy_port, maintenance, nic_optics, places
from scenarios.flap_trace import LASTS_S, MINUTE_S, drawn
from scenarios.scenario import Scenario, Setting, TimedFault, carried_out
from tests.topo.topologies.shapes import SMALL
from topo.graph import links
from topo.node import ROLES, Host
from topo.path import paths
from topo.plan import Plan
from topo.planfile import load_plan, parse_document

LINKS = [f"link{number}" for number in range(64)]
HOURS_S = 250 * MINUTE_S


def per_minute(faults: list[TimedFault], seconds: float) -> list[int]:
    """How many begin in each whole minute: the trace of the paper's figure 5."""
    counts = [0] * int(seconds // MINUTE_S)
    for fault in faults:
        counts[int(fault.at_s // MINUTE_S)] += 1
    return counts


def test_250_minutes_look_like_the_papers_trace() -> None:
    """Figure 5: mean 4.2, lowest 1, highest 13. Over 40 seeds the mean is known to within 0.02 or so."""
    counts = [per_minute(drawn(LINKS, HOURS_S, Random(seed)), HOURS_S) for seed in range(40)]
    assert {len(one) for one in counts} == {250}
    minutes = [count for one in counts for count in one]
    assert fmean(minutes) == pytest.approx(4.2, rel=0.02)
    assert pvariance(minutes) == pytest.approx(4.2, rel=0.06), "a Poisson process has the variance of its mean"
    assert 10 <= fmean(max(one) for one in counts) <= 13
    assert fmean(min(one) for one in counts) <= 1


def test_no_link_is_hit_while_it_is_down_and_all_are_up_in_the_end() -> None:
    for seed in range(20):
        until: dict[str, float] = {}
        for fault in drawn(LINKS[:3], 1200.0, Random(seed)):
            assert fault.for_s is not None
            assert until.get(fault.target, -1.0) < fault.at_s
            until[fault.target] = fault.at_s + fault.for_s
            assert until[fault.target] <= 1200.0
            assert fault.for_s <= LASTS_S[1]


def test_a_seed_repeats_its_schedule_another_differs_and_nothing_to_draw_from_is_refused() -> None:
    one, again, other = (drawn(LINKS, 600.0, Random(seed)) for seed in (5, 5, 6))
    assert one == again != other
    with pytest.raises(ValueError, match="link-down needs at least one target"):
        drawn([], 60.0, Random(1))


def test_the_scenario_grows_with_its_phase_and_uses_every_plane() -> None:
    scenario = library.find("flap-trace@hours")
    plan = load_plan(scenario.plan)
    flaps = scenario.timeline(setting(scenario, plan, 1))
    assert len(flaps) == pytest.approx(4.2 * 250, rel=0.1)
    assert {flap.target[1] for flap in flaps} == {str(plane) for plane in range(plan.planes)}


def setting(scenario: Scenario, plan: Plan, seed: int) -> Setting:
    return Setting(plan, "mrc", seed, {phase.name: phase.seconds for phase in scenario.phases})


@pytest.mark.parametrize("name", SMALL)
def test_every_leaf_has_a_dead_link_and_no_link_is_dead_twice(name: str) -> None:
    plan = SMALL[name]
    cables = {frozenset((link.a.node.name, link.b.node.name)) for link in links(plan)}
    for seed in range(1, 9):
        faults = cold_start.timeline(setting(cold_start.SCENARIO, plan, seed))
        dead = [frozenset(fault.target.split("-")) for fault in faults]
        assert len(set(dead)) == len(dead)
        assert set(dead) <= cables
        assert {one.name for one in plan.switches() if one.role == "leaf"} <= {end for one in dead for end in one}


@pytest.mark.parametrize("name", SMALL)
def test_a_path_of_the_journal_crosses_the_links_that_it_has_in_the_plan(name: str) -> None:
    """Also where two leaves are wired to each other, and where a core lies between two spines."""
    plan = SMALL[name]
    own = setting(cold_start.SCENARIO, plan, 1)
    for other in plan.hosts():
        for path in paths(plan, Host(0), other) if other.index else ():
            key = PathKey("h0", other.name, path.plane, path.via or "local", path.ev, 1)
            names = [switch.name for switch in path.switches]
            assert places.crossed(own, key) == names[1:-1]
            assert places.crossed_links(own, key) == [frozenset(ends) for ends in pairwise(names)]


@pytest.mark.parametrize("name", TRANSPORTS)
def test_bytes_in_flight_at_the_end_of_the_incast_arrive_within_the_pause(name: str) -> None:
    scenario, choice = library.find("incast"), TRANSPORTS[name]
    lengths = {phase.name: phase.seconds for phase in scenario.phases}
    setting = Setting(choice.fabric(load_plan(scenario.plan)), name, 7, lengths, choice.queue_pairs)
    (incast,) = (one for one in scenario.workloads(setting) if one.name == "incast")
    assert incast.ranks is not None
    posted = incast.options["size"] * incast.options["depth"] * incast.options["qps"] * (len(incast.ranks) - 1)
    assert posted * 8 / setting.host_rate_bps < lengths["pause"]


SECOND = 10**9
FIRST_EV = 65536 + 49152


@dataclass(frozen=True)
class Drain:
    """A drained spine. `peers` are those of h2 and h3, then of h0 and h1; `via` is of their first path in plane 1."""

    plan: str
    target: str
    peers: tuple[str, str]
    via: str

    @property
    def setting(self) -> Setting:
        return setting(library.find("maintenance"), load_plan(self.plan), 7)


TWO_TIERS = Drain("tiny", "p1s0", ("h0", "h3"), "p1s0")
DRAINS = {
    "two tiers": TWO_TIERS,
    "the spine that an EV of three tiers names": Drain("pods", "p1s0", ("h7", "h6"), "p1s0+p1c0"),
    "the spine of the other pod, which no EV names": Drain("pods", "p1s2", ("h7", "h6"), "p1s0+p1c0"),
}


def with_drain(run: Run, drain: Drain, hosts: tuple[str, ...], back_s: int = 18) -> Run:
    """The spine is drained from 12 s to 20 s; these hosts deny their first path in plane 1 until `back_s`."""
    lines = [line for line in run.lines if line["kind"] not in ("fault", "ev")]
    for host in {line["node"] for line in lines if "qps" in line}:
        for line in lines:
            if line["node"] == host and "qps" in line:
                line["qps"] = [{**qp, "peer": drain.peers[host in ("h0", "h1")]} for qp in line["qps"]]
    for t_s, state in ((12, "begin"), (20, "end")):
        fault = {"verb": "drain", "target": drain.target, "state": state, "arguments": {}}
        lines.append({"t_ns": t_s * SECOND, "node": "runner", "kind": "fault", **fault})
    path = {"qp": 1, "peer": drain.peers[1], "ev": FIRST_EV, "plane": 1, "via": drain.via}
    for host in hosts:
        for t_s, old, new in ((12, "good", "denied"), (back_s, "denied", "good")):
            lines.append(
                {"t_ns": t_s * SECOND, "node": host, "kind": "ev", **path, "old": old, "new": new, "cause": ""}
            )
    return Run(sorted(lines, key=lambda line: int(line["t_ns"])))


@pytest.mark.parametrize("drain", DRAINS.values(), ids=DRAINS)
@pytest.mark.parametrize(
    ("hosts", "back_s", "holds"),
    [
        (("h0", "h1", "h2", "h3"), 20, True),
        (("h0", "h1", "h3"), 20, False),
        (("h0", "h1", "h2", "h3"), 14, False),  # back on it long before it was
        ((), 20, False),
    ],
)
def test_every_host_must_keep_off_the_drained_spine(made_up, drain, hosts, back_s, holds) -> None:
    finding = maintenance.drained(drain.setting)(with_drain(made_up(), drain, hosts, back_s))
    assert finding.holds is holds, finding.reason


def test_without_a_drain_nothing_is_known(made_up: Callable[..., Run]) -> None:
    assert maintenance.drained(TWO_TIERS.setting)(made_up()).holds is None


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("role", ROLES)
def test_a_form_crashes_switches_of_its_tier_one_after_another(role: str, short: bool) -> None:
    scenario = library.find(f"switch-reboot@{role}")
    scenario = scenario.shortened() if short else scenario
    plan = load_plan("pods")
    drawn = set()
    for seed in range(40):
        own = setting(scenario, plan, seed)
        faults = scenario.timeline(own)
        switches = [plan.switch_node(fault.target) for fault in faults]
        assert {switch.role for switch in switches} == {role}
        assert len(set(switches)) == len(switches) == (2 if short else 4)
        ends = [fault.at_s + (fault.for_s or 0.0) for fault in faults]
        assert all(end < later.at_s for end, later in zip(ends, faults[1:], strict=False))
        assert ends[-1] < own.phases["faults"]
        rehearse(RunSpec(scenario, Choices(transport("mrc"), plan, seed=seed)))
        drawn.update(switches)
    assert drawn == {switch for switch in plan.switches() if switch.role == role}


def test_the_usual_form_draws_as_before() -> None:
    """Runs of earlier versions repeat to the byte: what seed 3 drew on both plans when the forms were added."""
    scenario = library.find("switch-reboot")
    for plan, targets in (("lab", "p1s3 p2s1 p2s0 p0s2 p2l3"), ("pods", "p0s2 p1s3 p0c3 p1c0 p1l0")):
        own = setting(scenario, load_plan(plan), 3)
        assert [fault.target for fault in scenario.timeline(own)] == targets.split()


def test_a_tier_that_the_plan_lacks_is_refused_with_the_forms_that_it_has() -> None:
    scenario = library.find("switch-reboot@core")
    valid = "use switch-reboot@leaf or switch-reboot@spine"
    with pytest.raises(ValueError, match=f"crashes cores, and plan 'lab' has none: {valid}"):
        rehearse(RunSpec(scenario, Choices(transport("mrc"), load_plan("lab"), seed=1)))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("switch-reboot@pod", "no form 'pod': valid are switch-reboot@leaf, switch-reboot@spine, switch-reboot@core"),
        ("link-flap@core", "link-flap has no form 'core': valid are link-flap alone"),
        ("nope@core", "no scenario 'nope@core': valid are smoke, link-flap"),
    ],
)
def test_a_form_that_there_is_not_is_refused_with_the_choices(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        library.find(name)


def simulate(
    scenario: Scenario, folder: Path, transport_name: str = "mrc", *, plan: str = "tiny", seed: int = 3,
    settings: Mapping[str, Any] | None = None,
) -> Verdict:  # fmt: skip
    chosen = transport(transport_name, {**scenario.settings, **(settings or {})})
    choices = Choices(replace(chosen, payload="counted"), load_plan(plan), seed=seed, world="simulated")
    directory = RunDirectory.create(folder, scenario.name, seed)
    runner = Runner(RunSpec(scenario, choices), directory, tell=lambda event: None)
    runner.run(lambda: SimulatedWorld(choices.running_plan, choices.transport, seed, directory, runner.tell))
    return judge(directory.path, runner.spec.checks(), scenario.story)


def wrong(verdict: Verdict) -> dict[str, str]:
    return {finding.check: finding.reason for finding in verdict.findings if finding.holds is not True}


@pytest.mark.slow
def test_where_retries_are_without_end_the_job_waits_for_the_light(tmp_path: Path) -> None:
    """MRC by its sources has the retries of the API's examples, and no queue pair fails."""
    found = wrong(simulate(nic_optics.SCENARIO, tmp_path, "mrc-cx8"))
    assert set(found) == {"queue pairs", "job fails", "next job"}, "the next job shares the links with the first one"
    assert "(failed nowhere)" in found["queue pairs"]
    assert found["job fails"] == "no queue pair failed, and the job went on"


@pytest.mark.slow
def test_half_a_nic_that_is_dark_fails_nothing(tmp_path: Path) -> None:
    """The paper's other optics: two transceivers, each with half of the ports."""

    def one_port(setting: Any) -> list[Any]:
        (dark,) = nic_optics.timeline(setting)
        return [replace(dark, verb="port-down", target=f"{nic_optics.HOST}.p0")]

    found = wrong(simulate(replace(nic_optics.SCENARIO, timeline=one_port), tmp_path))
    assert set(found) == {"queue pairs", "job fails", "next job"}


@pytest.mark.slow
def test_without_the_policy_the_plane_stays_in_use(tmp_path: Path) -> None:
    def lossy_only(setting: Any) -> list[Any]:
        return [fault for fault in lossy_port.timeline(setting) if fault.verb == "loss"]

    found = wrong(simulate(replace(lossy_port.SCENARIO, timeline=lossy_only), tmp_path))
    assert set(found) == {"faults", "policy leaves", "losses end"}


@pytest.mark.slow
@pytest.mark.parametrize("name", library.OF_THE_PAPER)
def test_they_are_true_on_their_own_plans(name: str, tmp_path: Path) -> None:
    scenario = library.find(name) if name != "flap-trace" else flap_trace.lasting(3)
    assert wrong(simulate(scenario, tmp_path, plan=scenario.plan)) == {}


def even(hosts_per_leaf: int, spines: int, **links: int) -> Plan:
    fabric = {"planes": 2, "leaves": 3, "spines": spines, "hosts_per_leaf": hosts_per_leaf}
    return parse_document({"name": "even", "fabric": fabric, "links": links})


@pytest.mark.parametrize(
    ("plan", "shift", "load", "link"),
    [
        (even(2, 4), 2, 0.5, "p0l0–p0s0"),  # two flows over four spines
        (even(2, 4), 1, 0.25, "p0l0–p0s0"),  # one of two flows leaves the leaf
        (even(4, 2), 4, 2.0, "p0l0–p0s0"),
        (even(4, 2, fabric_rate_bps=40_000_000), 4, 0.5, "p0l0–p0s0"),
        (load_plan("pods"), 2, 1.0, "p0l0–p0s0"),
        (load_plan("pods"), 1, 0.5, "p0l0–p0s0"),
        (SMALL["list"], 2, 2.0, "p0l0–p0l1"),
    ],
)
def test_a_load_is_the_flows_over_the_ways(plan: Plan, shift: int, load: float, link: str) -> None:
    found, where = places.highest(places.Loads(plan, places.shifted(plan, shift), 0).full_loads)
    assert found == pytest.approx(load)
    assert where == link


def test_a_slow_cable_takes_its_share_and_no_more_and_a_part_that_no_flow_crosses_is_not_missed() -> None:
    """Leaf 2 of plane 0: cables of 0.5, 1, 1 and 1, so that none of them is fuller than another."""
    plan = SMALL["uneven"]
    loads = places.Loads(plan, {(1, 2): 7}, 0).full_loads
    down = {str(one): load for (one, other), load in loads.items() if str(other) == "p0l2"}
    assert down == {f"p0s{number}": pytest.approx(2.0) for number in range(4)}
    all_loads = places.Loads(SMALL["list"], places.shifted(SMALL["list"], 1), 0)
    assert all_loads.without(frozenset({"p0l0", "p0l2"})) == (0.0, "")


@pytest.mark.parametrize(
    ("plan", "part", "load"),
    [
        (even(2, 4), {"p0l0", "p0s0"}, 1 / 3),
        (even(2, 4), {"p0s0"}, 1 / 3),
        (even(2, 2), {"p0s1", "p0l2"}, 1.0),
        (load_plan("pods"), {"p0s0", "p0c0"}, 2 / 3),  # three ways are left, two of them over spine 1
        (load_plan("pods"), {"p0c3"}, 2 / 3),
        (SMALL["rails"], {"p0s0"}, 2.0),
        (SMALL["list"], {"p0l1", "p0l0"}, float("inf")),
    ],
)
def test_without_a_part_the_others_carry_more(plan: Plan, part: set[str], load: float) -> None:
    loads = places.Loads(plan, places.shifted(plan, 1), 0)
    assert loads.without(frozenset(part))[0] == pytest.approx(load)


def test_a_fabric_without_room_is_refused_by_the_link() -> None:
    plan = even(4, 2)
    with pytest.raises(ValueError, match=r"x needs room .* would carry 2 times its rate"):
        places.check_room(plan, places.shifted(plan, 4), "x")
    for link in ("p1l0-p1s0", "p0l0-p0s0"):  # of even planes the first stands for all
        places.check_spare(plan, [link], "x")


PLAN = load_plan("lab")
SETTING = setting(job.SCENARIO, PLAN, 3)


def test_both_jobs_are_the_same_but_for_name_and_phase_and_fit_into_their_phases():
    clean, faulty = job.programs(SETTING)
    assert [clean.phase, faulty.phase] == ["reference", "faults"]
    assert clean.argv[:-1] == faulty.argv[:-1]
    needed_s = job.START_S + job.steps(SETTING) * job.step_seconds(SETTING)
    assert needed_s <= min(SETTING.phases["reference"], SETTING.phases["faults"])
    assert job.steps(SETTING) >= 30


def test_the_port_is_away_for_longer_than_roce_retries_and_comes_back_within_the_phase():
    timeline = job.timeline(SETTING)
    assert {fault.verb for fault in timeline} == {"link-down", "switch-crash", "port-down"}
    (port,) = [fault for fault in timeline if fault.verb == "port-down"]
    assert port.for_s is not None
    assert port.at_s + port.for_s < SETTING.phases["faults"]


@pytest.mark.parametrize("rate_bps", [3_750_000, 10_000_000, 100_000_000_000])
def test_a_job_makes_as_many_steps_whatever_the_rate_for_phases_last_as_many_round_trips(rate_bps: int):
    slower = PLAN.at_rate(rate_bps)
    assert abs(job.steps(replace(SETTING, plan=slower, pace=slower.pace)) - job.steps(SETTING)) <= 1


@pytest.mark.parametrize("name", library.WITH_PROGRAMS)
@pytest.mark.parametrize("world", ["emulated", "simulated"])
def test_everything_of_it_passes_the_rehearsal_in_both_worlds(name: str, world: str, monkeypatch):
    monkeypatch.setattr(ddp, "torch_python", lambda: sys.executable)
    for chosen in ("mrc", "roce"):
        rehearse(RunSpec(library.find(name), Choices(transport(chosen), PLAN, 1, world=world)))


def test_one_port_is_all_that_breaks_in_the_job_of_that_name_under_either_transport():
    for single_plane in (False, True):
        setting = replace(SETTING, single_plane=single_plane)
        (fault,) = carried_out(setting, job_port.timeline(setting))
        assert (fault.verb, fault.target[:4]) == ("port-down", "h0.p")
        assert fault.for_s is not None
        assert fault.at_s + fault.for_s < job_port.SCENARIO.phases[2].seconds


def run_of(tmp_path, faulty_steps: int, other_bits: int = -1, cause: str = "", diverges_at: int | None = None) -> Run:
    """Two ranks, 10 steps without faults and some with, of which one may have other weights on one rank. From
    `diverges_at` on the loss is not finite."""
    directory = RunDirectory.create(tmp_path, "job", 1)
    directory.write_options({})
    for rank in range(2):
        journal = Journal(directory.journal(f"h{rank}"), f"h{rank}", lambda: 5)
        for name, count, start in (("clean", 10, 1000), ("faulty", faulty_steps, 3000)):
            journal.write("workload", t_ns=start, name=name, workload="program", state="start")
            for step in range(count):
                digest = "other" if name == "faulty" and step == other_bits and rank else f"w{step}"
                fields: dict[str, Any] = {
                    "step": step, "rank": rank, "workload": name, "loss": 2.0 / (step + 1), "weights": digest,
                }  # fmt: skip
                if name == "faulty" and diverges_at is not None and step >= diverges_at:
                    del fields["loss"]
                journal.write("step", t_ns=start + step, compute_ns=1, comm_ns=1, total_ns=2, bytes=4, **fields)
            outcome = "failed" if cause and name == "faulty" else "finished"
            journal.write("workload", t_ns=start + 500, name=name, state="stop", outcome=outcome, cause=cause)
        journal.close()
    journal = Journal(directory.journal("runner"), "runner", lambda: 5)
    for name, start in (("reference", 900), ("faults", 2900)):
        journal.write("phase", t_ns=start, name=name, state="start")
        journal.write("phase", t_ns=start + 1900, name=name, state="stop")
    journal.close()
    return Run.open(directory.path)


@pytest.mark.parametrize(
    ("made", "holds"), [({"faulty_steps": 10}, True), ({"faulty_steps": 10, "other_bits": 4}, False)]
)
def test_weights_are_the_same_only_where_every_bit_is(tmp_path, made, holds):
    finding = jobs.same_weights("clean", "faulty", 10)(run_of(tmp_path, **made))
    assert finding.holds is holds
    assert ("after step 4" in finding.reason) is not holds


def test_a_job_that_died_is_told_with_cause_and_steps_and_a_standard_that_did_not_end_proves_nothing(tmp_path):
    run = run_of(tmp_path, 6, cause="retry_exceeded")
    found = jobs.finished("faulty")(run)
    assert (found.holds, "retry_exceeded" in found.reason) == (False, True)
    assert jobs.finished("clean")(run).holds is True
    found = jobs.same_weights("clean", "faulty", 10)(run)
    assert (found.holds, "after 6 of 10 steps; so far no bit differs" in found.reason) == (False, True)
    assert jobs.same_weights("clean", "faulty", 11)(run_of(tmp_path, 10)).holds is None
    assert jobs.over_before("clean", "faults")(run_of(tmp_path, 10)).holds is True
    assert jobs.over_before("faulty", "faults")(run_of(tmp_path, 10)).holds is None


@pytest.mark.parametrize(("at_ns", "holds"), [(3004, True), (2999, None), (3600, None), (None, None)])
def test_a_fault_shows_something_only_while_the_job_is_under_way(tmp_path, at_ns: int | None, holds: bool | None):
    run = run_of(tmp_path, 10)
    assert run.directory is not None
    if at_ns is not None:
        journal = Journal(RunDirectory(run.directory).journal("more"), "runner", lambda: 5)
        journal.write("fault", t_ns=at_ns, verb="port-down", target="h0.p0", state="begin")
        journal.close()
    finding = jobs.under_way("faulty")(Run.open(run.directory))
    assert finding.holds is holds
    if holds:
        assert finding.reason == "the first fault came after 4 steps of 'faulty'"


def test_the_loss_is_judged_and_drawn(tmp_path):
    from judging.reports import plots

    run = run_of(tmp_path, 10)
    assert jobs.learned("faulty")(run).holds is True
    assert jobs.learned("faulty", share=0.01)(run).holds is False
    drawn = plots.loss_curves(run)
    assert drawn is not None
    assert "Loss of clean and faulty" in drawn


@pytest.mark.parametrize("step", [1, 8])
def test_a_job_whose_loss_becomes_infinite_has_not_learned(tmp_path, step: int) -> None:
    """Its lines leave the loss out from then on, and the last one that they have may be low."""
    finding = jobs.learned("faulty")(run_of(tmp_path, 10, diverges_at=step))
    assert finding.holds is False
    assert finding.reason == f"the loss must be finite at the end (it is not after step {step})"
