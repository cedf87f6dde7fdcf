"""What a frame says, read from frames that Scapy makes; and sampled lines, of whatever bytes arrive."""

from collections.abc import Callable, Mapping
from ipaddress import IPv6Address
from typing import Any

import pytest
from hypothesis import given, strategies as st

from benchmarks.rig.profiles import profile as example
from endpoint import packet_sampling
from endpoint.decoder import Decoder, acknowledges
from endpoint.group import WorkloadGroup
from endpoint.nic.dialect import DEFAULT
from endpoint.packet_sampling import LINES_MAX, ONE_IN, SECOND_NS, PacketSampler
from endpoint.profile import NicProfile, parse
from tests.helpers.workload_fake import FakeClient, FakeNet

pytest.importorskip("scapy", reason="needs the optional package scapy")

from scapy.packet import Packet, Raw

from endpoint import scapy as layers

DA, HERE, THERE = "fcbb:bbbb:1000:2003:1001:3002::", "fd00::1", "fd00::2"
NAMES = {IPv6Address(HERE).packed: "h0", IPv6Address(THERE).packed: "h9"}
DECODER = Decoder(NAMES, {20, 22}, 4791, DEFAULT)


def framed(bth: Packet, *rest: Packet, ev: int = 0x0001C003, dscp: int = 10) -> bytes:
    head = layers.encapsulate(DA, HERE, THERE, ev=ev, dscp=dscp, ecn=2, outer_src="fd00:1::1")
    for part in (bth, *rest):
        head = head / part
    return bytes(head)


def test_a_write_says_where_its_payload_goes_and_how_long_it_is() -> None:
    write = framed(
        layers.Mrc(opcode=0xC7, dqpn=0x105, psn=0xABCD80, ts=1), layers.Meth(msn=7), layers.Tseth(tx_timestamp=9),
        layers.Reth(va=0x1_0020_3000, rkey=5, length=1 << 20), Raw(bytes(1000)),
    )  # fmt: skip
    told = DECODER.fields(write[:160])
    assert (told["src"], told["dst"], told["op"]) == ("h0", "h9", "WRITE_MIDDLE")
    assert (told["qpn"], told["psn"], told["ev"]) == (0x105, 0xABCD80, 0x0001C003)
    assert (told["va"], told["payload"]) == (0x1_0020_3000, 1000)
    # A switch that trims cuts bytes off and changes the outer length alone.
    assert DECODER.fields(write[:142])["payload"] == 1000
    assert DECODER.fields(write[:128]) == {**told, "va": None}  # in the middle of the RETH


def test_a_sack_says_what_has_arrived_in_ranges_of_psns() -> None:
    """By hand: bit i of the bitmap is PSN 0xFFFFF0 + 2 + i; bits 0, 1, 2, 5 and 20 are set; PSNs have 24 bits."""
    sack = framed(
        layers.Mrc(opcode=0xDC, dqpn=0x11, psn=0),
        layers.Seth(cack_psn=0xFFFFF0, sack_offset=2, sack_bitmap=0x100027, entropy=0x2C001, ack_psn_offset=22),
    )
    told = DECODER.fields(sack)
    assert (told["op"], told["psn"], told["echo_ev"], told["qpn"]) == ("SACK", 0xFFFFF0, 0x2C001, 0x11)
    assert told["cause_psn"] == 6
    assert told["sacked"] == [[0xFFFFF2, 0xFFFFF4], [0xFFFFF7, 0xFFFFF7], [6, 6]]
    arrived = [*range(0xFFFFE0, 0xFFFFF1), 0xFFFFF2, 0xFFFFF3, 0xFFFFF4, 0xFFFFF7, 6]
    around = [psn % (1 << 24) for psn in range(0xFFFFE0, 0x1000040)]
    assert [psn for psn in around if acknowledges(told, psn)] == arrived


def test_a_range_that_crosses_the_end_of_the_psns_is_one_range() -> None:
    sack = framed(layers.Mrc(opcode=0xDC), layers.Seth(cack_psn=0xFFFFFD, sack_offset=1, sack_bitmap=0b1111, pr=1))
    told = DECODER.fields(sack)
    assert told["sacked"] == [[0xFFFFFE, 1]]
    assert told["cause_psn"] is None  # the answer to a probe
    assert [psn for psn in (0xFFFFFE, 0xFFFFFF, 0, 1, 2) if acknowledges(told, psn)] == [0xFFFFFE, 0xFFFFFF, 0, 1]


def card(
    profile: NicProfile, living: Callable[[], set[int]] = set
) -> tuple[PacketSampler, list[tuple[int, str, Mapping[str, Any]]]]:
    written: list[tuple[int, str, Mapping[str, Any]]] = []
    made = PacketSampler(profile, lambda t_ns, kind, fields: written.append((t_ns, kind, fields)), living)
    return made, written


