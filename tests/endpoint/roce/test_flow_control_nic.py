"""The baseline's NIC under flow control (IEEE 802.1Qbb): data waits, all else goes, hostile frames do nothing."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from endpoint.roce import endpoint as nic
from tests.helpers.transport import Flow, Wire, roce_wire

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
