"""NSCC: window traces against values worked out by hand from the published rules, and the same trace at any rate.

At the reference network, 100 Gb/s and 12 µs make a bandwidth-delay product of 150,000 bytes; packets of 4096 bytes;
switches trim. By the published rules then (a = 1, b = 0.75):

    largest and first window   1.5 * 150,000                = 225,000 bytes
    target delay               0.75 * 12,000                =   9,000 ns
    proportional increase      4 * 4096 * (9,000 - delay) / 12,000 a window, by delay in ns
    fair increase              5 * 4096                     =  20,480 a window
    eta                        0.15 * 4096                  =     614.4 bytes, once in 12,000 ns
    increases are applied      after more than 8 * 4096     =  32,768 bytes, or 12,000 ns
    fast increase              0.25 bytes a byte, below 1,000 ns of delay, after a window of it
    decrease                   1 - 0.8 * (average - 9,000) / average, at least 0.5, once in 12,000 ns
    average delay              gains 0.0125 of the distance to each sample
    quick adapt                above 36,000 ns or on a trim, if less than 225,000 / 8 = 28,125 bytes
                               arrived in the last 12,000 + 9,000 ns

No number below is taken from the code under test.
"""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from endpoint.mrc.congestion.cc_profile import NsccConfig, PathTraits, make_config
from endpoint.mrc.congestion.nscc import Nscc
from tests.helpers.transport import Faults, Flow, Wire

BASE = 12_000
FULL = 225_000.0
AFTER_40_TRIMS = FULL - 40 * 4096  # 61,160


def make(
    *, trimming: bool = True, peer_rtt_ns: int = BASE, jitter_ns: int = 0, losses_shrink: bool = False, **config: float
) -> Nscc:
    path = PathTraits(peer_rtt_ns, BASE, 100_000_000_000, 4096, jitter_ns, trimming)
    return Nscc(replace(path, losses_shrink=True) if losses_shrink else path, make_config(config))


def ack(cc: Nscc, now_ns: int, delay_ns: int | None, *, marked: bool = False, size: int = 4096) -> None:
    cc.on_ack(now_ns, size, None if delay_ns is None else BASE + delay_ns, marked, 100_000)


def trims(cc: Nscc, now_ns: int, count: int) -> None:
    for _ in range(count):
        cc.on_trim(now_ns, 4096, 100_000)


def window(cc: Nscc, expected: float) -> None:
    assert cc.window_bytes == pytest.approx(expected, abs=1.0)


def test_the_four_quadrants_one_after_the_other() -> None:
    cc = make(disable_qa=True)
    window(cc, FULL)
    trims(cc, 0, 40)
    window(cc, 61_160)
    # Proportional: 4 * 4096 * (9,000 - 3,000) / 12,000 = 8,192 a window; 20,000 ns since the last time, so eta too.
    ack(cc, 20_000, 3_000)
    expected = 61_160 + 8_192 * 4096 / 61_160 + 614.4
    assert expected == pytest.approx(62_323.0, abs=0.1)
    window(cc, expected)
    # Fair: eight packets are not more than 32,768 bytes; the ninth applies all nine, and only 1,000 ns have passed.
    for _ in range(8):
        ack(cc, 21_000, 12_000)
    window(cc, expected)
    ack(cc, 21_000, 12_000)
    expected += 9 * 20_480 * 4096 / expected
    assert expected == pytest.approx(74_436.9, abs=0.1)
    window(cc, expected)
    # Marked below the target: hold. Marked above it with an average below it: no decrease.
    for _ in range(5):
        ack(cc, 22_000, 3_000, marked=True)
    ack(cc, 23_000, 12_000, marked=True)
    window(cc, expected)


def test_a_decrease_follows_the_average_and_comes_once_a_round_trip() -> None:
    cc = make(disable_qa=True)
    # Marked samples of 40,000 ns: after n of them the average is 40,000 * (1 - 0.9875^n); n = 20 gives 8,896 ns.
    for _ in range(20):
        ack(cc, 13_000, 40_000, marked=True)
    window(cc, FULL)
    ack(cc, 13_000, 40_000, marked=True)  # n = 21: 9,284.9 ns, 284.9 above the target
    average = 40_000 * (1 - 0.9875**21)
    assert average == pytest.approx(9_285, abs=1)
    expected = FULL * (1 - 0.8 * (average - 9_000) / average)
    assert expected == pytest.approx(219_478, abs=30)
    window(cc, expected)
    ack(cc, 13_000, 40_000, marked=True)
    ack(cc, 25_000, 40_000, marked=True)  # 12,000 ns later is not more than a round trip
    window(cc, expected)
    ack(cc, 25_001, 40_000, marked=True)  # n = 24; and eta, 12,001 ns after the last time
    average = 40_000 * (1 - 0.9875**24)
    window(cc, expected * (1 - 0.8 * (average - 9_000) / average) + 614.4)


