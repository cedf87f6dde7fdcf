"""The classic BPF program that recognises MRC frames: for packet sockets (SO_ATTACH_FILTER) and for `tc`.

Offsets count from the first byte of Ethernet. Both kinds of frame are known: IPv6 in IPv6 (SRv6 encapsulation), where
the UDP header is the inner one's, and plain IPv6. Trimmed packets still have these headers. Where `segments` says so, a
segment routing header (RFC 8754) may follow the outer header, as Linux writes one.
"""

from collections.abc import Sequence

from common.linux.bpf import JUMP, JUMP_EQUAL, LOAD_BYTE, LOAD_HALF, RETURN, Line, Program, assemble

ACCEPT_WHOLE, REJECT = 0x40000, 0
MAC_CONTROL = 0x8808


SEGMENTS_MAX = 8
"""Segments in a segment routing header that the filter of data recognises; classic BPF has no loops."""


def udp_over_ipv6(
    ports: Sequence[int], matched: int, otherwise: int, *, mac_control: bool = False, segments: int = 0
) -> Program:
    """Return `matched` for frames whose UDP destination port, inner if encapsulated, is one of `ports`.

    `mac_control` adds MAC control frames (IEEE 802.3, clause 31), `segments` frames with a segment routing header of up
    to so many segments and no options.
    """
    return assemble(
        [
            Line(LOAD_HALF, 12),  # EtherType
            *([Line(JUMP_EQUAL, MAC_CONTROL, true="hit")] if mac_control else []),
            Line(JUMP_EQUAL, 0x86DD, false="miss"),
            Line(LOAD_BYTE, 20),  # outer next header
            Line(JUMP_EQUAL, 17, true="plain"),
            *([Line(JUMP_EQUAL, 43, true="routing")] if segments else []),
            Line(JUMP_EQUAL, 41, false="miss"),
            Line(LOAD_BYTE, 60),  # inner next header
            Line(JUMP_EQUAL, 17, false="miss"),
            Line(LOAD_HALF, 96),  # inner UDP destination port
            Line(JUMP, true="compare"),
            *(_behind_routing(segments) if segments else ()),
            Line(LOAD_HALF, 56, label="plain"),
            Line(JUMP, label="compare"),
            *(Line(JUMP_EQUAL, port, true="hit") for port in dict.fromkeys(ports)),
            Line(RETURN, otherwise, label="miss"),
            Line(RETURN, matched, label="hit"),
        ]
    )


def _behind_routing(segments: int) -> list[Line]:
    """From a routing header behind the outer header to the UDP destination port, for each length in turn."""
    counts = range(1, segments + 1)
    lines = [
        Line(LOAD_BYTE, 54, label="routing"),  # what follows the routing header
        Line(JUMP_EQUAL, 41, false="miss"),
        Line(LOAD_BYTE, 56),  # type of routing: 4 is segment routing
        Line(JUMP_EQUAL, 4, false="miss"),
        Line(LOAD_BYTE, 55),  # length in eight bytes, without the first eight
        *(Line(JUMP_EQUAL, 2 * count, true=f"segments {count}") for count in counts),
        Line(JUMP, true="miss"),
    ]
    for count in counts:
        size = 8 + 16 * count
        lines += [
            Line(LOAD_BYTE, 60 + size, label=f"segments {count}"),
            Line(JUMP_EQUAL, 17, false="miss"),
            Line(LOAD_HALF, 96 + size),
            Line(JUMP, true="compare"),
        ]
    return lines
