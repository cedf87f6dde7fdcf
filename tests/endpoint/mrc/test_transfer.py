"""Writes arrive whole over a virtual wire, with every kind of fault alone."""

from collections.abc import Callable

import pytest

from tests.helpers.transport.flows import Flow
from tests.helpers.transport.virtual_wire import Faults, Wire, roce_wire

SECOND = 1_000_000_000


def run(wire: Wire, *flows: Flow, limit_ns: int = SECOND) -> None:
    wire.run(wire.now_ns + limit_ns, stop=lambda: all(flow.finished for flow in flows))


def test_a_write_of_one_byte_arrives() -> None:
    wire = Wire()
    flow = Flow(wire)
    flow.post(1)
    run(wire, flow)
    flow.check()
    assert wire.now_ns < 2 * wire.base_rtt_ns


TRANSPORTS = pytest.mark.parametrize("make", [Wire, roce_wire], ids=["mrc", "roce"])


@TRANSPORTS
@pytest.mark.parametrize("length", [1, 2, 3, 4095, 4096, 4097, 8192, 100_001])
def test_writes_of_every_kind_of_length_arrive_with_and_without_immediate(
    length: int, make: Callable[..., Wire]
) -> None:
    wire = make()
    flow = Flow(wire)
    flow.post(length)
    flow.post(length, immediate=0xABCD)
    run(wire, flow)
    flow.check()


FAULTS = {
    "loss": Faults(loss=0.05),
    "duplicates": Faults(duplicate=0.2),
    "reordering": Faults(reorder=0.3, reorder_ns=30_000),
    "corruption": Faults(corrupt=0.05),
    "everything": Faults(loss=0.02, duplicate=0.05, reorder=0.1, reorder_ns=50_000, corrupt=0.02),
}


@TRANSPORTS
@pytest.mark.parametrize("name", FAULTS)
def test_a_long_transfer_survives(name: str, make: Callable[..., Wire]) -> None:
    wire = make(seed=3)
    for link in wire.links.values():
        link.faults = FAULTS[name]
    flow = Flow(wire)
    for number in range(40):
        flow.post(25_000, immediate=number if number % 3 == 0 else None)
    run(wire, flow)
    flow.check()
