"""RoCE uses all of its queue pairs in every workload, and the cores that the hash of each packet names."""

from collections import Counter
from random import Random
from statistics import NormalDist

import pytest

from running.worlds.virtual_time import SimulatedFabric
from tests.helpers.p4.frames import SOURCE, frame
from tests.helpers.roce_spread import FORMS, KINDS, PLANS, core_of, spread
from topo.address import host_address
from topo.planfile import load_plan

LINKS = {"permutation": 8, "all_reduce": 8, "all_to_all": 8 * 7}
"""Of eight hosts, those that write to another one."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PLANS)
def test_all_queue_pairs_carry_traffic_and_no_core_is_left_out(name: str, kind: str) -> None:
    found = spread(name, kind, "roce-16qp")
    assert len(found.pairs) == 16 * LINKS[kind]
    assert max(found.pairs.values()) <= 2 * min(found.pairs.values())
    assert found.cores == found.hashed
    # With one hash on all tiers two of the four cores of `pods` received nothing; a quarter is the mean.
    assert min(found.cores.values()) > 0.1 * found.cores.total()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_roce_takes_the_cores_that_the_hash_names(form: str) -> None:
    found = spread("pods", "all_reduce", form)
    assert found.cores == found.hashed
    assert found.cores.total() > 0


FLOWS, FRAMES = 2_000, 2
SPACING_NS = 1_000_000


def counted() -> tuple[Counter[str], Counter[str]]:
    """Frames of random flows between the pods by core: expected ones, and those that cores have received."""
    plan, rng = load_plan("pods").single_plane(), Random(3)
    fabric, expected, frames = SimulatedFabric(plan, seed=1), Counter[str](), []
    pods = [[host for host in plan.hosts() if (host.index < 4) == first] for first in (True, False)]
    for flow in range(FLOWS):
        ends = [rng.choice(pod) for pod in pods]
        rng.shuffle(ends)
        source, destination = ends
        sport = 0xC000 + rng.randrange(0x4000)
        expected[core_of(plan, source.name, destination.name, sport)] += FRAMES
        here, there = (host_address(plan, host).packed for host in ends)
        udp = sport.to_bytes(2, "big") + plan.packets.udp_port.to_bytes(2, "big") + bytes((0, 8, 0, 0))
        sent = frame(there, next_header=17, payload=udp).replace(SOURCE, here)
        number = fabric.host_numbers[source]
        frames += [((FRAMES * flow + i + 1) * SPACING_NS, number, 1, sent) for i in range(FRAMES)]
    fabric.fabric.send(frames)
    end_ns = (FRAMES * FLOWS + 1_000) * SPACING_NS
    while fabric.fabric.reached_ns < end_ns:
        fabric.fabric.gather(fabric.fabric.run(None, end_ns))
    found = Counter[str]()
    for node, switch in fabric.switches.items():
        if node.role == "core":
            cells = switch.program_counters().values()
            found[node.name] = sum(classes.received for port in cells for classes in port.values())
    return expected, found


def test_cores_receive_what_the_hash_says_and_each_its_share_of_random_flows() -> None:
    expected, found = counted()
    assert sum(found.values()) == FLOWS * FRAMES
    assert found == expected
    # Within a binomial interval of 99.99 %. With the same hash on both tiers, two of the four cores received none.
    reach = NormalDist().inv_cdf(1 - 0.00005) * (FLOWS * 0.25 * 0.75) ** 0.5
    assert all(abs(found[f"p0c{core}"] / FRAMES - FLOWS / 4) < reach for core in range(4))
