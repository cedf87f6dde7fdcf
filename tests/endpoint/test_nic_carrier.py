"""rtnetlink messages, taken apart without a kernel; test_nic_driver has the real ones."""

import struct

from hypothesis import given, strategies as st

from endpoint.packet_sockets.driver import NetworkInterface, parse

NEWLINK, DELLINK, UP, LOWER_UP = 16, 17, 1, 1 << 16


def message(kind: int, name: bytes, flags: int, index: int = 7) -> bytes:
    attribute = struct.pack("HH", 4 + len(name) + 1, 3) + name + b"\0"
    attribute += bytes(-len(attribute) % 4)
    other = struct.pack("HHI", 8, 4, 1500)  # IFLA_MTU comes first, so that skipping is tested
    body = struct.pack("BxHiII", 0, 1, index, flags, 0) + other + attribute
    return struct.pack("IHHII", 16 + len(body), kind, 0, 0, 0) + body


def test_a_link_is_up_only_with_both_flags_and_gone_when_deleted():
    data = b"".join(
        (
            message(NEWLINK, b"h0-p0", UP | LOWER_UP),
            message(NEWLINK, b"h0-p1", UP),
            message(NEWLINK, b"h0-p2", LOWER_UP),
            message(DELLINK, b"h0-p3", UP | LOWER_UP),
            message(3, b"done", UP | LOWER_UP),
        )
    )
    assert list(parse(data)) == [
        NetworkInterface("h0-p0", 7, True),
        NetworkInterface("h0-p1", 7, False),
        NetworkInterface("h0-p2", 7, False),
        NetworkInterface("h0-p3", 7, False),
    ]


@given(st.binary(max_size=300), st.integers(0, 51))
def test_a_torn_message_is_no_link_and_whole_ones_before_it_are_read(data, cut):
    whole = message(NEWLINK, b"h0-p0", UP)
    assert next(parse(whole + data)) == NetworkInterface("h0-p0", 7, False)
    assert list(parse(whole + whole[:cut])) == [NetworkInterface("h0-p0", 7, False)]
    assert len(list(parse(whole[:cut] + data))) <= (cut + len(data)) // 32  # of 32 bytes or more each
