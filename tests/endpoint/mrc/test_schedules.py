"""Any mix of faults, then a heal: every message completes exactly once, memory is exact, nothing stays pending.

Truth: the bytes posted, and hypothesis' schedule of faults. Safety is checked inside `Flow` (no second completion,
guard region untouched, immediates in order); liveness after the heal has a budget in round trips.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from endpoint.transport import QPState
from tests.helpers.transport.flows import Flow
from tests.helpers.transport.virtual_wire import Faults, Wire

PHASE_ROUND_TRIPS = 30
HEAL_ROUND_TRIPS = 150

MESSAGES = st.lists(
    st.tuples(st.sampled_from([1, 3, 1000, 4096, 4097, 9000, 40_000, 150_000]), st.booleans()), min_size=1, max_size=30
)
FAULT = st.fixed_dictionaries(
    {
        "at": st.integers(0, PHASE_ROUND_TRIPS * 100),
        "kind": st.sampled_from(
            ["loss", "duplicate", "reorder", "corrupt", "dead", "slow", "trim", "mark", "port", "sleep", "lasthop"]
        ),
        "link": st.integers(0, 1_000),
        "amount": st.floats(0.01, 0.6),
    }
)
SCHEDULE = st.fixed_dictionaries(
    {
        "messages": MESSAGES,
        "faults": st.lists(FAULT, max_size=8),
        "planes": st.sampled_from([1, 2, 4]),
        "evs": st.sampled_from([1, 2, 8]),
        "seed": st.integers(0, 2**16),
        "selection": st.sampled_from(["mrc", "mrc", "mrc", "oblivious", "single_path"]),
        "psn": st.sampled_from([0, 5, 2**24 - 3]),
        "back": st.booleans(),
    }
)


# Packets whose arrival was reported late, by a probe, were taken for packets that had travelled as long: the probe and
# retransmission timers grew to hundreds of round trips.
REPORTED_LATE = {
    "messages": [
        (150000, True), (4096, False), (4097, False), (40000, False), (3, False), (3, False), (9000, False),
        (150000, False), (4097, False), (150000, False), (150000, True), (1, False), (3, True), (3, False),
        (1, False), (9000, True), (40000, False), (9000, False), (4096, True), (150000, False), (1000, False),
        (150000, True), (4096, False), (1, True), (9000, False), (4096, True), (1000, True), (1, True),
    ],
    "faults": [
        {"at": 1513, "kind": "trim", "link": 773, "amount": 0.0104840685419571},
        {"at": 0, "kind": "loss", "link": 9, "amount": 0.5559792913092246},
        {"at": 0, "kind": "duplicate", "link": 751, "amount": 0.30407282694537247},
        {"at": 2121, "kind": "lasthop", "link": 475, "amount": 0.49116593546171894},
    ],
    "planes": 2,
    "evs": 1,
    "seed": 26695,
    "selection": "oblivious",
    "psn": 5,
    "back": True,
}  # fmt: skip


def _break(wire: Wire, fault: dict[str, Any]) -> None:
    keys = list(wire.links)
    link = wire.links[keys[fault["link"] % len(keys)]]
    amount = fault["amount"]
    kind = fault["kind"]
    if kind in ("loss", "duplicate", "corrupt"):
        setattr(link.faults, kind, amount)
    elif kind == "reorder":
        link.faults.reorder, link.faults.reorder_ns = amount, int(amount * 4 * wire.base_rtt_ns)
    elif kind == "dead":
        link.up = False
    elif kind == "slow":
        link.stalled_until_ns = wire.now_ns + int(amount * 10 * wire.base_rtt_ns)
    elif kind == "trim":
        link.trim_bytes = 5_000
    elif kind == "mark":
        link.mark_bytes = 1
    elif kind == "lasthop":
        link.rate_bps = 10_000_000_000
    elif kind == "sleep":
        wire.sleep(f"h{fault['link'] % 2}", wire.now_ns + int(amount * 10 * wire.base_rtt_ns))
    else:
        ports = sorted(wire.host_up)
        host, port = ports[fault["link"] % len(ports)]
        wire.set_port(host, port, not wire.host_up[host, port])


def _post(wire: Wire, flow: Flow, length: int, immediate: int | None) -> None:
    flow.post(length, immediate)
    wire.kick(flow.src)


def _heal(wire: Wire, rates: dict[Any, int]) -> None:
    for key, link in wire.links.items():
        link.up, link.faults, link.rate_bps = True, Faults(), rates[key]
        link.trim_bytes = link.mark_bytes = 0
    for (host, port), up in wire.host_up.items():
        if not up:
            wire.set_port(host, port, True)


def run_schedule(schedule: dict[str, Any]) -> Wire:
    wire = Wire(
        seed=schedule["seed"], planes=schedule["planes"], evs_per_plane=schedule["evs"], rate_bps=100_000_000_000
    )
    flows = [Flow(wire, selection=schedule["selection"], psn=schedule["psn"])]
    if schedule["back"]:
        flows.append(Flow(wire, "h1", "h0", seed=8, selection=schedule["selection"]))
    rates = {key: link.rate_bps for key, link in wire.links.items()}
    for fault in schedule["faults"]:
        wire.at(fault["at"] * wire.base_rtt_ns // 100, lambda fault=fault: _break(wire, fault))
    phase_ns = PHASE_ROUND_TRIPS * wire.base_rtt_ns
    for number, (length, immediate) in enumerate(schedule["messages"]):
        for flow in flows:
            wire.at(
                phase_ns * number // len(schedule["messages"]),
                lambda flow=flow, length=length, imm=number if immediate else None: _post(wire, flow, length, imm),
            )
    wire.run(phase_ns)
    _heal(wire, rates)
    assert all(len(flow.posted) == len(schedule["messages"]) for flow in flows)
    wire.run(phase_ns + HEAL_ROUND_TRIPS * wire.base_rtt_ns, stop=lambda: all(flow.finished for flow in flows))
    for flow in flows:
        assert flow.qp.state is QPState.RTS, flow.qp.cause
        assert flow.finished, f"pending {HEAL_ROUND_TRIPS} round trips after the heal: {flow.qp.counters()}"
        flow.check()
        assert flow.qp.requester.flight.inflight_bytes == 0
    return wire


@example(REPORTED_LATE)
@settings(max_examples=250, suppress_health_check=list(HealthCheck))
@given(SCHEDULE)
@pytest.mark.smoke
def test_every_message_completes_once_whatever_happens_on_the_way(schedule: dict[str, Any]) -> None:
    run_schedule(schedule)


@pytest.mark.slow
@settings(max_examples=5000, suppress_health_check=list(HealthCheck))
@given(SCHEDULE)
def test_every_message_completes_once_in_thousands_of_schedules(schedule: dict[str, Any]) -> None:
    run_schedule(schedule)


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(SCHEDULE)
def test_the_same_seed_gives_the_same_journal(schedule: dict[str, Any]) -> None:
    first, second = run_schedule(schedule), run_schedule(schedule)
    assert first.journal == second.journal
    assert first.now_ns == second.now_ns
    assert [t.counters() for t in first.transports.values()] == [t.counters() for t in second.transports.values()]
