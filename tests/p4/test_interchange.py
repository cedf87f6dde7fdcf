"""Either compiler's JSON on either switch: the same random frames in, the same frames out and the same counters."""

import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from p4c.entries import ActionCall, Entry, Exact, GroupRef, Lpm
from switch.engine import Engine
from tests.helpers.p4.bmv2 import Bmv2
from tests.helpers.p4.frames import IN_MACS, frame
from tests.helpers.p4.node import DROP_REASONS, DSCP, LAST_HOP, NO_TRIM, RETRANSMIT, ROCE, TRIMMABLE, Node, destination
from tests.helpers.p4.programs import COMPILERS, ENGINES, PROGRAMS, compiled, engine

PORTS = (1, 2, 3, 4)
COUNTERS = ("received", "sent", "trimmed", "ecn_marked", *DROP_REASONS)
FRAMES = 400
RECEIVE_BURST = 10  # what BMv2's receive ring surely holds
TIMEOUT_S = 20


Outcome = tuple[Counter[tuple[int, bytes]], dict[tuple[str, int, int], int]]  # frames by port, counters by cell


def configure(switch: Engine, program: str, compiler: str = "mrclab") -> Node:
    """Entries of every kind whose outcome does not depend on timing: limits are 0 or far away."""
    node = Node(switch, compiled(program, compiler).program)
    node.wire(*PORTS)
    node.add("my_sid", (Lpm(0xFCBBBBBB0001 << 80, 48),), "end_un")
    node.add("my_sid", (Lpm(0xFCBBBBBBE002 << 80, 48),), "end_ua", 2)
    node.add("my_sid", (Lpm(0xFCBBBBBB0001E003 << 64, 64),), "end_un_ua", 3)
    node.add("ipv6_route", (Lpm(0xFCBBBBBB << 96, 32),), "drop_unknown_usid")
    node.add("ipv6_route", (Lpm(0xFCBBBBBB0004 << 80, 48),), "set_next_hop", 4)
    node.add("ipv6_route", (Lpm(0x20010DB9 << 96, 32),), "set_ecmp_group", 1, 0)
    node.add("ipv6_route", (Lpm(0x20010DBA << 96, 32),), "set_ecmp_group", 9, 8)
    profile = "SwitchIngress.route.ecmp_selector"
    for port in PORTS:
        switch.set_member(profile, port, ActionCall("SwitchIngress.route.set_next_hop", (port,)))
    switch.set_group(profile, 1, [(2, 1), (3, 1), (4, 1)])
    switch.insert_entry("SwitchIngress.route.ecmp", Entry((Exact(1),), GroupRef(1)))
    for port in (2, 3):
        node.limit(port, TRIMMABLE, "trim_beyond", 0)
        node.limit(port, NO_TRIM, "drop_beyond", 0)
        node.limit(port, RETRANSMIT, "trim_beyond", 60)
        node.limit(port, ROCE, "drop_beyond", 60)
    node.default("trim_profile", "trim_to", 100, 20, 7)
    if program == "leaf":
        node.add("host_facing", (Exact(3),), "mark_last_hop", DSCP[LAST_HOP])
    return node


def random_frame(dice: random.Random) -> bytes:
    kind = dice.random()
    if kind < 0.05:
        return IN_MACS + dice.choice([b"\x86\xdd", b"\x08\x00"]) + dice.randbytes(dice.randrange(0, 60))
    lists = ["1:4:", "1:e002:4:", "e002:7:", "1:e003:9:", "4:", "1:", "1:5:", "1:0:4:", "e002:", "1:1:4:"]
    to = dice.choice(
        [f"fcbb:bbbb:{dice.choice(lists)}:", destination(dice.choice(PORTS)), "2001:db9::7", "2001:dba::1"]
    )
    body = dice.randbytes(dice.choice([0, 3, 8, 45, 46, 47, 300]))
    return frame(
        to,
        dscp=dice.choice([*DSCP.values(), dice.randrange(64)]),
        ecn=dice.randrange(4),
        flow_label=dice.randrange(1 << 20),
        hop_limit=dice.choice([0, 1, 2, 3, *range(60, 70), 255]),
        next_header=dice.choice([17, 41, 43, 59]),
        payload=body,
    )


def traffic(program: str) -> list[tuple[int, bytes]]:
    dice = random.Random(program)
    return [(dice.choice(PORTS), random_frame(dice)) for _ in range(FRAMES)]


def counters(node: Node) -> dict[tuple[str, int, int], int]:
    cells = ((name, port, c) for name in COUNTERS for port in PORTS for c in range(7))
    return {cell: count for cell in cells if (count := node.counter(*cell))}


def on_engine(kind: str, program: str, compiler: str) -> Outcome:
    node = configure(engine(kind), program, compiler)
    for port, sent in traffic(program):
        node.receive(port, sent)
        node.run(1_000_000)
    return Counter((s.port, s.frame) for s in node.drain()), counters(node)


def received(node: Node) -> int:
    return sum(node.counter("received", port, c) for port in PORTS for c in range(7))


def on_bmv2(switch: Bmv2, program: str) -> Outcome:
    node = configure(switch, program)  # type: ignore[arg-type]
    frames = traffic(program)
    for start in range(0, len(frames), RECEIVE_BURST):
        for port, sent in frames[start : start + RECEIVE_BURST]:
            switch.receive(port, sent, 0)
        until = time.monotonic() + TIMEOUT_S
        while received(node) < min(start + RECEIVE_BURST, len(frames)):
            assert time.monotonic() < until, f"BMv2 took {received(node)} frames only"
    return Counter((sent.port, sent.frame) for sent in switch.advance(0)), counters(node)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_engines_and_both_compilers_agree(name: str, compiler: str) -> None:
    expected = on_engine("reference", name, "mrclab")
    assert sum(expected[0].values()) > FRAMES // 4
    for kind in ENGINES:
        assert on_engine(kind, name, compiler) == expected


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=COMPILERS)
def bmv2(request: pytest.FixtureRequest, program: str) -> Iterator[Bmv2]:
    artefacts = compiled(program, request.param)
    with Bmv2(artefacts.json, artefacts.p4info) as switch:
        yield switch


@pytest.mark.root
@pytest.mark.bmv2
@pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH")
@pytest.mark.parametrize("kind", ENGINES)
def test_bmv2_agrees_with_our_switch(bmv2: Bmv2, program: str, kind: str) -> None:
    theirs, their_counters = on_bmv2(bmv2, program)
    ours, our_counters = on_engine(kind, program, "mrclab")
    assert theirs == ours
    assert their_counters == our_counters