def test_a_decrease_leaves_half() -> None:
    cc = make(disable_qa=True)
    for _ in range(1_000):  # the average goes to 400,000 ns: 0.8 * 391,000 / 400,000 would take 0.782
        ack(cc, 1, 400_000, marked=True)
    average = 400_000 * (1 - 0.9875**2)  # the second sample passes the target, and decreases once
    expected = FULL * (1 - 0.8 * (average - 9_000) / average)
    window(cc, expected)
    ack(cc, 12_002, 400_000, marked=True)
    window(cc, expected / 2 + 614.4)


def test_eta_comes_once_a_round_trip_and_not_with_every_adjustment() -> None:
    """Held for 25 round trips, a packet every 1,000 ns: the first that is more than 12,000 ns after the last time."""
    cc = make(disable_qa=True)
    trims(cc, 0, 40)
    for now_ns in range(1_000, 300_001, 1_000):
        ack(cc, now_ns, 3_000, marked=True)
    window(cc, AFTER_40_TRIMS + 23 * 614.4)  # at 13,000, 26,000, … 299,000


def test_fast_increase_begins_after_a_window_without_delay_and_ends_with_delay_or_decrease_not_with_a_mark() -> None:
    cc = make(disable_qa=True)
    trims(cc, 0, 40)
    ack(cc, 1_000, 999, size=61_160)  # as much as the window is not more than the window
    expected = 61_160 + 4 * 4096 * (9_000 - 999) / 12_000 * 61_160 / 61_160
    window(cc, expected)
    ack(cc, 1_001, 0, size=20_000)
    expected += 0.25 * 20_000
    window(cc, expected)
    ack(cc, 1_002, 0, marked=True)  # hold
    window(cc, expected)
    ack(cc, 1_003, 999)
    expected += 0.25 * 4096
    window(cc, expected)
    ack(cc, 1_004, 1_000)  # a delay: proportional again, and not yet applied
    window(cc, expected)
    ack(cc, 1_005, 0)  # 36,384 bytes by now: both are
    window(cc, expected + 4 * 4096 * (8_000 + 9_000) / 12_000 * 4096 / expected)


def test_a_retransmissions_acknowledgement_counts_with_the_average_delay() -> None:
    cc = make(disable_qa=True)
    trims(cc, 0, 40)  # each is a sample of a base round trip
    average = 12_000 * (1 - 0.9875**40)
    assert average == pytest.approx(4_745, abs=5)
    ack(cc, 1_000, None, size=40_000)
    window(cc, 61_160 + 4 * 4096 * (9_000 - average) / 12_000 * 40_000 / 61_160)


def test_a_mark_on_a_retransmission_counts() -> None:
    cc = make(disable_qa=True)
    for _ in range(30):
        ack(cc, 1, 40_000, marked=True)
    average = 40_000 * (1 - 0.9875**21)  # the first above the target
    expected = FULL * (1 - 0.8 * (average - 9_000) / average)
    window(cc, expected)
    average = 40_000 * (1 - 0.9875**30)  # and stays: the copies cannot be told apart, so there is no sample
    ack(cc, 12_002, None, marked=True)
    window(cc, expected * (1 - 0.8 * (average - 9_000) / average) + 614.4)


def test_unmarked_delays_above_the_target_count_as_a_quarter_round_trip_in_the_average() -> None:
    """40,000 ns without marks take the average to 3,000 ns, not above the target: a mark then decreases nothing."""
    cc = make(disable_qa=True)
    trims(cc, 0, 40)
    for _ in range(300):
        ack(cc, 13_000, 40_000, size=0)
    before = cc.window_bytes
    ack(cc, 13_000, 40_000, marked=True, size=0)
    assert cc.window_bytes == before


