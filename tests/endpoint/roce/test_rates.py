"""The two brakes of a RoCE sender: DCQCN and pauses."""

from dataclasses import asdict, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from endpoint.nic.config import ConfigError
from endpoint.roce import endpoint as nic
from endpoint.roce.config import make_settings
from endpoint.roce.dcqcn import Dcqcn
from endpoint.roce.dcqcn_setting import SETTINGS, DcqcnConstants, dcqcn_setting
from tests.helpers.transport import Flow, Wire, roce_wire

LINE = 100.0  # Gb/s, as the traces have it
RTT_NS = 10_000
PERIOD_NS = 11_000  # 55 µs of 50


def made(name: str) -> Dcqcn:
    return Dcqcn(100_000_000_000, RTT_NS, 125_000, dcqcn_setting(name))


def rate(dcqcn: Dcqcn) -> float:
    return dcqcn.rate_bps / 1e9


@pytest.mark.parametrize(
    ("name", "gain"), [("default", 1 / 256), ("aggressive", 1 / 256), ("most_aggressive", 5 / 1024)]
)
def test_each_notification_cuts_by_half_of_alpha_and_raises_alpha_by_the_gain(name: str, gain: float) -> None:
    dcqcn = made(name)
    dcqcn.on_cnp(0)  # alpha is 1: half, and (1 - g) + g stays 1
    assert (rate(dcqcn), dcqcn.alpha) == (50.0, 1.0)
    dcqcn.advance(2 * PERIOD_NS)  # alpha has decayed twice; the rate has gone half of the way to 100 twice: 75, 87.5
    assert dcqcn.alpha == pytest.approx((1 - gain) ** 2)
    assert rate(dcqcn) == pytest.approx(87.5)
    alpha = dcqcn.alpha
    dcqcn.on_cnp(2 * PERIOD_NS)
    assert rate(dcqcn) == pytest.approx(87.5 * (1 - alpha / 2))
    assert dcqcn.alpha == pytest.approx((1 - gain) * alpha + gain)


@pytest.mark.parametrize(("name", "additive"), [("default", 0.4), ("aggressive", 0.1), ("most_aggressive", 0.1)])
def test_after_five_steps_of_fast_recovery_the_target_rises_by_the_additive_increase(name, additive) -> None:
    dcqcn = made(name)
    dcqcn.on_cnp(0)  # 100 to 50
    dcqcn.on_cnp(0)  # alpha is still 1: 50 to 25, target 50
    expected = 25.0
    for step in range(1, 6):  # 37.5, 43.75, 46.875, 48.4375, 49.21875
        expected = (expected + 50.0) / 2
        dcqcn.advance(step * PERIOD_NS)
        assert rate(dcqcn) == pytest.approx(expected)
    for step in (6, 7):
        expected = (expected + 50.0 + (step - 5) * additive) / 2
        dcqcn.advance(step * PERIOD_NS)
        assert rate(dcqcn) == pytest.approx(expected)


def test_hyper_increase_needs_both_the_timer_and_the_byte_counter_past_fast_recovery() -> None:
    dcqcn = made("default")
    dcqcn.on_cnp(0)
    dcqcn.on_cnp(0)
    dcqcn.advance(6 * PERIOD_NS)  # the timer is past, by one step: target 50.4
    target, found = 50.4, rate(dcqcn)
    for _ in range(5):  # five times the byte counter: additive, since the timer is past fast recovery
        dcqcn.on_sent(40 * 125_000, 6 * PERIOD_NS)
        target += 0.4
        found = (found + target) / 2
        assert rate(dcqcn) == pytest.approx(found)
    dcqcn.on_sent(40 * 125_000, 6 * PERIOD_NS)  # both are past now: ten times as much
    assert rate(dcqcn) == pytest.approx((found + target + 4.0) / 2)


def test_the_settings_are_the_published_numbers_where_there_are_some() -> None:
    """Zhu et al. (SIGCOMM 2015) for 40 Gb/s and 50 µs; NVIDIA's dce_tcp_g of 1019 in 1024."""
    default, aggressive, most = (asdict(SETTINGS[name]) for name in ("default", "aggressive", "most_aggressive"))
    for setting in (default, aggressive, most):
        assert setting["alpha_period_rtts"] * 50 == setting["increase_period_rtts"] * 50 == pytest.approx(55)
        assert setting["increase_bdps"] * 40e9 * 50e-6 / 8 == pytest.approx(10e6)
        assert setting["fast_recovery"] == 5
        assert setting["hyper"] == pytest.approx(10 * setting["additive"])
    assert [s["alpha_gain"] for s in (default, aggressive, most)] == [1 / 256, 1 / 256, (1024 - 1019) / 1024]
    assert [s["cnp_period_rtts"] * 50 for s in (default, aggressive, most)] == [50, 25, 12.5]
    assert aggressive["additive"] * 40e9 == most["additive"] * 40e9 == pytest.approx(40e6)


