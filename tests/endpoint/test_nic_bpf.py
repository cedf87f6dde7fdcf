"""The filters, run by our own interpreter here and by the kernel in test_nic_driver."""

from hypothesis import given, strategies as st

from common.linux import bpf
from endpoint import prober
from endpoint.frame_filter import udp_over_ipv6
from endpoint.virtual_host import is_probe

PROGRAM = udp_over_ipv6((4791, 4971), 7, 3)
IPV6 = b"\x60" + bytes(5)


def packet(*, inner: bool, port: int, ethertype: int = 0x86DD, protocol: int = 17) -> bytes:
    ethernet = bytes(12) + ethertype.to_bytes(2, "big")
    last = IPV6 + bytes([protocol, 64]) + bytes(32)
    headers = IPV6 + bytes([41, 64]) + bytes(32) + last if inner else last
    return ethernet + headers + bytes(2) + port.to_bytes(2, "big") + bytes(4)


def test_both_ports_match_with_and_without_encapsulation():
    for inner in (False, True):
        for port in (4791, 4971):
            assert bpf.run(PROGRAM, packet(inner=inner, port=port)) == 7
        assert bpf.run(PROGRAM, packet(inner=inner, port=4792)) == 3


def test_other_ethertypes_and_protocols_do_not_match():
    assert bpf.run(PROGRAM, packet(inner=False, port=4791, ethertype=0x0800)) == 3
    assert bpf.run(PROGRAM, packet(inner=True, port=4791, protocol=6)) == 3
    assert bpf.run(PROGRAM, packet(inner=False, port=4791, protocol=6)) == 3


@given(st.binary(max_size=200))
def test_any_bytes_end_in_one_of_the_two_verdicts_or_in_a_short_load(frame):
    assert bpf.run(PROGRAM, frame) in (7, 3, 0)


@given(
    st.booleans(), st.sampled_from([prober.UDP_PORT, 4791]), st.sampled_from([17, 6]), st.sampled_from([0x86DD, 0x800]),
    st.integers(0, 60),
)  # fmt: skip
def test_virtual_time_takes_the_same_frames_for_the_probers(inner, port, protocol, ethertype, cut):
    whole = packet(inner=inner, port=port, protocol=protocol, ethertype=ethertype)
    frame = whole[: len(whole) - cut]
    assert is_probe(frame) is (bpf.run(prober.FRAMES, frame) == 0x40000)


@given(st.binary(max_size=40))
def test_virtual_time_takes_no_other_bytes_for_the_probers(data):
    frame = bytes(12) + b"\x86\xdd" + data + prober.UDP_PORT.to_bytes(2, "big") * 40
    assert is_probe(frame) is (bpf.run(prober.FRAMES, frame) == 0x40000)


def test_tc_is_given_the_number_of_instructions_first():
    count, *instructions = bpf.tc_bytecode(PROGRAM).split(",")
    assert int(count) == len(instructions) == len(PROGRAM)


def test_frames_of_flow_control_match_only_where_they_are_asked_for():
    pause = bytes.fromhex("0180c200000102100000000188080101") + bytes(44)
    assert bpf.run(PROGRAM, pause) == 3
    assert bpf.run(udp_over_ipv6((4791,), 7, 3, mac_control=True), pause) == 7
    assert bpf.run(udp_over_ipv6((4791,), 7, 3, mac_control=True), packet(inner=False, port=4792)) == 3