def test_quick_adapt_and_what_is_ignored_after_it() -> None:
    cc = make()
    ack(cc, 1, 6_000)  # begins a period that ends at 1 + 21,000
    ack(cc, 10, 6_000, size=8_192)
    window(cc, FULL)
    cc.on_trim(21_001, 4096, 100_000)  # not yet over
    window(cc, FULL - 4096)
    cc.on_trim(21_002, 4096, 100_000)  # 8,192 bytes arrived in the period: that is the window now
    window(cc, 8_192)
    # 100,000 bytes and the trimmed packet are in flight: marks and trims are ignored for that long, the rest is not.
    ack(cc, 21_003, 40_000, marked=True, size=60_000)
    window(cc, 8_192)
    ack(cc, 21_004, 9_000)  # fair, and the last adjustment was more than a round trip ago
    expected = 8_192 + 20_480 * 4096 / 8_192 + 614.4
    window(cc, expected)
    cc.on_trim(21_005, 4096, 100_000)  # 68,192 of 104,096
    window(cc, expected)
    ack(cc, 21_006, 3_000, marked=True, size=35_904)  # 104,096: not ignored any more, but a hold
    cc.on_trim(21_007, 4096, 100_000)
    window(cc, expected - 4096)


def test_quick_adapt_spares_a_window_of_which_an_eighth_arrived() -> None:
    for arrived, adapts in ((28_125, False), (28_124, True)):
        cc = make()
        ack(cc, 1, 6_000)
        ack(cc, 2, 6_000, size=arrived)
        cc.on_trim(21_002, 4096, 100_000)
        assert (cc.window_bytes < 100_000) is adapts


def test_a_trim_is_remembered_for_quick_adapt_until_it_happens() -> None:
    """The period with the trim was busy; the next one is not."""
    cc = make()
    ack(cc, 1, 6_000)
    ack(cc, 2, 6_000, size=100_000)
    cc.on_trim(3, 4096, 100_000)
    ack(cc, 21_002, 6_000)  # the first period: too much arrived
    assert cc.window_bytes > 200_000
    ack(cc, 42_003, 6_000, size=10_000)  # the second: 10,000 bytes
    window(cc, 10_000)


def test_without_trims_the_target_is_a_whole_round_trip_and_the_gain_keeps_its_slope() -> None:
    """b = 1: 4 * 4096 * (12,000 - delay) / 12,000."""
    cc = make(trimming=False, disable_qa=True, max_cwnd=61_160)
    cc.on_timeout(0, 20_000)
    ack(cc, 1_000, 3_000, size=40_000)
    window(cc, 41_160 + 4 * 4096 * 9_000 / 12_000 * 40_000 / 41_160)


def test_a_timeout_takes_what_was_lost_off_the_window_down_to_a_packet() -> None:
    cc = make()
    cc.on_timeout(1, 50_000)
    window(cc, 175_000)
    cc.on_timeout(2, 200_000)
    window(cc, 4096)


def test_the_window_follows_the_round_trip_of_the_peer_and_the_gains_that_of_the_fabric() -> None:
    """A neighbour at 6,000 ns: 1.5 * 75,000 bytes; delays count from 6,000 ns, the target is the fabric's 9,000 ns."""
    cc = make(peer_rtt_ns=6_000, disable_qa=True)
    window(cc, 112_500)
    cc.on_ack(1, 4096, 6_000 + 8_999, False, 100_000)
    cc.on_ack(2, 4096, 6_000 + 9_000, False, 100_000)
    cc.on_timeout(3, 51_340)  # 61,160 are left
    ack(cc, 20_000, 12_000 - 6_000)  # 15,000 ns: fair as above, and all three are applied, with eta
    expected = 61_160 + (4 * 4096 * 1 / 12_000 + 2 * 20_480) * 4096 / 61_160 + 614.4
    window(cc, expected)


def test_lateness_of_the_world_keeps_bytes_in_flight_to_a_neighbour_but_never_more_than_to_others() -> None:
    for jitter_ns, rtt_ns in ((0, 6_000), (2_000, 8_000), (50_000, 12_000)):
        cc = Nscc(PathTraits(6_000, BASE, 100_000_000_000, 4096, jitter_ns=jitter_ns), make_config({}))
        window(cc, 1.5 * 12.5 * rtt_ns)


def test_a_fixed_round_trip_or_window_of_the_profile_counts_for_every_peer() -> None:
    window(make(peer_rtt_ns=6_000, max_cwnd=100_000), 100_000)
    window(make(peer_rtt_ns=6_000, base_rtt=8_000), 150_000)


