"""A host that did not run says so to its transport: what comes late is late and not lost, and a dead path is dead."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, strategies as st

from endpoint.mrc.congestion.cc_profile import NsccConfig, PathTraits
from endpoint.mrc.congestion.nscc import Nscc
from endpoint.mrc.flight import Flight
from endpoint.mrc.loss.reorder import ReorderRule
from endpoint.mrc.paths.ev_state import EvState
from endpoint.nic.rtt import RttEstimator
from tests.helpers.transport import Bench, Flow, Wire, roce_wire

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


BASE_NS, WINDOW, SIZE = 1000, 64, 4096
PATHS = tuple(Bench().qp_a.evs.paths.values())[:4]
BEGIN_NS = 1_000_000


@dataclass
class Walk:
    """Times as the network's clock has them: a lateness moves them all, and nothing is sent in the future."""

    sent_ns: dict[int, int] = field(default_factory=dict)
    log: list[tuple[int, int]] = field(default_factory=list)
    alive_ns: dict[int, int] = field(default_factory=lambda: {path.ev: -1 for path in PATHS})
    newest_ns: int = -1
    resumed_ns: int = 0

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        self.resumed_ns = now_ns
        self.sent_ns = {psn: min(sent + late_ns, now_ns) for psn, sent in self.sent_ns.items()}
        self.log = [(psn, min(sent + late_ns, now_ns)) for psn, sent in self.log]
        self.alive_ns = {ev: min(alive + late_ns, now_ns) for ev, alive in self.alive_ns.items()}
        if self.newest_ns >= 0:
            self.newest_ns = min(self.newest_ns + late_ns, now_ns)


class Pair:
    """A flight and its model, told the same."""

    def __init__(self) -> None:
        self.rule = ReorderRule(BASE_NS, 0)
        self.rtt = RttEstimator(BASE_NS)
        self.rtt.update(BASE_NS)
        self.flight = Flight(0, WINDOW, self.rule, self.rtt, lambda *_: None, lambda *_: None)
        self.flight.make_room()
        self.walk = Walk()
        self.now_ns = BEGIN_NS
        for path in PATHS:
            path.alive_ns = -1

    def send(self, psn: int, path_index: int) -> None:
        flight, slot = self.flight, psn & self.flight.mask
        flight.tries[slot] = 0 if psn == flight.nxt else flight.tries[slot] + 1
        flight.nxt = max(flight.nxt, psn + 1)
        flight.sizes[slot], flight.paths[slot] = SIZE, PATHS[path_index]
        flight.acquit(slot)
        flight.sent_ns[slot] = self.now_ns - flight.late_ns
        self.rule.log.append((psn, self.now_ns - flight.late_ns))
        self.walk.sent_ns[psn] = self.now_ns
        self.walk.log.append((psn, self.now_ns))

    def acknowledge(self, bits: int) -> None:
        flight, walk = self.flight, self.walk
        fresh = bits & ((1 << flight.nxt - flight.una) - 1) & ~flight.acked
        for psn in range(flight.una, flight.nxt):
            bit = 1 << psn - flight.una
            if fresh & bit and not flight.lost & bit:
                path = flight.paths[psn & flight.mask]
                assert path is not None
                again = flight.tries[psn & flight.mask] and walk.sent_ns[psn] >= walk.resumed_ns
                if not (again and self.now_ns - walk.sent_ns[psn] < self.rtt.min_ns * 3 // 4):
                    walk.newest_ns = max(walk.newest_ns, walk.sent_ns[psn])
                    walk.alive_ns[path.ev] = max(walk.alive_ns[path.ev], walk.sent_ns[psn])
        flight.take_acked(fresh, self.now_ns)

    def judge(self) -> None:
        """What counts as lost is the same, and is sent again."""
        flight, walk = self.flight, self.walk
        expected: list[int] = []
        while walk.log and walk.log[0][1] <= walk.newest_ns - self.rule.later_ns:
            psn, sent_ns = walk.log.pop(0)
            index = psn - flight.una
            known = index < 0 or (flight.acked | flight.lost) >> index & 1 or index in expected
            if not known and walk.sent_ns[psn] == sent_ns:
                expected.append(index)
        assert flight.rule.overdue(flight, 0) == expected
        for index in expected:
            path, _, sent_ns = flight.lose(index, proved=True)
            psn = flight.una + index
            assert sent_ns + flight.late_ns == walk.sent_ns[psn]
            assert (path.alive_ns >= sent_ns) == (walk.alive_ns[path.ev] >= walk.sent_ns[psn])
            flight.lost &= ~(1 << index)
            flight.inflight_bytes += SIZE
            self.send(psn, 0)

    def compare(self) -> None:
        flight, walk, late_ns = self.flight, self.walk, self.flight.late_ns
        for psn in range(flight.una, flight.nxt):
            assert flight.sent_ns[psn & flight.mask] + late_ns == walk.sent_ns[psn]
        assert [(psn, sent_ns + late_ns) for psn, sent_ns in self.rule.log] == walk.log
        if walk.newest_ns >= 0:
            assert self.rule.newest_ns + late_ns == walk.newest_ns
        for path in PATHS:
            assert path.alive_ns < 0 or path.alive_ns + late_ns == walk.alive_ns[path.ev]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(0, 3000)),
        st.tuples(st.just("send"), st.integers(0, len(PATHS) - 1)),
        st.tuples(st.just("acknowledge"), st.integers(1, (1 << 12) - 1)),
        st.tuples(st.just("late"), st.integers(0, 3000)),
        st.tuples(st.just("overlapping"), st.integers(0, 3000)),
    ),
    max_size=60,
)


@given(STEPS)
def test_times_are_those_of_a_walk_over_all_packets(steps: list[tuple[str, int]]) -> None:
    """`late` is time that passes without the host; `overlapping` is said of time in which the host has sent."""
    pair = Pair()
    for what, number in steps:
        if what == "wait":
            pair.now_ns += number
        elif what == "send":
            if pair.flight.nxt - pair.flight.una < WINDOW:
                pair.flight.inflight_bytes += SIZE
                pair.send(pair.flight.nxt, number)
        elif what == "acknowledge":
            pair.acknowledge(number)
            pair.judge()
        else:
            pair.now_ns += number if what == "late" else 0
            pair.flight.host_was_late(number, pair.now_ns)
            pair.walk.host_was_late(number, pair.now_ns)
        pair.compare()


def test_a_lateness_costs_the_same_however_much_is_under_way() -> None:
    pair = Pair()
    for psn in range(WINDOW):
        pair.send(psn, 0)
    before = list(pair.flight.sent_ns)
    pair.now_ns += 500
    pair.flight.host_was_late(500, pair.now_ns)
    assert (pair.flight.sent_ns, pair.flight.late_ns) == (before, 500), "nothing was moved"
    assert list(pair.rule.log) == [(psn, BEGIN_NS) for psn in range(WINDOW)]
