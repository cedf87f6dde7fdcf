"""The Linux kernel's own uSID code and our switch, side by side: the same frames in, the same frames out.

The kernel runs `End` (our uN) and `End.X` (our uA) with the NEXT-C-SID flavor; a uN followed by a uA is two of its SIDs
and one /64 of ours. Lists that end at the node are left out: Linux then processes the packet as its own.
"""

import ipaddress
import random
import time
from collections.abc import Iterator

import pytest

from p4c.entries import Exact, Lpm
from tests.helpers.p4.frames import frame
from tests.helpers.p4.node import Node
from tests.helpers.p4.programs import ENGINES, PROGRAMS, compiled, engine
from tests.helpers.p4.wires import Namespace, Wires

PORTS = (1, 2, 3)
BLOCK = 0xFCBBBBBB
UN = 0x0001
NEIGHBOURS = {0x0012: 1, 0x0022: 2, 0xD333: 3}
UA = {0xE001: 1, 0xE002: 2, 0xE003: 3}
FLAVOR = ["flavors", "next-csid", "lblen", "32", "nflen", "16"]
PACKETS = 600
TIMEOUT_S = 10


def usid(*sids: int) -> int:
    value = BLOCK
    for sid in sids:
        value = value << 16 | sid
    return value << 16 * (6 - len(sids))


def prefix(*sids: int) -> str:
    return f"{ipaddress.IPv6Address(usid(*sids))}/{32 + 16 * len(sids)}"


def own_mac(port: int) -> str:
    return f"02:00:00:00:aa:{port:02x}"


def neighbour_mac(port: int) -> str:
    return f"02:00:00:00:00:{port:02x}"


def number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


@pytest.fixture(scope="module")
def linux() -> Iterator[Wires]:
    """A kernel with the SIDs and the static table of node 1, three wires to it."""
    with Namespace() as namespace:
        wires = Wires(namespace, PORTS)
        try:
            namespace.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
            for port in PORTS:
                name = f"s{port}"
                namespace.run("ip", "link", "set", name, "address", own_mac(port))
                namespace.run(
                    "sysctl", "-qw", f"net.ipv6.conf.{name}.seg6_enabled=1", f"net.ipv6.conf.{name}.accept_dad=0"
                )
                namespace.run("sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=0")
                namespace.run("ip", "-6", "address", "add", f"fd01:{port}::1/64", "dev", name, "nodad")
                namespace.run(
                    *("ip", "-6", "neighbour", "add", f"fd01:{port}::2", "lladdr", neighbour_mac(port), "dev", name)
                )
            for sid, port in NEIGHBOURS.items():
                namespace.run("ip", "-6", "route", "add", prefix(sid), "via", f"fd01:{port}::2", "dev", f"s{port}")
            local = ("encap", "seg6local", "action")
            try:
                namespace.run("ip", "-6", "route", "add", prefix(UN), *local, "End", *FLAVOR, "dev", "s1")
                for sid, port in UA.items():
                    next_hop = ("nh6", f"fd01:{port}::2")
                    namespace.run(
                        "ip", "-6", "route", "add", prefix(sid), *local, "End.X", *next_hop, *FLAVOR, "dev", "s1"
                    )
            except AssertionError as error:
                pytest.skip(f"this kernel or its ip command has no NEXT-C-SID: {error}")
            # Linux 6.1 takes the flavor for End.X and forgets it; then the kernel has no uA to compare with.
            kept = namespace.run("ip", "-6", "route", "show", prefix(next(iter(UA))))
            if "next-csid" not in kept:
                pytest.skip("this kernel has NEXT-C-SID for End, not for End.X (newer than 6.1 is needed)")
            yield wires
        finally:
            wires.close()