@pytest.mark.parametrize(
    ("name", "value"),
    [("target_delay", 5_000), ("fi", 1_000.0), ("eta", 100.0), ("gamma", 0.1), ("max_md_jump", 0.9), ("fi_scale", 2.0)],
)
def test_each_parameter_of_the_profile_is_used(name: str, value: float) -> None:
    def story(cc: Nscc) -> list[int]:
        out = []
        trims(cc, 0, 40)
        for step, delay in enumerate([0] * 40 + [6_000] * 40 + [12_000] * 40 + [40_000] * 80):
            ack(cc, 1_000 * step, delay, marked=delay == 40_000)
            out.append(cc.window_bytes)
        return out

    changed: dict[str, Any] = {name: value}
    assert story(make(disable_qa=True)) != story(make(disable_qa=True, **changed))


@pytest.mark.parametrize("shrinks", [True, False])
def test_an_inferred_loss_takes_its_bytes_off_the_window_by_uecs_text_and_nothing_by_the_simulator(shrinks) -> None:
    """UEC 3.6.13.5: "OnInferredLoss" takes the packet's bytes off cwnd, down to a packet, with trims as well. It is no
    sample of the average delay, and triggers no quick adapt: little arrived, and no cut follows."""
    cc = make(losses_shrink=shrinks)
    for lost in range(1, 41):
        cc.on_loss(100_000, 4096, 100_000)
        window(cc, FULL - 4096 * lost if shrinks else FULL)
    dropping = make(losses_shrink=shrinks, trimming=False)
    dropping.on_loss(1, 4096, 100_000)
    window(dropping, FULL - 4096)  # a loss is a trim where nothing trims
    ack(cc, 200_000, 0)
    assert cc.window_bytes >= int(AFTER_40_TRIMS if shrinks else FULL)
    for _ in range(60):
        cc.on_loss(200_000, 4096, 100_000)
    assert cc.window_bytes == (4096 if shrinks else int(FULL))


def test_lost_bytes_count_among_those_that_are_ignored_after_quick_adapt() -> None:
    """UEC 3.6.13.5: what is inferred lost is no longer in flight, and so can tell nothing of the old window."""
    cc = make(losses_shrink=True)
    trims(cc, 1, 1)  # begins a period
    trims(cc, 100_000, 1)  # nothing arrived in it: quick adapt, and what is in flight, 104,096 bytes, is ignored
    window(cc, 4_096)
    for _ in range(25):  # 102,400 bytes of it
        cc.on_loss(100_000, 4096, 100_000)
    ack(cc, 100_001, None, size=1_600)  # 96 bytes are left
    trims(cc, 100_002, 1)  # all is accounted for with this one, which is heeded
    ack(cc, 100_003, None, size=60_000)
    grown = cc.window_bytes
    assert grown > 3 * 4_096
    trims(cc, 100_004, 1)
    window(cc, grown - 4_096)


def test_the_parameters_are_the_published_ones_at_the_reference() -> None:
    known = NsccConfig().resolved(PathTraits(BASE, BASE, 100_000_000_000, 4096))
    assert (known.target_delay, known.qa_gate) == (9000, 3)
    assert (known.adjust_bytes_threshold, known.adjust_period_threshold) == (8 * 4096, 12_000)
    assert (known.fi, known.eta, known.fi_scale) == pytest.approx((5 * 4096, 0.15 * 4096, 0.25))
    assert (known.gamma, known.max_md_jump, known.disable_qa) == (0.8, 0.5, False)


def test_the_parameters_grow_with_the_bandwidth_delay_product_as_published() -> None:
    """400 Gb/s and 12 µs: four times the reference's 150,000 bytes; without trims the target is a whole round trip."""
    known = NsccConfig().resolved(PathTraits(12_000, 12_000, 400_000_000_000, 4096, trimming=False))
    assert (known.fi, known.eta, known.fi_scale) == pytest.approx((20 * 4096, 0.6 * 4096, 1.0))
    assert (known.target_delay, known.qa_threshold) == (12_000, 48_000)


@given(st.lists(st.tuples(st.floats(0.1, 4.0), st.floats(0.0, 1000.0)), max_size=60))
def test_with_trims_no_delay_triggers_quick_adapt(acknowledged: list[tuple[float, float]]) -> None:
    """UEC: the threshold is used when trimming is disabled."""
    cc, now_ns = make(), 1
    for later, delay in acknowledged:
        now_ns += int(later * BASE)
        before = cc.window_bytes
        ack(cc, now_ns, int(delay * BASE))
        assert cc.window_bytes >= before


