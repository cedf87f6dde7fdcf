"""Entries and frames for leaf.p4 in the native engine's tests: one uSID of ours, one route, one next hop."""

import struct
from ipaddress import IPv6Address

from p4c.entries import ActionCall, Entry, Exact, Lpm, Match
from p4c.model import Program
from switch.engine import EngineControl

BLOCK = "fcbb:bbbb"
OWN_USID = 0x1000


def usid_address(*usids: int) -> int:
    value = int(IPv6Address(f"{BLOCK}::"))
    for place, usid in enumerate(usids):
        value |= usid << (80 - 16 * place)
    return value


def ipv6_frame(
    destination: int, payload: bytes = b"", *, dscp: int = 0, hop_limit: int = 64, next_header: int = 59
) -> bytes:
    word = 6 << 28 | dscp << 22
    header = struct.pack(">IHBB", word, len(payload), next_header, hop_limit)
    source = int(IPv6Address("fd00::1")).to_bytes(16, "big")
    return b"\x02" * 6 + b"\x04" * 6 + b"\x86\xdd" + header + source + destination.to_bytes(16, "big") + payload


def table_name(engine: EngineControl, suffix: str) -> str:
    program: Program = engine._loaded.program  # type: ignore[attr-defined]
    return next(table.name for table in program.tables if table.name.endswith(suffix))


def action_name(engine: EngineControl, table: str, suffix: str) -> str:
    program: Program = engine._loaded.program  # type: ignore[attr-defined]
    return next(a.name for t in program.tables if t.name == table for a in t.actions if a.name.endswith(suffix))


def install_own_usid(engine: EngineControl) -> None:
    """Our uSID is 0x1000."""
    _insert(engine, "my_sid", Lpm(usid_address(OWN_USID), 48), "end_un", ())


def install_route(engine: EngineControl, *, out_port: int = 2, next_usid: int = 0x2000) -> None:
    """`next_usid` goes out of `out_port`."""
    _insert(engine, "ipv6_route", Lpm(usid_address(next_usid), 48), "set_next_hop", (out_port,))
    _insert(engine, "next_hop", Exact(out_port), "set_adjacency", (out_port, 0x020000000001, 0x020000000002))


def _insert(engine: EngineControl, table: str, match: Match, action: str, args: tuple[int, ...]) -> None:
    name = table_name(engine, table)
    engine.insert_entry(name, Entry((match,), ActionCall(action_name(engine, name, action), args)))
