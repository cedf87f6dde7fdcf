"""What counts as lost: planes of unequal delay, reordering, late processes; and real losses all the same."""

from itertools import pairwise
from random import Random

import pytest

from endpoint.mrc.flight import Blame, Flight
from endpoint.mrc.loss.reorder import ReorderRule
from endpoint.mrc.paths.ev_set import EvPath
from endpoint.mrc.retry import RetryTimer
from endpoint.nic.rtt import RttEstimator
from endpoint.transport import QPState
from tests.helpers.transport import Bench, Faults, Flow, Wire, run

MS = 1_000_000


def test_the_rule_needs_evidence_sent_a_window_later() -> None:
    rule = ReorderRule(base_rtt_ns=100, jitter_ns=20)
    guard_ns = 25 + 20  # a quarter of a base round trip, and the jitter
    assert rule.later_ns == guard_ns
    rule.rtt_sample(0, 100)
    rule.rtt_sample(1, 140)
    assert rule.later_ns == guard_ns + 40
    rule.late_arrival()
    assert rule.later_ns == guard_ns + 40 + 60
    for _ in range(100):
        rule.late_arrival()
    assert rule.later_ns == guard_ns + 40 + 4 * 120
    for _ in range(1000):
        rule.true_loss()
    assert rule.later_ns == guard_ns + 40
    rule.rtt_sample(1, 180)
    assert rule.later_ns == 80 + 80, "a queue of 80 ns may grow or drain as much"
    rule.forget_plane(1)
    assert rule.later_ns == guard_ns
    rule.late_rtt(1, 300)
    assert rule.later_ns == 200 + 200
    rule.late_rtt(1, 1_000_000)
    assert rule.later_ns == 4 * 120 + 32 * 120 - 100  # what is absurdly late teaches nothing


def test_queues_that_fill_within_a_round_trip_widen_the_window_at_once_and_drained_ones_narrow_it_again() -> None:
    """A hunt found a sound path given up: the first of an incast's packets waited for longer than planes' averages."""
    rule = ReorderRule(base_rtt_ns=100, jitter_ns=0)
    rule.rtt_sample(0, 100)
    rule.rtt_sample(1, 260)
    rule.rtt_sample(0, 240)  # what is sent now on plane 0 may find a queue that has drained: it takes 100 again
    assert rule.later_ns >= 160 + 260 - 100 - 35
    for _ in range(40):
        rule.rtt_sample(0, 110)
        rule.rtt_sample(1, 110)
    assert rule.later_ns <= 25 + 10


def a_flight_of_two_ways() -> tuple[Flight, ReorderRule, list[int], list[EvPath]]:
    """A flight, its loss rule, the EVs of which it says that a packet came late, and two paths."""
    ways = list(Flow(Wire()).qp.requester._evs.paths.values())[:2]
    rule = ReorderRule(base_rtt_ns=100, jitter_ns=0)
    rule.rtt_sample(ways[0].plane.number, 100)
    late: list[int] = []
    flight = Flight(0, 16, rule, RttEstimator(100), lambda path, now_ns: late.append(path.ev), lambda message: None)
    flight.make_room()
    return flight, rule, late, ways


@pytest.mark.parametrize(("copy_by_the_same_path", "window_ns"), [(False, 4 * 100 + 900 - 100), (True, 25)])
def test_a_duplicate_tells_the_originals_round_trip_only_if_the_copy_went_another_way(
    copy_by_the_same_path: bool, window_ns: int
) -> None:
    """A hunt found acknowledgements lost by a crashed switch: the copy's duplicate came by the path of the original."""
    flight, rule, late, (first, second) = a_flight_of_two_ways()
    flight.una = flight.nxt = 1
    flight.blamed = [Blame(first, 0, proved=False), *[None] * 15]
    flight.tries[0] = 1
    flight.paths[0] = first if copy_by_the_same_path else second
    flight.duplicate(-1, first.ev, 900)
    assert late == [first.ev]
    assert rule.later_ns - rule._learned_ns == window_ns


