"""leaf.p4 for the switch benchmarks: compiled, the entries that forward one uSID list, and the frame that uses them."""

from __future__ import annotations

import struct
from ipaddress import IPv6Address
from pathlib import Path

from p4c import compile_program
from p4c.entries import ActionCall, Entry, Exact, Lpm
from switch import EngineControl

SOURCE = Path(__file__).parents[3] / "p4" / "leaf.p4"
FRAME_HEADER_BYTES = 54
DSCP = 10
TRAFFIC_CLASS = 1
NEXT_HOP = 7
SRC_MAC, DST_MAC = 0x020000000001, 0x020000000002
OWN_USID, NEXT_USID, NIC_USID = 0x1000, 0x2000, 0x3001


def address(*usids: int) -> int:
    return int(IPv6Address("fcbb:bbbb::")) | sum(usid << (80 - 16 * place) for place, usid in enumerate(usids))


# What the controller installs for one flow: class, own uSID, route, next hop, admission. Limits that are never reached.
ROWS: tuple[tuple[str, tuple[Exact | Lpm, ...], str, tuple[int, ...]], ...] = (
    ("SwitchIngress.classify.dscp_to_class", (Exact(DSCP),), "SwitchIngress.classify.set_class", (TRAFFIC_CLASS, 0)),
    ("SwitchIngress.segments.my_sid", (Lpm(address(OWN_USID), 48),), "SwitchIngress.segments.end_un", ()),
    ("SwitchIngress.route.ipv6_route", (Lpm(address(NEXT_USID), 48),), "SwitchIngress.route.set_next_hop", (NEXT_HOP,)),
    ("SwitchIngress.route.next_hop", (Exact(NEXT_HOP),), "SwitchIngress.route.set_adjacency", (2, SRC_MAC, DST_MAC)),
    (
        "SwitchIngress.admission.queue_limit",
        (Exact(2), Exact(TRAFFIC_CLASS)),
        "SwitchIngress.admission.trim_beyond",
        (60_000, 1_000_000),
    ),
    (
        "SwitchEgress.ecn.ecn_profile",
        (Exact(2), Exact(TRAFFIC_CLASS)),
        "SwitchEgress.ecn.mark_between",
        (50_000, 60_000),
    ),
)


def compile_leaf(directory: Path) -> Path:
    """BMv2 JSON of leaf.p4, by our compiler."""
    target = directory / "leaf.json"
    target.write_text(compile_program(SOURCE).json_text)
    return target


def install(engine: EngineControl) -> None:
    for table, matches, action, args in ROWS:
        engine.insert_entry(table, Entry(matches, ActionCall(action, args)))


def simple_switch_entries() -> list[str]:
    """The same entries for simple_switch_CLI."""
    lines = []
    for table, matches, action, args in ROWS:
        keys = [f"0x{m.value:x}/{m.prefix_len}" if isinstance(m, Lpm) else str(m.value) for m in matches]
        lines.append(f"table_add {table} {action} {' '.join(keys)} => {' '.join(map(str, args))}")
    return lines


def frame(size: int) -> bytes:
    """A data packet of `size` bytes whose active uSID is ours."""
    header = struct.pack(">IHBB", 6 << 28 | DSCP << 22 | 2 << 20, size - FRAME_HEADER_BYTES, 59, 64)
    source = int(IPv6Address("fd00::1")).to_bytes(16, "big")
    destination = address(OWN_USID, NEXT_USID, NIC_USID).to_bytes(16, "big")
    payload = bytes(i & 0xFF for i in range(size - FRAME_HEADER_BYTES))
    return b"\x02" * 6 + b"\x04" * 6 + b"\x86\xdd" + header + source + destination + payload
