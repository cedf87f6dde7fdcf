"""Frames built by the plain codecs, and what the Wireshark dissector makes of frames."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cli.dissector import tshark as loading
from endpoint.nic import frame, icrc, wire
from tests.helpers import pcap

SRC, DST = bytes.fromhex("fd" + 14 * "00" + "01"), bytes.fromhex("fd" + 14 * "00" + "02")
OUTER_SRC = bytes.fromhex("fd000001" + 22 * "0" + "01")  # fd00:1::1
USIDS = bytes.fromhex("fcbbbbbb1000200310013002") + bytes(4)


def build(bth: wire.Bth, extension: bytes, *, ev: int = 0x00010007, encapsulated: bool = True) -> bytes:
    front = frame.headers(
        ether_dst=bytes.fromhex("020000000002"),
        ether_src=bytes.fromhex("020000000001"),
        outer=(OUTER_SRC, USIDS) if encapsulated else None,
        src=SRC,
        dst=DST,
        traffic_class=0x2A,
        ev=ev,
        udp_dport=4791,
        length=wire.BTH_BYTES + len(extension) + icrc.SIZE,
    )
    return frame.seal(front, bth.pack() + extension)


def tshark(tmp_path: Path, frames: Sequence[bytes], *options: str) -> str:
    capture = tmp_path / "frames.pcap"
    capture.write_bytes(pcap.HEADER + b"".join(pcap.record(number, 0, data) for number, data in enumerate(frames)))
    with loading() as words:
        done = subprocess.run(
            [*words, "-r", str(capture), *options], capture_output=True, text=True, check=True, timeout=60
        )
    assert not re.search("Lua|permission", done.stderr), done.stderr
    return done.stdout


def dissected(tmp_path: Path, *frames: bytes, options: Sequence[str] = ()) -> list[dict[str, list[str]]]:
    """Per frame, every mrc field with its values in order."""
    found = []
    for packet in json.loads(tshark(tmp_path, frames, "-T", "json", "--no-duplicate-keys", *options)):
        values: dict[str, list[str]] = {}
        collect(packet["_source"]["layers"].get("mrc", {}), values)
        found.append(values)
    return found


def collect(node: Any, values: dict[str, list[str]]) -> None:
    if isinstance(node, dict):
        for name, value in node.items():
            if isinstance(value, dict):
                collect(value, values)
            elif isinstance(value, list):
                for one in value:
                    collect({name: one}, values)
            else:
                values.setdefault(name, []).append(str(value))
    elif isinstance(node, list):
        for one in node:
            collect(one, values)


def number(values: dict[str, list[str]], name: str) -> int:
    return int(values[name][0], 0)