@pytest.mark.parametrize(
    ("copy_by_the_same_path", "told", "newest_ns", "window_ns"),
    [(False, 1, 10, 4 * 100 + 890 - 100), (True, 0, 800, 25)],
)
def test_an_acknowledgement_that_an_original_caused_is_no_answer_to_its_copy(
    copy_by_the_same_path: bool, told: int, newest_ns: int, window_ns: int
) -> None:
    """A hunt found a sound path given up for eight round trips.

    The copy could have been answered by then, and the echoed EV, which named the original's path, was not heeded.
    """
    flight, rule, late, (first, second) = a_flight_of_two_ways()
    flight.nxt = 2
    flight.blamed = [None, Blame(first, 10, proved=False), *[None] * 14]
    flight.tries[1], flight.sent_ns[1] = 1, 800
    flight.paths[1] = first if copy_by_the_same_path else second
    flight.original(1, first.ev, 900)
    flight.take_acked(1 << 1, 900)
    assert late == [first.ev] * told
    assert rule.newest_ns == newest_ns
    assert rule.later_ns - rule._learned_ns == window_ns


@pytest.mark.parametrize(("spread", "later"), [(0.2, 0), (0.9, 0), (3.0, 0), (10.0, 60)])
def test_planes_of_unequal_delay_cause_few_retransmissions_and_none_once_the_spread_is_known(spread, later) -> None:
    base = Wire().base_rtt_ns
    wire = Wire(plane_delays_ns=(1_000, 1_000, 1_000, 1_000 + int(spread * base)), mark=False)
    flow = Flow(wire)
    flow.post(50_000, times=20)
    run(wire, flow)
    wire.run(wire.now_ns + 50 * base)  # originals that were taken for lost are still under way
    warm = flow.qp.requester.retransmits
    flow.post(50_000, times=200)
    flow.finish()
    assert warm <= 40
    assert flow.qp.requester.retransmits - warm <= later


@pytest.mark.parametrize("host", ["h0", "h1"])
def test_a_slow_plane_that_goes_down_does_not_delay_the_others_any_longer(host: str) -> None:
    base = Wire().base_rtt_ns
    wire = Wire(plane_delays_ns=(1_000, 1_000, 1_000, 1_000 + 3 * base), mark=False)
    flow = Flow(wire)
    rule = flow.qp.requester._rule
    flow.post(50_000, times=400)
    wire.run(40 * base)
    assert rule.slowest_ns > 3 * base
    wire.set_port(host, 4, False)
    wire.run(wire.now_ns + 30 * base)  # what is under way over it still arrives
    assert rule.slowest_ns < 3 * base
    flow.finish()


