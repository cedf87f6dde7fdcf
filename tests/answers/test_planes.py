"""The NIC's part of adaptive routing: planes in balance, and a window for each."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from answers.adaptive.planes import PlaneBalance, PlaneContexts
from endpoint.mrc import PathTraits
from tests.helpers.transport import Flow, Wire, run
from tests.helpers.transport.bench import ev_set

MTU = 4096
TRAITS = PathTraits(12_000, 12_000, 400_000_000_000, MTU)


def path(plane: int) -> Any:
    bit = 1 << plane
    port = SimpleNamespace(rate_bps=100_000_000_000, bit=bit)
    return SimpleNamespace(port=port, plane=SimpleNamespace(number=plane, bit=bit))


def fill(contexts: PlaneContexts, plane: int) -> int:
    """Send on a plane until its port closes; how many packets went."""
    sent = 0
    while contexts.ports_open & path(plane).plane.bit:
        contexts.on_packet_sent(0, path(plane), MTU)
        sent += 1
    return sent


def test_a_full_plane_closes_its_port_and_no_other() -> None:
    contexts = PlaneContexts(TRAITS, {}, {})
    first = fill(contexts, 0)
    assert first == int(1.5 * 150_000 / MTU)  # NSCC's first window: 1.5 bandwidth-delay products of one plane
    assert contexts.ports_open & 0b1111 == 0b1110
    assert fill(contexts, 2) == first
    contexts.on_packet_acked(12_000, path(0), MTU, 12_000, False)
    assert contexts.ports_open & 0b1111 == 0b1011


def test_trims_of_one_plane_leave_the_others_windows() -> None:
    contexts = PlaneContexts(TRAITS, {}, {})
    usual = fill(contexts, 1)
    for _ in range(20):
        contexts.on_packet_sent(0, path(0), MTU)
    for index in range(20):
        contexts.on_packet_trimmed(12_000 + index, path(0), MTU, False)
    assert fill(contexts, 0) < usual
    assert fill(contexts, 3) == usual


def test_the_plane_with_the_fewest_bytes_under_way_is_next() -> None:
    evs = ev_set()
    selection = PlaneBalance(evs, Random(3), {})
    for plane, size in ((0, 5), (1, 3), (2, 4), (3, 9)):
        selection.on_packet_sent(0, evs.planes[plane].active[0], size)
    assert [found.plane.number for _ in range(5) if (found := selection.next(0b1111))] == [1] * 5
    assert [found.plane.number for _ in range(5) if (found := selection.next(0b1100))] == [2] * 5
    assert selection.next(0) is None


@pytest.mark.parametrize("congestion", ["nscc", "plane_contexts"])
def test_a_transfer_past_a_dead_link_and_a_dead_port_delivers_every_byte(congestion: str) -> None:
    wire = Wire(selection="plane_balance", congestion=congestion)
    flow = Flow(wire)
    flow.post(100_000, times=40)
    wire.links[1, "p1s0"].up = False
    wire.run(10 * wire.base_rtt_ns)
    wire.set_port("h0", 3, False)
    run(wire, flow)
    flow.check()