def our_switch(program: str, kind: str) -> Node:
    node = Node(engine(kind), compiled(program).program)
    node.wire(*PORTS)
    node.add("my_sid", (Lpm(usid(UN), 48),), "end_un")
    for port in PORTS:
        node.add(
            "next_hop", (Exact(100 + port),), "set_adjacency", port, number(own_mac(port)), number(neighbour_mac(port))
        )
    for sid, port in UA.items():
        node.add("my_sid", (Lpm(usid(sid), 48),), "end_ua", 100 + port)
        node.add("my_sid", (Lpm(usid(UN, sid), 64),), "end_un_ua", 100 + port)
    for sid, port in NEIGHBOURS.items():
        node.add("ipv6_route", (Lpm(usid(sid), 48),), "set_next_hop", 100 + port)
    return node


def random_frame(dice: random.Random, identity: int) -> bytes:
    """A container that does not end at the node, and any traffic class, flow label, hop limit and payload."""
    ours = dice.choice([(), (UN,), (UN,), (dice.choice(list(UA)),), (UN, dice.choice(list(UA)))])
    known = dice.random() < 0.9
    onward = dice.choice(list(NEIGHBOURS)) if known else dice.randrange(1, 0xDFFF)
    rest = [dice.choice([0, 0xFFFF, dice.randrange(0x10000)]) for _ in range(6 - len(ours) - 1)]
    routing_header = bytes.fromhex("3b02040100000000") + usid(7, 8).to_bytes(16, "big")
    next_header, body = dice.choice(
        [(59, b""), (41, dice.randbytes(60)), (17, dice.randbytes(30)), (43, routing_header)]
    )
    return frame(
        usid(*ours, onward, *rest).to_bytes(16, "big"),
        dscp=dice.randrange(64),
        ecn=dice.randrange(4),
        flow_label=dice.randrange(1 << 20),
        hop_limit=dice.choice([0, 1, 2, 3, 64, 255, dice.randrange(256)]),
        next_header=next_header,
        payload=body + identity.to_bytes(4, "big"),
    )


def through_linux(wires: Wires, offered: list[tuple[int, bytes]], expected: int) -> dict[int, tuple[int, bytes]]:
    """What leaves, by the identity at the end of each frame."""
    wires.drain()

    def ours(frames: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        return [(port, f) for port, f in frames if f[12:14] == b"\x86\xdd" and f[22:38] == offered[0][1][22:38]]

    found: list[tuple[int, bytes]] = []
    for start in range(0, len(offered), 50):  # in portions that fit every queue on the way
        for port, sent in offered[start : start + 50]:
            own = bytes.fromhex(own_mac(port).replace(":", ""))
            wires.send(port, own + sent[6:])
        found += wires.drain()
    until = time.monotonic() + TIMEOUT_S
    while len(ours(found)) < expected and time.monotonic() < until:
        found += wires.collect(bool, 0.1)
    found += wires.collect(lambda _: False, 0.2)
    return {int.from_bytes(f[-4:], "big"): (port, f) for port, f in ours(found)}


@pytest.mark.root
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_linux_and_our_switch_send_the_same_bytes(linux: Wires, program: str, kind: str) -> None:
    dice = random.Random(f"{program} {kind}")
    offered = [(dice.choice(PORTS), random_frame(dice, identity)) for identity in range(PACKETS)]
    node = our_switch(program, kind)
    for port, sent in offered:
        node.receive(port, sent)
    ours = {int.from_bytes(s.frame[-4:], "big"): (s.port, s.frame) for s in node.drain()}
    theirs = through_linux(linux, offered, len(ours))
    assert len(ours) > PACKETS // 2
    differences = [
        f"{offered[i][1].hex()} in {offered[i][0]}\n  linux {show(theirs.get(i))}\n  ours  {show(ours.get(i))}"
        for i in range(PACKETS)
        if ours.get(i) != theirs.get(i)
    ]
    assert not differences, f"{len(differences)} differ\n" + "\n".join(differences[:5])


def show(found: tuple[int, bytes] | None) -> str:
    return "nothing" if found is None else f"out {found[0]} {found[1].hex()}"
