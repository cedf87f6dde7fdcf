"""A host that did not run says so to its transport: what comes late is late and not lost, and a dead path is dead."""

import pytest

from endpoint.mrc.congestion.cc_profile import NsccConfig, PathTraits
from endpoint.mrc.congestion.nscc import Nscc
from endpoint.mrc.loss.reorder import ReorderRule
from endpoint.mrc.paths.ev_state import EvState
from tests.helpers.transport.flows import Flow
from tests.helpers.transport.virtual_wire import Wire, roce_wire

STALLS = (0.25, 1.0, 3.0, 15.0)  # base round trips; the lab's 54 ms make 14 to 810 ms of them


def busy_flow(wire: Wire, messages: int = 60) -> Flow:
    flow = Flow(wire)
    flow.post(50_000, times=messages)
    wire.run(20 * wire.base_rtt_ns)
    assert not flow.finished
    return flow


def given_up(wire: Wire) -> list[str]:
    return [line for line in wire.journal if " ev " in line and "'new': 'assumed_bad'" in line]


@pytest.mark.parametrize("round_trips", STALLS)
def test_a_stall_of_the_whole_machine_costs_no_path_and_no_packet(round_trips: float) -> None:
    wire = Wire()
    flow = busy_flow(wire)
    before = flow.qp.requester.rtt_ns
    for _ in range(5):
        wire.stall(round(round_trips * wire.base_rtt_ns))
        wire.run(wire.now_ns + 3 * wire.base_rtt_ns)
    assert given_up(wire) == []
    counters = flow.qp.counters()
    assert (counters["retransmits"], counters["rto"], counters["spurious"]) == (0, 0, 0)
    assert flow.qp.requester.rtt_ns < 1.5 * before
    flow.finish(20_000)


def test_untold_the_same_stall_is_taken_for_losses() -> None:
    wire = Wire()
    flow = busy_flow(wire)
    for _ in range(5):
        wire.stall(40 * wire.base_rtt_ns, told=False)
        wire.run(wire.now_ns + 3 * wire.base_rtt_ns)
    assert flow.qp.counters()["retransmits"] > 0, "or this file shows nothing"


@pytest.mark.parametrize("round_trips", STALLS)
def test_a_sender_that_slept_while_the_network_ran_gives_nothing_up(round_trips: float) -> None:
    wire = Wire()
    flow = busy_flow(wire)
    for _ in range(5):
        wire.sleep("h0", wire.now_ns + round(round_trips * wire.base_rtt_ns), told=True)
        wire.run(wire.now_ns + round((round_trips + 3) * wire.base_rtt_ns))
    assert given_up(wire) == []
    assert flow.qp.counters()["rto"] == 0
    flow.finish(20_000)


@pytest.mark.parametrize(("stalls", "stall", "between"), [(1, 5.0, 20.0), (20, 0.5, 0.5)], ids=["one", "without end"])
def test_a_path_that_died_is_left_whether_a_stall_or_stalls_without_end_follow(stalls, stall, between) -> None:
    wire = Wire(planes=1, evs_per_plane=8)
    flow = busy_flow(wire, messages=400)
    wire.links[0, "p0s3"].up = False
    for _ in range(stalls):
        wire.stall(round(stall * wire.base_rtt_ns))
        wire.run(wire.now_ns + round(between * wire.base_rtt_ns))
    bad = {path.route.via for path in flow.qp.evs.paths.values() if path.state is EvState.ASSUMED_BAD}
    assert bad == {"p0s3"}
    flow.finish(20_000)


@pytest.mark.parametrize("round_trips", STALLS)
def test_the_baseline_is_told_too_and_goes_back_to_nothing(round_trips: float) -> None:
    wire = roce_wire()
    flow = busy_flow(wire, messages=400)
    for _ in range(5):
        wire.stall(round(round_trips * wire.base_rtt_ns))
        wire.run(wire.now_ns + 3 * wire.base_rtt_ns)
    assert (flow.qp.counters()["retransmits"], flow.qp.counters()["rto"]) == (0, 0)


def test_the_reorder_rule_does_not_count_the_time_in_which_the_host_stood_still() -> None:
    rule = ReorderRule(base_rtt_ns=100, jitter_ns=0)
    rule.log.extend([(1, 1000), (2, 1050)])
    rule.newest_ns = 1020
    rule.none_sent_after(1030)
    assert list(rule.log) == [(1, 1000), (2, 1030)], "nothing is sent in the future"
    assert rule.newest_ns == 1020
    rule.none_sent_after(1010)
    assert list(rule.log) == [(1, 1000), (2, 1010)]
    assert rule.newest_ns == 1010


def test_no_period_of_nscc_ends_during_a_stall() -> None:
    def window_after(stall_ns: int, told: bool) -> int:
        cc = Nscc(PathTraits(12_000, 12_000, 100_000_000_000, 4096), NsccConfig())
        now_ns = 0
        for _ in range(200):
            now_ns += 300
            cc.on_ack(now_ns, 4096, 13_000, False, 100_000)
        if told:
            cc.host_was_late(stall_ns, now_ns + stall_ns)
        cc.on_trim(now_ns + stall_ns, 4096, 100_000)
        return cc.window_bytes

    assert window_after(1_000_000, told=True) == window_after(0, told=True)