@pytest.mark.parametrize(
    ("name", "line_bps", "additive_bps"),
    [
        ("published", 40_000_000_000, 40e6),
        ("published", 400_000_000_000, 40e6),
        ("scaled", 40_000_000_000, 40e6),
        ("scaled", 400_000_000_000, 400e6),  # ten times the line
        ("scaled", 800_000_000_000, 800e6),
    ],
)
def test_the_published_constants_are_times_and_rates_whatever_the_link_and_scaled_rates_grow_with_it(
    name: str, line_bps: int, additive_bps: float
) -> None:
    for rtt_ns in (10_000, 14_480):
        dcqcn = Dcqcn(line_bps, rtt_ns, line_bps * rtt_ns // 8_000_000_000, dcqcn_setting(name))
        dcqcn.on_cnp(0)
        dcqcn.on_cnp(0)
        expected = line_bps / 4
        dcqcn.advance(54_999)
        assert dcqcn.rate_bps == expected
        for step in range(1, 6):
            expected = (expected + line_bps / 2) / 2
            dcqcn.advance(step * 55_000)
            assert dcqcn.rate_bps == pytest.approx(expected)
        dcqcn.advance(6 * 55_000)  # the target rises by R_AI
        expected, target = (expected + line_bps / 2 + additive_bps) / 2, line_bps / 2 + additive_bps
        assert dcqcn.rate_bps == pytest.approx(expected)
        for _ in range(6):  # six byte counters, 10 MB of 40 Gb/s; the sixth is past fast recovery as well: R_HAI
            step_bps = additive_bps if _ < 5 else 10 * additive_bps
            dcqcn.on_sent(round(10e6 * additive_bps / 40e6), 6 * 55_000)
            target += step_bps
            expected = (expected + target) / 2
            assert dcqcn.rate_bps == pytest.approx(expected)


def test_constants_of_the_published_setting_are_changed_by_name() -> None:
    changed = dcqcn_setting("published:alpha_gain=0.5,additive_bps=4e8")
    assert changed == replace(
        SETTINGS["published"], alpha_gain=0.5, absolute=replace(DcqcnConstants(), additive_bps=400_000_000)
    )
    make_settings({"dcqcn_setting": "published:increase_period_ns=110000"})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hasty", "valid: default, aggressive, most_aggressive, published"),
        ("default:alpha_gain=0.5", "`published` and `scaled` can be changed"),
        ("published:gain=0.5", "by alpha_gain, alpha_period_ns, "),
        ("published:alpha_gain=2", "alpha_gain at most 1"),
        ("published:additive_bps=-1", "must be a number above 0"),
        ("published:additive_bps", "must be a number above 0"),
    ],
)
def test_a_change_that_cannot_be_is_refused_with_what_can(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_settings({"dcqcn_setting": name})


def test_alpha_decays_at_line_rate_as_below_it() -> None:
    """Publication, section 3.1: (1 - g) for each timer without a notification, however fast the sender is."""
    dcqcn = made("default")
    for number in range(10):
        dcqcn.on_cnp(number * PERIOD_NS)
    assert dcqcn.alpha > 0.9
    dcqcn.advance(400 * PERIOD_NS)
    assert not dcqcn.limited
    dcqcn.on_cnp(10**9)
    assert rate(dcqcn) > 0.99 * LINE


def test_alpha_is_one_at_the_first_notification_however_late() -> None:
    dcqcn = made("default")
    dcqcn.advance(10**12)
    dcqcn.on_cnp(10**12)
    assert rate(dcqcn) == 50.0


GBPS = 1_000_000_000
# Annex 31D: group address, source, EtherType, opcode, vector with bit 3, eight times.
HEAD = bytes.fromhex("0180c200000102100000000188080101")


def pause(quanta: int, priority: int = 3) -> bytes:
    times = b"".join((quanta if p == priority else 0).to_bytes(2, "big") for p in range(8))
    return HEAD + (1 << priority).to_bytes(2, "big") + times + bytes(26)


def lossless_wire(classes: int = 1 << 3, **options: Any) -> Wire:
    return roce_wire(profile_changes={"encapsulation": "none", "pfc_classes": classes}, **options)


def port_row(nic: Any) -> dict[str, Any]:
    (row,) = nic.counters()["ports"]
    return dict(row)


def with_a_packet(frame: bytes, classes: int = 1 << 3) -> Any:
    """A NIC that has received this frame, and then has a packet to send."""
    wire = lossless_wire(classes)
    flow = Flow(wire)
    nic = wire.transports["h0"]
    nic.receive(1, [frame], 0)
    flow.post(4096)
    return nic


def test_a_pause_holds_data_back_for_its_quanta_and_not_longer() -> None:
    nic = with_a_packet(pause(10_000))
    assert nic.packets_to_send(0, 64) == []
    nic.handle_timer(0)  # the retry rule's, which waits for a port that takes the packet
    until_ns = -(-10_000 * 512 * GBPS // (40 * GBPS))
    assert nic.next_timer_ns() == until_ns == 128_000
    assert nic.packets_to_send(until_ns - 1, 64) == []
    assert len(nic.packets_to_send(until_ns, 64)) == 1
    row = port_row(nic)
    assert (row["pause_received"], row["resume_received"], row["paused_ns"]) == (1, 0, until_ns)


def test_a_resume_lets_data_go_at_once() -> None:
    nic = with_a_packet(pause(65_535))
    assert nic.packets_to_send(0, 64) == []
    nic.receive(1, [pause(0)], 5_000)
    assert len(nic.packets_to_send(5_000, 64)) == 1
    row = port_row(nic)
    assert (row["pause_received"], row["resume_received"], row["paused_ns"]) == (1, 1, 5_000)


def test_acknowledgements_and_notifications_are_never_paused() -> None:
    wire = lossless_wire()
    flow, back = Flow(wire), Flow(wire, "h1", "h0")
    nic = wire.transports["h0"]
    flow.post(1 << 20)
    back.post(1 << 20)
    wire.at(10_000, lambda: nic.receive(1, [pause(65_535)], wire.now_ns))
    wire.run(600_000)
    assert back.finished, "the paused NIC acknowledges what it gets"
    assert not flow.finished
    wire.run(3_000_000)
    flow.check()
    back.check()
    assert flow.qp.requester.timeouts == 0


@pytest.mark.parametrize(
    "frame",
    [
        pause(65_535, priority=0), pause(65_535)[:33], pause(65_535)[:14], bytes(6) + pause(65_535)[6:],
        pause(65_535)[:14] + b"\0\1" + pause(65_535)[16:],
    ],
)  # fmt: skip
def test_frames_that_are_short_forged_or_about_others_pause_nothing(frame: bytes) -> None:
    nic = with_a_packet(frame)
    assert len(nic.packets_to_send(0, 64)) == 1
    assert port_row(nic)["pause_ignored"] == 1


def test_a_nic_of_a_lossy_fabric_takes_a_pause_for_a_malformed_frame() -> None:
    nic = with_a_packet(pause(65_535), classes=0)
    assert len(nic.packets_to_send(0, 64)) == 1
    assert nic.counters()["drops"] == {"malformed": 1}
    assert "pause_received" not in port_row(nic)


@given(st.binary(max_size=80), st.booleans())
def test_whatever_the_bytes_of_mac_control_are_only_lossless_priorities_are_paused(tail: bytes, grouped: bool) -> None:
    frame = (HEAD if grouped else HEAD[:14]) + tail
    times = nic.pause_times(frame)
    if len(frame) < 34 or frame[14:16] != b"\1\1":
        assert times == {}
    else:
        vector = frame[17]
        assert set(times) == {priority for priority in range(8) if vector >> priority & 1}
        assert all(quanta == int.from_bytes(frame[18 + 2 * p : 20 + 2 * p], "big") for p, quanta in times.items())


def test_hundreds_of_random_pauses_leave_a_transfer_whole() -> None:
    rng = Random(5)
    wire = lossless_wire(seed=3)
    flow = Flow(wire)
    nic = wire.transports["h0"]
    for _ in range(200):
        frame = bytearray(pause(rng.choice((0, 1, 50, 900))))
        if rng.random() < 0.3:
            frame[rng.randrange(len(frame))] ^= rng.getrandbits(8)
        at_ns = rng.randrange(2_000_000)
        wire.at(at_ns, lambda data=bytes(frame): nic.receive(1, [data], wire.now_ns))
    flow.post(1 << 20)
    wire.run(20_000_000)
    flow.check()
