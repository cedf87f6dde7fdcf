"""What random lives begin with: entries and frames of the fabric's programs, and frames of some others."""

from collections.abc import Callable
from pathlib import Path

from p4c.entries import ActionCall, Entry, Exact, GroupRef, Lpm
from p4c.model import Program
from switch.engine import Engine, MeterConfig, PortConfig
from tests.helpers.engines.differential import PORTS, Life
from tests.helpers.engines.leaf_traffic import ipv6_frame, usid_address

PROGRAMS = Path(__file__).parents[2] / "switch/native/programs"
OWN, OWN_ADJACENCY = 0x1000, 0xE001
DSCPS = (0, 10, 12, 20, 22, 46)


def fabric_frames() -> list[bytes]:
    """uSID lists that are ours, others', ended, or plain addresses, in every class."""
    lists = [
        (OWN, 0x2001), (OWN, 0x2002, 0x3000), (OWN, OWN_ADJACENCY, 5), (0x2003, 1), (OWN,), (0x7777,),
        (OWN_ADJACENCY, 9),
    ]  # fmt: skip
    frames = [
        ipv6_frame(usid_address(*usids), bytes(size), dscp=dscp)
        for usids in lists
        for dscp, size in ((0, 0), (10, 300), (12, 1000), (46, 20), (20, 60))
    ]
    capable = [_with_ecn(frame) for frame in frames]
    plain = [ipv6_frame(0xFD00 << 112 | 5, bytes([s]) * 64, dscp=26, next_header=17) for s in range(4)]
    return frames + capable + plain


def _with_ecn(frame: bytes) -> bytes:
    data = bytearray(frame)
    data[15] |= 0x20
    return bytes(data)


def populate_fabric(life: Life) -> None:
    """Ports, and what a controller installs."""
    draw = life.random.choice
    for port in PORTS:
        config = PortConfig(rate_bps=draw((0, 8_000_000, 20_000_000)), delay_ns=draw((0, 5000)))
        life.pair.both("port", lambda e, p=port, c=config: e.configure_port(p, c, 0))
    populate_entries(life)


def populate_entries(life: Life) -> None:
    """What a controller installs, with thresholds of a few packets so that everything happens."""
    draw, both, program = life.random.choice, life.pair.both, life.program

    def insert(table_end: str, matches: tuple[Exact | Lpm, ...], action_end: str, *args: int) -> None:
        table = next(t for t in program.tables if t.name.endswith(table_end))
        action = next(a for a in table.actions if a.name.endswith(action_end))
        both(table_end, lambda e: e.insert_entry(table.name, Entry(matches, ActionCall(action.name, args))) is not None)

    for dscp in DSCPS:
        traffic_class = DSCPS.index(dscp)
        insert("dscp_to_class", (Exact(dscp),), "set_class", traffic_class, 7 if dscp in (20, 22, 46) else 0)
    insert("my_sid", (Lpm(usid_address(OWN), 48),), "end_un")
    insert("my_sid", (Lpm(usid_address(OWN_ADJACENCY), 48),), "end_ua", 2)
    insert("my_sid", (Lpm(usid_address(OWN, OWN_ADJACENCY), 64),), "end_un_ua", 3)
    for port in (1, 2, 3):
        insert("ipv6_route", (Lpm(usid_address(0x2000 + port), 48),), "set_next_hop", port)
        insert("next_hop", (Exact(port),), "set_adjacency", port, 0x0200_0000_0000 + port, 0x0400_0000_0000 + port)
        for traffic_class in range(3):
            limit = draw(("trim_beyond", "drop_beyond", "unlimited"))
            args = () if limit == "unlimited" else (draw((0, 1, 3)), draw((0, 100, 1_000_000)))
            insert("queue_limit", (Exact(port), Exact(traffic_class)), limit, *args)
            insert("ecn_profile", (Exact(port), Exact(traffic_class)), "mark_between", draw((0, 1)), draw((1, 2, 4)))
        meter = next(m for m in program.meters if m.name.endswith("trimmed_meter"))
        config_of_meter = MeterConfig(100, draw((1, 3)), 200, draw((1, 5)))
        both("meter", lambda e, p=port, m=meter, c=config_of_meter: e.set_meter(m.name, p, c))
    insert("ipv6_route", (Lpm(usid_address(), 32),), "drop_unknown_usid")
    insert("ipv6_route", (Lpm(0xFD00 << 112, 16),), "set_ecmp_group", 4)
    _populate_ecmp(program, both)


def _populate_ecmp(program: Program, both: Callable[[str, Callable[[Engine], object]], object]) -> None:
    ecmp = next(t for t in program.tables if t.name.endswith("ecmp"))
    assert ecmp.profile
    profile = ecmp.profile.name
    hop = next(a.name for a in ecmp.actions if a.name.endswith("set_next_hop"))
    for member in (1, 2, 3):
        both("member", lambda e, m=member: e.set_member(profile, m, ActionCall(hop, (m,))))
    both("group", lambda e: e.set_group(profile, 4, [(1, 1), (2, 3), (3, 1)]))
    both("ecmp", lambda e: e.insert_entry(ecmp.name, Entry((Exact(4),), GroupRef(4))))


def order(verb: int, argument: int, left: int, size: int) -> bytes:
    return bytes([verb, argument, left, 0xAB, 0xCD]) + bytes(i & 0xFF for i in range(size))


def numbers(items: int, option_bytes: int) -> bytes:
    stack = bytes([value << 1 & 0xFE for value in range(items - 1)]) + bytes([0x55])
    fixed = bytes(range(7, 7 + 2 + 4 + 16 + 1 + 2 + 6))
    return fixed + stack + bytes([0xA0 | option_bytes]) + bytes(range(option_bytes)) + bytes(range(40))


FRAMES: dict[str, list[bytes]] = {
    "copies": [order(1 << bit, 5, 3, size) for bit in range(8) for size in (0, 20, 100)]
    + [order(verb, 0x66, 4, 60) for verb in (0x03, 0x17, 0x28, 0x35, 0x3C, 0x71, 0xFF)],
    "matching": [
        bytes([a, 0, b, 0, 0, 0, a, *bytes(15), b, a << 4 | b, 0]) + bytes(30) for a in range(4) for b in range(4)
    ],
    "arithmetic": [numbers(items, length) for items in range(1, 6) for length in (0, 1, 8, 9)],
}