@given(st.lists(st.binary(max_size=200), max_size=20), st.binary(min_size=1, max_size=64), st.integers(0, 160))
def test_whatever_bytes_arrive_nothing_breaks(frames: list[bytes], noise: bytes, at: int) -> None:
    sampler, written = card(parse(example(1)))
    front = layers.encapsulate(DA, THERE, HERE, ev=7, dscp=10, ecn=2, outer_src="fd00:1::1")
    sampler.sent([(1, bytes(front / layers.Mrc(opcode=0xC7, dqpn=5, psn=ONE_IN) / layers.Meth() / layers.Reth()))], 0)
    assert [one[2]["what"] for one in written] == ["sent"]
    good = framed(layers.Mrc(opcode=0xDC, dqpn=1), layers.Seth(cack_psn=ONE_IN, entropy=7, sack_bitmap=1))
    spoiled = good[:at] + noise + good[at + len(noise) :]
    sampler.received(1, [*frames, spoiled, memoryview(spoiled)[:at]], 1)
    sampler.sent([(1, frame) for frame in [*frames, spoiled]], 2)


def test_the_first_answer_that_speaks_of_a_packet_closes_it_and_no_other_queue_pairs() -> None:
    sampler, written = card(parse(example(1)))
    sampler.joined("h0", 1, 5)
    sampler.joined("h0", 2, 6)
    front = layers.encapsulate(DA, THERE, HERE, ev=7, dscp=10, ecn=2, outer_src="fd00:1::1")
    for psn in range(250, 780):
        sampler.sent(
            [(1, bytes(front / layers.Mrc(opcode=0xC7, dqpn=5, psn=psn) / layers.Meth() / layers.Reth()))], psn
        )
    assert [one[2]["psn"] for one in written] == [256, 512, 768]

    def sack(t_ns: int, own: int, **fields: Any) -> None:
        sampler.received(1, [framed(layers.Mrc(opcode=0xDC, dqpn=own), layers.Seth(**fields))], t_ns)

    sack(1000, 2, cack_psn=900)  # of the other queue pair
    sack(1001, 1, cack_psn=255)
    sack(1002, 1, cack_psn=250, sack_offset=1, sack_bitmap=1 << 5)
    sack(1003, 1, cack_psn=300)
    sack(1004, 1, cack_psn=768)
    sack(1005, 1, cack_psn=900)
    answers = [(one[0], one[2]["psn"]) for one in written if one[2]["what"] == "answered"]
    assert answers == [(1002, 256), (1004, 512), (1004, 768)]


def test_a_flood_of_frames_that_look_sampled_does_not_fill_the_journal() -> None:
    sampler, written = card(parse(example(1)))
    front = layers.encapsulate(DA, THERE, HERE, ev=7, dscp=10, ecn=2, outer_src="fd00:1::1")
    frame = bytes(front / layers.Mrc(opcode=0xC7, dqpn=5, psn=ONE_IN) / layers.Meth() / layers.Reth())
    sampler.sent([(1, frame)] * (2 * LINES_MAX), 0)
    assert len(written) == LINES_MAX
    sampler.sent([(1, frame)], SECOND_NS)
    assert len(written) == LINES_MAX + 1


def test_the_queue_pairs_of_programs_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are learned from SACKs, and the sampler is not told when they are destroyed."""
    monkeypatch.setattr(packet_sampling, "QPS_UNLOOKED", 8)
    living = {1}
    sampler, written = card(parse(example(1)), lambda: living)
    front = layers.encapsulate(DA, THERE, HERE, ev=7, dscp=10, ecn=2, outer_src="fd00:1::1")

    def exchange(own: int, peers: int) -> None:
        write = layers.Mrc(opcode=0xC7, dqpn=peers, psn=ONE_IN) / layers.Meth() / layers.Reth()
        sampler.sent([(1, bytes(front / write))], own)
        sack = layers.Seth(cack_psn=ONE_IN, entropy=7, sack_bitmap=1)
        sampler.received(1, [framed(layers.Mrc(opcode=0xDC, dqpn=own), sack)], own)

    for number in range(1, 60):
        living = {1, number}
        exchange(number, 1000 + number)
        assert len(sampler._qps) <= 2 * len(living) + 8 + 1
    assert [one[2]["what"] for one in written].count("answered") == 59
    assert sampler._qps[next(iter(sampler._qps))[0], 1] == 1001
    assert not sampler._open


def test_the_queue_pairs_of_a_workload_are_forgotten_with_their_open_packets_when_it_is_removed() -> None:
    net = FakeNet(seed=1, hosts=2)
    host = net.hosts["h0"]
    host.sample_packets()
    clients = {name: FakeClient(net, name) for name in net.hosts}
    groups = [
        WorkloadGroup(clients, name=name, kind="write_bw", ranks=["h0", "h1"], options={"qps": 3}) for name in "ab"
    ]
    sampler = host.sampler
    assert sampler is not None
    kept = {qp.qpn for workload in host._in_turn[1:] for qp in workload.qps()}
    for (address, own), qpn in sampler._qps.items():
        sampler._open.setdefault(address, {})[qpn, ONE_IN * own] = 7
    groups[0].remove()
    assert {own for _, own in sampler._qps} == kept
    assert {psn // ONE_IN for there in sampler._open.values() for _, psn in there} == kept
    groups[1].remove()
    assert not sampler._qps
    assert not sampler._open
