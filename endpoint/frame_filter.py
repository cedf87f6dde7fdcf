"""The classic BPF program that recognises MRC frames: for packet sockets (SO_ATTACH_FILTER) and for `tc`.

Offsets count from the first byte of Ethernet. Both kinds of frame are known: IPv6 in IPv6 (SRv6 encapsulation), where
the UDP header is the inner one's, and plain IPv6. Trimmed packets still have these headers.
"""

from __future__ import annotations

from collections.abc import Sequence

from common.bpf import JUMP, JUMP_EQUAL, LOAD_BYTE, LOAD_HALF, RETURN, Line, Program, assemble

ACCEPT_WHOLE, REJECT = 0x40000, 0
MAC_CONTROL = 0x8808


def udp_over_ipv6(ports: Sequence[int], matched: int, otherwise: int, *, mac_control: bool = False) -> Program:
    """Return `matched` for frames whose UDP destination port, inner if encapsulated, is one of `ports`.

    With `mac_control` also for MAC control frames (IEEE 802.3, clause 31), whatever they ask for.
    """
    return assemble(
        [
            Line(LOAD_HALF, 12),  # EtherType
            *([Line(JUMP_EQUAL, MAC_CONTROL, true="hit")] if mac_control else []),
            Line(JUMP_EQUAL, 0x86DD, false="miss"),
            Line(LOAD_BYTE, 20),  # outer next header
            Line(JUMP_EQUAL, 17, true="plain"),
            Line(JUMP_EQUAL, 41, false="miss"),
            Line(LOAD_BYTE, 60),  # inner next header
            Line(JUMP_EQUAL, 17, false="miss"),
            Line(LOAD_HALF, 96),  # inner UDP destination port
            Line(JUMP, true="compare"),
            Line(LOAD_HALF, 56, label="plain"),
            Line(JUMP, label="compare"),
            *(Line(JUMP_EQUAL, port, true="hit") for port in dict.fromkeys(ports)),
            Line(RETURN, otherwise, label="miss"),
            Line(RETURN, matched, label="hit"),
        ]
    )
