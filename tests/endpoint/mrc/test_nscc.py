"""Each quadrant of NSCC, its other rules, and the same normalised trace at any rate."""

from random import Random

import pytest
from hypothesis import given, strategies as st

from endpoint.mrc.congestion.cc_profile import NsccConfig, PathTraits, make_config
from endpoint.mrc.congestion.nscc import Nscc
from tests.helpers.transport import Faults, Flow, Wire

REFERENCE_RTT_NS, REFERENCE_BDP = 12_000, 150_000
REFERENCE_BPS = 100_000_000_000


def make(*, trimming: bool = True, jitter_ns: int = 0, **config: float) -> Nscc:
    """At the reference: 100 Gb/s, 12 µs, packets of 4096 bytes."""
    path = PathTraits(REFERENCE_RTT_NS, REFERENCE_RTT_NS, REFERENCE_BPS, 4096, jitter_ns=jitter_ns, trimming=trimming)
    return Nscc(path, make_config(config))


def ack(
    cc: Nscc, now_ns: int, delay: float, marked: bool = False, size: int = 4096, rtt_ns: int = REFERENCE_RTT_NS
) -> int:
    """One acknowledgement with `delay` in base round trips; returns the change of the window."""
    before = cc.window_bytes
    cc.on_ack(now_ns, size, rtt_ns + int(delay * rtt_ns), marked, 50_000)
    return cc.window_bytes - before


def test_the_parameters_are_the_published_ones_at_the_reference() -> None:
    known = NsccConfig().resolved(PathTraits(REFERENCE_RTT_NS, REFERENCE_RTT_NS, REFERENCE_BPS, 4096))
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
        now_ns += int(later * REFERENCE_RTT_NS)
        assert ack(cc, now_ns, delay) >= 0


def test_a_delay_of_four_targets_triggers_quick_adapt_where_nothing_trims() -> None:
    cc = make(trimming=False)
    ack(cc, 1, 0.5)
    ack(cc, 2 * REFERENCE_RTT_NS + 2, 4.1)
    assert cc.window_bytes == 4096


def test_jitter_of_the_world_is_not_taken_for_a_queue_far_too_long() -> None:
    cc = make(jitter_ns=100_000)
    ack(cc, 1, 0.5)
    whole = cc.window_bytes
    ack(cc, int(REFERENCE_RTT_NS * 1.75) + 2, 8.0)
    assert cc.window_bytes >= whole


def test_silent_loss_shrinks_the_window_only_where_switches_do_not_trim() -> None:
    trimming, dropping = make(), make(trimming=False)
    for cc in (trimming, dropping):
        cc.on_loss(1, 4096, 100_000)
    assert trimming.window_bytes == REFERENCE_BDP * 3 // 2
    assert dropping.window_bytes < REFERENCE_BDP * 3 // 2


@pytest.mark.parametrize(("penalty", "window"), [(0, 225_000), (64, 112_500), (112, 28_125), (127, 4096)])
def test_the_receivers_penalty_caps_the_window(penalty: int, window: int) -> None:
    cc = make()
    cc.on_penalty(penalty)
    assert cc.window_bytes == pytest.approx(window, abs=1)
    cc.on_penalty(0)
    assert cc.window_bytes == REFERENCE_BDP * 3 // 2


def test_the_window_stays_between_a_packet_and_one_and_a_half_bdp() -> None:
    cc, rng, now_ns = make(), Random(9), 0
    for _ in range(20_000):
        now_ns += rng.randrange(1, 4000)
        if rng.random() < 0.05:
            cc.on_trim(now_ns, 4096, rng.randrange(100_000))
        elif rng.random() < 0.01:
            cc.on_timeout(now_ns, rng.randrange(200_000))
        else:
            ack(cc, now_ns, rng.random() * 4, rng.random() < 0.3)
        assert 4096 <= cc.window_bytes <= REFERENCE_BDP * 3 // 2


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
    wire.kick("h0")
    wire.run(3_000 * wire.base_rtt_ns, stop=lambda: flow.finished)
    return flow.finished, wire.now_ns


def test_packets_that_are_late_and_not_lost_leave_the_window_open_where_switches_trim() -> None:
    """As if there were no quick adapt. With the threshold of a fabric without trims, four targets of three quarters of
    a base round trip, most are not done after 3,000 round trips: the window stays at some packets."""
    done, end_ns = delayed_writes()
    assert (done, end_ns) == delayed_writes(disable_qa=True)
    assert done
    assert not delayed_writes(qa_threshold=3 * Wire(seed=5).base_rtt_ns)[0]