def test_a_delay_of_four_targets_triggers_quick_adapt_where_nothing_trims() -> None:
    cc = make(trimming=False)
    ack(cc, 1, 6_000)
    ack(cc, 2 * BASE + 2, 49_200)
    window(cc, 4096)


def test_jitter_of_the_world_is_not_taken_for_a_queue_far_too_long() -> None:
    cc = make(jitter_ns=100_000)
    ack(cc, 1, 6_000)
    whole = cc.window_bytes
    ack(cc, 21_002, 96_000)
    assert cc.window_bytes >= whole


@pytest.mark.parametrize(("penalty", "capped"), [(0, 225_000), (64, 112_500), (112, 28_125), (127, 4096)])
def test_the_receivers_penalty_caps_the_window(penalty: int, capped: int) -> None:
    cc = make()
    cc.on_penalty(penalty)
    window(cc, capped)
    cc.on_penalty(0)
    window(cc, FULL)


def test_the_window_stays_between_a_packet_and_one_and_a_half_bdp() -> None:
    cc, rng, now_ns = make(), Random(9), 0
    for _ in range(20_000):
        now_ns += rng.randrange(1, 4000)
        if rng.random() < 0.05:
            cc.on_trim(now_ns, 4096, rng.randrange(100_000))
        elif rng.random() < 0.01:
            cc.on_timeout(now_ns, rng.randrange(200_000))
        else:
            ack(cc, now_ns, int(rng.random() * 4 * BASE), marked=rng.random() < 0.3)
        assert 4096 <= cc.window_bytes <= FULL


def trace(rtt_ns: int, rate_bps: int) -> list[float]:
    """A window trace in BDPs under the same story told in round trips, BDPs and shares."""
    bdp = rate_bps * rtt_ns // 8_000_000_000
    cc = Nscc(PathTraits(rtt_ns, rtt_ns, rate_bps, 4096), NsccConfig())
    rng = Random(4)
    out, time = [], 0.0
    for step in range(3000):
        time += rng.random() * 0.1
        phase = step // 500
        delay = (0.0, 0.4, 1.2, 2.0, 3.5, 0.2)[phase] * (0.8 + 0.4 * rng.random())
        size = int(0.03 * bdp)
        now_ns = int(time * 12_000) * (rtt_ns // 12_000)
        if phase == 4 and rng.random() < 0.3:
            cc.on_trim(now_ns, size, bdp // 2)
        else:
            sample_ns = int(12_000 * (1 + delay)) * (rtt_ns // 12_000)
            cc.on_ack(now_ns, size, sample_ns, rng.random() < delay / 4, bdp // 2)
        out.append(cc.window_bytes / bdp)
    return out


@pytest.mark.parametrize(
    ("rtt_ns", "rate_bps"), [(120_000_000, 10_000_000), (30_000_000, 40_000_000), (1_200_000, 1_000_000_000)]
)
def test_a_fabric_slowed_down_by_any_factor_has_the_trace_of_100_gbps_and_12_us(rtt_ns: int, rate_bps: int) -> None:
    """The emulated world has the rates divided and the times multiplied, and so the same bytes in flight."""
    reference, other = trace(12_000, 100_000_000_000), trace(rtt_ns, rate_bps)
    assert max(reference) - min(reference) > 1.0  # the story moves the window
    assert other == pytest.approx(reference, abs=1e-4)


def delayed_writes(**parameters: float) -> tuple[bool, int]:
    """64 writes of 64 KiB whose packets take up to four base round trips longer: whether and when all are done."""
    wire = Wire(seed=5, nscc=parameters)
    for link in wire.links.values():
        link.faults = Faults(reorder=1.0, reorder_ns=4 * wire.base_rtt_ns)
    flow = Flow(wire)
    flow.post(65_536, times=64)
    wire.run(3_000 * wire.base_rtt_ns, stop=lambda: flow.finished)
    return flow.finished, wire.now_ns


def test_packets_that_are_late_and_not_lost_leave_the_window_open_where_switches_trim() -> None:
    """As if there were no quick adapt. With the threshold of a fabric without trims, four targets of three quarters of
    a base round trip, most are not done after 3,000 round trips: the window stays at some packets."""
    done, end_ns = delayed_writes()
    assert (done, end_ns) == delayed_writes(disable_qa=True)
    assert done
    assert not delayed_writes(qa_threshold=3 * Wire(seed=5).base_rtt_ns)[0]