def test_what_a_shorter_wait_makes_due_is_asked_for_in_time() -> None:
    """A slow plane goes down while everything is lost: nobody waits for that plane's round trip any longer."""
    base = Wire().base_rtt_ns
    wire = Wire(plane_delays_ns=(1_000, 1_000, 1_000, 1_000 + 9 * base), mark=False)
    flow = Flow(wire)
    requester = flow.qp.requester
    flow.post(50_000, times=400)
    run(wire, flow)
    wire.disturb(loss=1.0)
    flow.post(4096)
    wire.run(wire.now_ns + base // 10)
    before_ns, asked = requester.retry.ask_due_ns, requester.counters()["probes"]
    wire.set_port("h0", 4, False)
    due_ns = requester.retry.ask_due_ns
    assert due_ns < before_ns - 5 * base
    wire.run(due_ns + base // 10)
    assert requester.counters()["probes"] > asked


def test_a_shorter_timeout_holds_for_what_is_under_way() -> None:
    """Where late packets have widened the window, half of the timeout is the wait."""
    wire = Wire()
    base = wire.base_rtt_ns
    flow = Flow(wire)
    flow.qp.modify(None, wire.now_ns, timeout=20)
    requester = flow.qp.requester
    for _ in range(100):
        requester._rule.late_arrival()
    wire.disturb(loss=1.0)
    flow.post(4096)
    wire.run(wire.now_ns + base // 10)
    before_ns, asked = requester.retry.ask_due_ns, requester.counters()["probes"]
    flow.qp.modify(None, wire.now_ns, timeout=4)
    due_ns = requester.retry.ask_due_ns
    assert due_ns < before_ns - base
    wire.run(due_ns + base // 10)
    assert requester.counters()["probes"] > asked


def test_a_real_loss_is_found_within_one_and_a_half_round_trips_while_data_flows() -> None:
    wire = Wire(mark=False)
    flow = Flow(wire)
    flow.post(50_000, times=100)
    wire.run(10 * wire.base_rtt_ns)
    victim = next(iter(link for key, link in wire.links.items() if key[0] == 2))
    victim.faults = Faults(loss=1.0)
    before = flow.qp.requester.retransmits
    start_ns = wire.now_ns
    wire.run(start_ns + 100 * wire.base_rtt_ns, stop=lambda: victim.dropped > 0)
    lost_ns = wire.now_ns
    wire.run(lost_ns + 100 * wire.base_rtt_ns, stop=lambda: flow.qp.requester.retransmits > before)
    assert wire.now_ns - lost_ns <= 1.5 * wire.base_rtt_ns
    flow.finish()
    assert flow.qp.requester.spurious == 0


def test_a_loss_at_the_tail_is_found_by_a_probe_before_the_retransmission_timer() -> None:
    wire = Wire()
    flow = Flow(wire)
    flow.post(4096)
    run(wire, flow)
    for key, link in wire.links.items():
        link.faults = Faults(loss=1.0 if key[0] in range(4) else 0.0)
    flow.post(4096)
    start_ns = wire.now_ns
    wire.run(start_ns + wire.base_rtt_ns)
    wire.disturb()
    flow.finish()
    assert flow.qp.requester.timeouts == 0
    assert wire.now_ns - start_ns < 6 * wire.base_rtt_ns


def test_acknowledgements_that_met_a_port_that_was_down_do_not_widen_the_window() -> None:
    """A hunt found a window of four round trips: packets had arrived in time, and only the timer took them for lost."""
    wire = Wire(planes=1)
    flow = Flow(wire)
    flow.post(50_000, times=20)
    wire.run(4 * wire.base_rtt_ns)
    requester = flow.qp.requester
    window_ns, spurious = requester._rule.later_ns, requester.spurious
    wire.set_port("h0", 1, False)
    wire.run(wire.now_ns + 1_000 * MS, stop=lambda: requester.timeouts > 0)
    wire.set_port("h0", 1, True)
    flow.finish()
    assert requester.timeouts > 0
    assert requester.spurious > spurious
    assert requester._rule._learned_ns == 0
    assert requester._rule.later_ns <= 2 * window_ns


@pytest.mark.parametrize("who", ["h0", "h1", "the switches of plane 1"])
def test_what_is_scheduled_late_is_no_path_failure(who: str) -> None:
    """Lab rates: 10 Mb/s, a base round trip of tens of ms, 20 ms of jitter."""
    wire = Wire(rate_bps=10_000_000, delay_ns=MS, jitter_ns=20 * MS)
    flow = Flow(wire)
    flow.post(65_536, times=40)

    def late() -> None:
        until_ns = wire.now_ns + wire.rng.randrange(20 * MS)
        if who in wire.transports:
            wire.sleep(who, until_ns)
        for key, link in wire.links.items() if who not in wire.transports else ():
            if key[0] == 1:
                link.stalled_until_ns = until_ns

    for n in range(200):
        wire.at(n * 25 * MS, late)
    flow.finish()
    assert flow.qp.requester.retransmits == 0
    assert flow.qp.requester.timeouts == 0
    assert not [line for line in wire.journal if " ev " in line]


def test_a_long_sleep_of_the_sender_fires_no_retransmission_timer() -> None:
    wire = Wire(rate_bps=10_000_000, delay_ns=MS, jitter_ns=20 * MS)
    flow = Flow(wire)
    flow.post(65_536, times=10)
    wire.at(100 * MS, lambda: wire.sleep("h0", wire.now_ns + 2_000 * MS))
    flow.finish()
    assert flow.qp.requester.timeouts == 0


ROUND_TRIPS = {
    "10us": (400_000_000_000, 2_000), "200us": (10_000_000_000, 50_000), "4ms": (1_000_000_000, 1 * MS),
    "34ms": (10_000_000, 5 * MS), "500ms": (10_000_000, 115 * MS),
}  # fmt: skip


@pytest.mark.parametrize(("rate_bps", "delay_ns"), ROUND_TRIPS.values(), ids=ROUND_TRIPS)
def test_round_trips_from_ten_microseconds_to_half_a_second_are_measured(rate_bps: int, delay_ns: int) -> None:
    wire = Wire(rate_bps=rate_bps, delay_ns=delay_ns)
    flow = Flow(wire)
    for _ in range(40):
        flow.post(4096)
        run(wire, flow)
    flow.check()
    assert flow.qp.requester.retransmits == 0
    one_way_ns = 2 * (4238 * 8_000_000_000 // rate_bps + delay_ns)
    back_ns = 2 * (154 * 8_000_000_000 // rate_bps + delay_ns)
    assert flow.qp.requester.rtt_ns == pytest.approx(one_way_ns + back_ns, rel=0.02)


def test_timeouts_come_seven_times_evenly_and_then_ever_further_apart() -> None:
    bench = Bench(retry_exponential=4)
    bench.write(1)
    times, seen = [bench.now_ns], 0
    while bench.qp_a.state is QPState.RTS:
        due_ns = bench.a.next_timer_ns()
        assert due_ns is not None
        bench.now_ns = max(due_ns, bench.now_ns)
        bench.a.handle_timer(bench.now_ns)
        bench.out(bench.a)
        if bench.qp_a.requester.timeouts > seen:
            seen = bench.qp_a.requester.timeouts
            times.append(bench.now_ns)
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[0] >= bench.a.limits.timeout_ns
    assert [round(gap / gaps[0], 1) for gap in gaps] == [1.0] * 7 + [2.0, 4.0, 8.0, 16.0, 32.0]
    assert [done.status.value for done in bench.completions()] == ["retry_exceeded"]


def timer_of(rule: ReorderRule) -> RetryTimer:
    """Of 1.024 ms · 2^8 = 262 ms, with a base round trip of 50 ms."""
    return flight_and_timer(rule, RttEstimator(50 * MS))[1]


def flight_and_timer(rule: ReorderRule, rtt: RttEstimator) -> tuple[Flight, RetryTimer]:
    flight = Flight(0, 64, rule, rtt, lambda path, now_ns: None, lambda message: None)
    flight.make_room()
    return flight, RetryTimer(18, 7, 0, 0, rtt, flight, 0, Random(1))


def test_probes_ask_before_the_timer_takes_all_for_lost_however_wide_the_window() -> None:
    """A hunt found a window of five round trips: a last packet without an answer of its own waited for the timer."""
    rule = ReorderRule(base_rtt_ns=50 * MS, jitter_ns=0)
    for _ in range(20):
        rule.late_arrival()
    timer = timer_of(rule)
    assert rule.window_ns == 250 * MS
    timer.sent(0)
    assert timer.ask_due_ns <= timer.retry_due_ns // 2


def test_what_a_timeout_sends_again_is_asked_for_anew() -> None:
    """A hunt found a flow whose askings had become rarer than its timeouts: no probe was sent for 25 round trips."""
    timer = timer_of(ReorderRule(base_rtt_ns=50 * MS, jitter_ns=0))
    timer.sent(0)
    soon_ns = timer.ask_due_ns
    for _ in range(3):
        timer.asked(0)
    assert timer.ask_due_ns > 4 * soon_ns
    timer.expired(0)
    timer.sent(0)
    assert timer.ask_due_ns == soon_ns


def test_a_slow_plane_makes_the_longest_round_trip_its_own_and_not_its_distance_from_the_others_besides() -> None:
    """A hunt found a link at a tenth of its rate: a queue pair with a hole waited 39 round trips before it asked."""
    rule, rtt = ReorderRule(base_rtt_ns=50 * MS, jitter_ns=0), RttEstimator(50 * MS)
    _, timer = flight_and_timer(rule, rtt)
    assert timer.round_trip_ns == (50 + 4 * 25) * MS, "RFC 6298's first guess, of nothing but the profile"
    for _ in range(40):
        for plane, sample_ns in enumerate((50 * MS, 800 * MS)):
            rtt.update(sample_ns)
            rule.rtt_sample(plane, sample_ns)
    assert timer.round_trip_ns == 800 * MS
    rtt.update(900 * MS)
    rule.rtt_sample(1, 900 * MS)  # its queue grows: as much more may come
    assert 900 * MS < timer.round_trip_ns <= 1000 * MS
    rule.forget_plane(1)
    assert timer.round_trip_ns == rtt.smoothed_ns < 900 * MS


def test_a_packet_that_is_overdue_is_asked_for_after_one_quiet_round_trip() -> None:
    """A hunt found 2.1 s of silence: late answers had begun the wait for the longest round trip anew, each of them."""
    rule, rtt = ReorderRule(base_rtt_ns=50 * MS, jitter_ns=0), RttEstimator(50 * MS)
    flight, timer = flight_and_timer(rule, rtt)
    for plane, sample_ns in enumerate((50 * MS, 800 * MS)):
        rtt.update(sample_ns)
        rule.rtt_sample(plane, sample_ns)
    flight.nxt = 2
    timer.sent(0)
    assert timer.ask_due_ns == 800 * MS, "not before the slow plane's answer may come"
    timer.heard(700 * MS)
    assert timer.ask_due_ns == 700 * MS + rtt.smoothed_ns
    timer.heard(3000 * MS)
    assert timer.ask_due_ns == 3000 * MS + rtt.smoothed_ns, "answers still come, and would prove a loss by themselves"
    timer.asked(3200 * MS)
    assert timer.ask_due_ns == (3200 + 2 * 800) * MS
    timer.alive(3300 * MS)
    assert timer.ask_due_ns == 3200 * MS + rtt.smoothed_ns, "an answer is no reason to wait for longer"


def test_only_what_arrives_resets_finite_retries_and_copies_put_no_timeout_off() -> None:
    flight, timer = flight_and_timer(ReorderRule(base_rtt_ns=50 * MS, jitter_ns=0), RttEstimator(50 * MS))
    timeout_ns = timer.retry_due_ns
    flight.nxt = 2
    for now_ns in range(0, 2000 * MS, 100 * MS):
        flight.sent_ns[0] = now_ns  # a copy of the oldest packet, and a probe that is answered
        timer.alive(now_ns)
    answered_ns = timer.retry_due_ns
    assert timeout_ns < answered_ns < 2 * timeout_ns
    timer.expired(answered_ns)
    timer.alive(answered_ns + 100 * MS)
    assert (timer.retries, timer.retry_due_ns) == (1, answered_ns + timeout_ns)
    flight.una = 1  # whose first copy left in time
    flight.sent_ns[1] = answered_ns
    timer.acknowledged(answered_ns + 100 * MS)
    timer.alive(answered_ns + 200 * MS)
    assert (timer.retries, timer.retry_due_ns) == (0, answered_ns + 200 * MS + timeout_ns)
