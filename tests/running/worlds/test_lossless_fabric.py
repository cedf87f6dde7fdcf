"""A plan with flow control loses nothing to queues, whatever incast; the same plan without loses."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judging.measures import counters
from judging.run import Run
from running.options import Choices
from running.runner import make_run
from running.spec import RunSpec
from running.transport_choice import TransportChoice, transport
from scenarios.scenario import Phase, Scenario, Workload
from topo import pfc
from topo.plan import Links, Plan

GBPS = 1_000_000_000


def drawn_plan(rate_gbps: int, delay_ns: int, leaves: int, spines: int, hosts: int) -> Plan:
    links = Links(rate_gbps * GBPS, rate_gbps * GBPS, delay_ns, delay_ns, wire_overhead_bytes=24)
    return Plan("drawn", 1, leaves, spines, hosts, links=replace(links, hardware_rate_bps=rate_gbps * GBPS))


def incast(directory: Path, plan: Plan, chosen: TransportChoice, senders: int, size: int, seed: int) -> Counter[str]:
    """What switches dropped and how they paused in an incast to the first host."""
    ranks = tuple(f"h{number}" for number in range(min(senders + 1, plan.host_count)))
    stream = {"size": size, "depth": 8, "qps": chosen.queue_pairs, "messages": 0}
    scenario = Scenario(
        name="drawn", title="", description="", plan="tiny",
        workloads=lambda setting: [Workload("incast", stream, ranks=ranks, phase="faults")],
        timeline=lambda setting: [], checks=lambda setting: [], phases=(Phase("reference", 0.1), Phase("faults", 2.0)),
    )  # fmt: skip
    seen = Run.open(make_run(RunSpec(scenario, Choices(chosen, plan, seed=seed, world="simulated")), directory))
    return counters.switch_drops(seen) + counters.switch_pauses(seen)


@pytest.mark.slow
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rate_gbps=st.sampled_from([100, 200, 400]), delay_ns=st.sampled_from([100, 500, 1500, 5000]),
    shape=st.sampled_from([(1, 1, 6), (2, 1, 4), (2, 2, 4), (3, 2, 3)]), senders=st.integers(3, 7),
    name=st.sampled_from(["roce-pfc", "roce-pfc-8qp", "roce-pfc-dcqcn", "roce-pfc-dcqcn-8qp"]),
    bdps=st.sampled_from([0.5, 2.0]), seed=st.integers(0, 1000),
)  # fmt: skip
def test_random_incasts_lose_nothing_to_queues(tmp_path, rate_gbps, delay_ns, shape, senders, name, bdps, seed) -> None:
    plan = drawn_plan(rate_gbps, delay_ns, *shape)
    size = round(bdps * plan.plane_bdp_bytes)  # eight of them wait: more than xoff
    found = incast(tmp_path, plan, transport(name), senders, size, seed)
    if "dcqcn" not in name:  # which may be fast enough
        assert found["pause_sent"] > 0, "nothing had to be paused: the test shows nothing"
    assert {name for name in found if name.startswith("drop_")} == set()
    assert found["pause_watchdog"] == 0


def test_the_same_without_flow_control_loses_in_the_program(tmp_path: Path) -> None:
    plan, chosen = drawn_plan(100, 1500, 1, 1, 5), transport("roce-pfc")
    assert incast(tmp_path, plan, replace(chosen, pfc=False), 4, 262_144, 1)["drop_program"] > 0


def test_without_headroom_a_pause_comes_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, chosen = drawn_plan(100, 1500, 1, 1, 5), transport("roce-pfc")
    assert incast(tmp_path, plan, chosen, 4, 262_144, 1)["drop_headroom"] == 0
    monkeypatch.setattr(pfc, "headroom_bytes", lambda plan, ref, late_ns: 0)
    assert incast(tmp_path, plan, chosen, 4, 262_144, 2)["drop_headroom"] > 0
