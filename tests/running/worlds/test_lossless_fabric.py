"""Flow control: a plan loses nothing to queues, whatever incast, and the same plan without loses; and on real links."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from judging.measures import counters
from judging.run import Run
from running.lateness import Lateness
from running.options import Choices
from running.runner import make_run
from running.spec import RunSpec
from running.transport_choice import TransportChoice, transport
from scenarios.scenario import Phase, Scenario, Workload
from tests.helpers.living_lab import mrclab
from topo import pfc
from topo.emulation import state
from topo.plan import Links, Plan

GBPS = 1_000_000_000


def drawn_plan(rate_gbps: int, delay_ns: int, leaves: int, spines: int, hosts: int) -> Plan:
    links = Links(rate_gbps * GBPS, rate_gbps * GBPS, delay_ns, delay_ns, wire_overhead_bytes=24)
    return Plan("drawn", 1, leaves, spines, hosts, links=replace(links, hardware_rate_bps=rate_gbps * GBPS))


def dropped(directory: Path, plan: Plan, chosen: TransportChoice, senders: int, size: int, seed: int) -> Counter[str]:
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
    found = dropped(tmp_path, plan, transport(name), senders, size, seed)
    if "dcqcn" not in name:  # which may be fast enough
        assert found["pause_sent"] > 0, "nothing had to be paused: the test shows nothing"
    assert {name for name in found if name.startswith("drop_")} == set()
    assert found["pause_watchdog"] == 0


def test_the_same_without_flow_control_loses_in_the_program(tmp_path: Path) -> None:
    plan, chosen = drawn_plan(100, 1500, 1, 1, 5), transport("roce-pfc")
    assert dropped(tmp_path, plan, replace(chosen, pfc=False), 4, 262_144, 1)["drop_program"] > 0


def test_without_headroom_a_pause_comes_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, chosen = drawn_plan(100, 1500, 1, 1, 5), transport("roce-pfc")
    assert dropped(tmp_path, plan, chosen, 4, 262_144, 1)["drop_headroom"] == 0
    monkeypatch.setattr(pfc, "headroom_bytes", lambda plan, ref, late_ns: 0)
    assert dropped(tmp_path, plan, chosen, 4, 262_144, 2)["drop_headroom"] > 0


SENDERS = ("h1", "h2", "h3")
MESSAGES, SIZE = 40, 65_536


@pytest.fixture(scope="module")
def incast() -> Iterator[dict[str, Any]]:
    """What an incast of three hosts, always at line rate, verified in a lab whose ports pause instead of dropping; and
    for how long this machine stood still meanwhile: a host or a switch that does not run does not pause."""
    if state.read_record(state.ROOT) is not None:
        pytest.skip("a lab is running on this machine")
    mrclab("up", "tiny", "--single-plane", "--pfc")
    try:
        words = ["incast", "h0", *SENDERS, f"size={SIZE}", f"messages={MESSAGES}", "--transport", "roce-pfc"]
        with Lateness() as late:
            found = json.loads(mrclab("traffic", *words, "--format", "json"))
        yield {**found, "stalls_ns": [late_ns for _, late_ns in late.wakes if late_ns >= 2_000_000]}
    finally:
        mrclab("down")


def interfaces(node: str) -> list[dict[str, Any]]:
    """As `./lab inspect` has them."""
    (found,) = json.loads(mrclab("inspect", node, "--format", "json"))["nodes"]
    return list(found["interfaces"])


@pytest.mark.root
def test_an_incast_arrives_whole_and_no_switch_drops_a_packet(incast: dict[str, Any]) -> None:
    assert incast["bytes_verified"] == len(SENDERS) * MESSAGES * SIZE
    assert incast["bytes_wrong"] == 0
    drops = [row["DROPS"] for row in json.loads(mrclab("counters", "--format", "json"))["ports"] if row["DROPS"]]
    if drops and incast["stalls_ns"]:
        pytest.skip(f"the machine stood still for up to {max(incast['stalls_ns']) / 1e6:.0f} ms: {drops}")
    assert drops == []


@pytest.mark.root
def test_the_full_leaf_pauses_its_senders_and_they_obey(incast: dict[str, Any]) -> None:
    sent = {row["peer"].partition("-")[0]: row["pauses"]["TX_PAUSE"] for row in interfaces("p0l0")}
    assert sent["h1"] > 0  # under the same leaf
    assert sum(sent.values()) > sent["h1"]  # and the spines, by which the others come
    assert sent["h0"] == 0  # the receiver sends next to nothing
    (nic,) = interfaces("h1")
    assert nic["pauses"]["RX_PAUSE"] == sent["h1"]
    assert nic["pauses"]["PAUSED_US"] > 0


@pytest.mark.root
def test_inspect_shows_pauses_in_columns(incast: dict[str, Any]) -> None:
    head, *rows = mrclab("inspect", "p0l0").splitlines()[1:]
    assert head.split()[-3:] == ["RX_PAUSE", "TX_PAUSE", "PAUSED_US"]
    assert len(rows) == len(interfaces("p0l0"))
