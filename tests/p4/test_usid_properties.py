"""Any container at any node: the programs do what integer arithmetic says (RFC 9800, NEXT-C-SID, F3216)."""

from functools import cache

from hypothesis import given, settings, strategies as st

from p4c.entries import Lpm
from tests.helpers.p4.frames import IN_MACS, frame
from tests.helpers.p4.node import Node
from tests.helpers.p4.programs import ENGINES, PROGRAMS, compiled, engine

BLOCK = 0xFCBBBBBB
UN = 0x0001
UA = {0xE002: 2, 0xE003: 3}
NEIGHBOURS = {0x0002: 2, 0x8003: 3, 0xFFFF: 4}
USIDS = 96
USIDS_MASK = (1 << USIDS) - 1

interesting = st.sampled_from([0, UN, *UA, *NEIGHBOURS, 0xE004, 0x8000])
usid = interesting | st.integers(0, 0xFFFF)
containers = st.lists(usid, min_size=6, max_size=6).map(
    lambda usids: sum(u << 16 * (5 - i) for i, u in enumerate(usids))
)


@cache
def node(program: str, kind: str) -> Node:
    made = Node(engine(kind), compiled(program).program)
    made.wire(1, 2, 3, 4)
    made.add("my_sid", (Lpm(BLOCK << 96 | UN << 80, 48),), "end_un")
    for sid, port in UA.items():
        made.add("my_sid", (Lpm(BLOCK << 96 | sid << 80, 48),), "end_ua", port)
        made.add("my_sid", (Lpm(BLOCK << 96 | UN << 80 | sid << 64, 64),), "end_un_ua", port)
    for sid, port in NEIGHBOURS.items():
        made.add("ipv6_route", (Lpm(BLOCK << 96 | sid << 80, 48),), "set_next_hop", port)
    return made


def expected(usids: int, hop_limit: int) -> tuple[int, int] | None:
    """The port and the uSIDs that leave; None for a drop."""
    if hop_limit <= 1:
        return None
    first, second = usids >> 80, usids >> 64 & 0xFFFF
    shifts, port = 0, None
    if first == UN:
        shifts = 1
        if second in UA:
            shifts, port = 2, UA[second]
    elif first in UA:
        shifts, port = 1, UA[first]
    left = usids << 16 * shifts & USIDS_MASK
    if shifts and left == 0:
        return None
    port = port or NEIGHBOURS.get(left >> 80)
    return None if port is None else (port, left)


@settings(max_examples=300)  # the first packet compiles the program
@given(st.sampled_from(PROGRAMS), st.sampled_from(ENGINES), containers, st.integers(0, 255), st.integers(1, 4))
def test_a_container_is_shifted_and_sent_as_arithmetic_says(program, kind, usids, hop_limit, in_port) -> None:
    switch = node(program, kind)
    switch.receive(in_port, frame((BLOCK << USIDS | usids).to_bytes(16, "big"), hop_limit=hop_limit, payload=b"inside"))
    sent = [(s.port, s.frame) for s in switch.drain(1000)]
    wanted = expected(usids, hop_limit)
    if wanted is None:
        assert sent == []
        return
    port, left = wanted
    as_left = frame((BLOCK << USIDS | left).to_bytes(16, "big"), hop_limit=hop_limit - 1, payload=b"inside")
    macs = (0x020000000000 + port).to_bytes(6, "big") + (0x02000000AA00 + port).to_bytes(6, "big")
    assert sent == [(port, macs + as_left[len(IN_MACS) :])]


def test_the_model_covers_every_outcome() -> None:
    """So that the properties above cannot pass by dropping everything."""
    seen = {
        expected(UN << 80 | 0x8003 << 64, 64),
        expected(0xE002 << 80 | 9 << 64, 64),
        expected(UN << 80 | 0xE003 << 64 | 9 << 48, 64),
        expected(UN << 80, 64),
    }
    assert seen == {(3, 0x8003 << 80), (2, 9 << 80), (3, 9 << 80), None}
