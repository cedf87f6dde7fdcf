"""Entries and frames with which random lives of the fabric's programs begin."""

from pathlib import Path

from p4c.entries import ActionCall, Entry, Exact, GroupRef, Lpm
from switch.engine import MeterConfig
from tests.helpers.engines.leaf_traffic import ipv6_frame, usid_address
from tests.helpers.engines.scenario import Scenario

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


def populate_entries(life: Scenario) -> None:
    """What a controller installs, with thresholds of a few packets so that everything happens."""
    draw, pair, program = life.rng.choice, life.pair, life.program

    def insert(table_end: str, matches: tuple[Exact | Lpm, ...], action_end: str, *args: int) -> None:
        table = next(t for t in program.tables if t.name.endswith(table_end))
        action = next(a for a in table.actions if a.name.endswith(action_end))
        assert pair.insert(table.name, Entry(matches, ActionCall(action.name, args))) is not None

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
        pair("set_meter", meter.name, port, MeterConfig(100, draw((1, 3)), 200, draw((1, 5))))
    insert("ipv6_route", (Lpm(usid_address(), 32),), "drop_unknown_usid")
    insert("ipv6_route", (Lpm(0xFD00 << 112, 16),), "set_ecmp_group", 4, 8)
    ecmp = next(t for t in program.tables if t.name.endswith("ecmp"))
    assert ecmp.profile
    hop = next(a.name for a in ecmp.actions if a.name.endswith("set_next_hop"))
    for member in (1, 2, 3):
        pair("set_member", ecmp.profile.name, member, ActionCall(hop, (member,)))
    pair("set_group", ecmp.profile.name, 4, [(1, 1), (2, 3), (3, 1)])
    assert pair.insert(ecmp.name, Entry((Exact(4),), GroupRef(4))) is not None
