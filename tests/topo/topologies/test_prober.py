"""The path prober on fabrics beyond two tiers, in virtual time: it names the lossy or dead cable, and no other."""

from pathlib import Path

import pytest

from endpoint import blame
from endpoint.blame import LinkState
from judging.run import Run
from running.directory import RunDirectory
from running.options import Choices
from running.runner import Runner
from running.spec import RunSpec
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld
from scenarios.scenario import Phase, Prober, Scenario, TimedFault, Workload
from tests.topo.topologies.shapes import SMALL
from topo.plan import Plan

SOUND_S, FAULT_S = 3.0, 9.0


def probed(plan: Plan, fault: TimedFault, folder: Path) -> dict[str, list[LinkState]]:
    """By host: the states of links that it told, while a trickle crosses the fabric."""
    ends = ("h0", f"h{plan.host_count - 1}")
    trickle = Workload("write_bw", {"size": 4096, "depth": 1, "rate_bps": 50_000, "messages": 0}, ends, phase="sound")
    scenario = Scenario(
        name="probed", title="", description="", plan=plan.name, workloads=lambda _: (trickle,), checks=lambda _: (),
        timeline=lambda _: (fault,), phases=(Phase("sound", SOUND_S), Phase("faults", FAULT_S)),
        prober=Prober(interval_s=0.01),
    )  # fmt: skip
    choices = Choices(transport("mrc"), plan, seed=3, world="simulated")
    directory = RunDirectory.create(folder, "probed", 3)
    runner = Runner(RunSpec(scenario, choices), directory, tell=lambda event: None)
    runner.run(lambda: SimulatedWorld(choices.running_plan, choices.transport, 3, directory, runner.tell))
    run = Run.open(directory.path)
    assert len(run.faults) == 1
    told: dict[str, list[LinkState]] = {}
    for line in run.kind("link"):
        link = LinkState(line["a"], line["b"], line["state"], line["loss"], line["blame"])
        told.setdefault(line["node"], []).append(link)
    return told


def bad(links: list[LinkState]) -> set[tuple[str, str]]:
    return {(link.a, link.b) for link in links if link.state in (blame.LOSSY, blame.DOWN)}


@pytest.mark.parametrize(
    ("name", "cable", "by"),
    [
        ("pods", ("p1s1", "p1c2"), {"h0", "h1", "h2", "h3"}),
        ("pods", ("p0l2", "p0s3"), {"h4", "h5"}),
        ("list", ("p1l0", "p1l3"), {"h0", "h1", "h6", "h7"}),
    ],
)
def test_a_lossy_cable_is_named_by_the_hosts_near_it_alone(name: str, cable, by, tmp_path: Path) -> None:
    told = probed(SMALL[name], TimedFault(0.0, "loss", "-".join(cable), value=30.0, seed=5), tmp_path)
    assert {host: {frozenset(ends) for ends in bad(links)} for host, links in told.items() if bad(links)} == {
        host: {frozenset(cable)} for host in by
    }


def test_a_dead_core_link_is_told_from_a_dead_core_by_hosts_of_both_pods_together(tmp_path: Path) -> None:
    dead = "p0s0–p0c1 passes nothing: the link is dead, or p0c1 does not forward"
    for verb, target, said in (
        ("blackhole", "p0s0-p0c1", dead), ("switch-stop", "p0c1", "p0c1 passes nothing on any link"),
    ):  # fmt: skip
        told = probed(SMALL["pods"], TimedFault(0.0, verb, target), tmp_path)
        one = [link for link in told["h0"] if link.state == blame.DOWN]
        assert [(link.a, link.b) for link in one] == [("p0s0", "p0c1")]
        assert one[0].blame == dead
        last = [list({(link.a, link.b): link for link in links}.values()) for links in told.values()]
        assert {link.blame for link in blame.merge(last) if link.state == blame.DOWN} == {said}
