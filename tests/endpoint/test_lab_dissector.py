"""The dissector of two SRv6 labs' packets, on frames laid out by hand after their published sources."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.dissector import SCRIPT
from cli.dissector import tshark as loading
from tests.helpers import pcap
from tests.helpers.dissector import DST, SRC, USIDS, collect

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark on PATH")


def udp(port: int, content: bytes) -> bytes:
    """A UDP datagram behind an outer header and a segment routing header of one segment, as Linux encapsulates."""
    datagram = struct.pack("!HHHH", 40000, port, 8 + len(content), 0) + content
    inner = struct.pack("!IHBB", 6 << 28, len(datagram), 17, 64) + SRC + DST + datagram
    routing = struct.pack("!BBBBBBH", 41, 2, 4, 0, 0, 0, 0) + USIDS
    outer = struct.pack("!IHBB", 6 << 28, len(routing) + len(inner), 43, 64) + SRC + USIDS
    return bytes(12) + b"\x86\xdd" + outer + routing + inner


def shown(tmp_path: Path, *frames: bytes) -> list[dict[str, list[str]]]:
    capture = tmp_path / "labs.pcap"
    capture.write_bytes(pcap.HEADER + b"".join(pcap.record(number, 0, data) for number, data in enumerate(frames)))
    with loading(SCRIPT.with_name("labs.lua")) as words:
        argv = [*words, "-r", str(capture), "-T", "json", "--no-duplicate-keys"]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert "Lua" not in done.stderr
    found = []
    for packet in json.loads(done.stdout):
        values: dict[str, list[str]] = {}
        layers = packet["_source"]["layers"]
        collect(layers.get("srv6lab", {}), values)
        assert ("srv6lab" in layers) == bool(values)
        found.append(values)
    return found


def numbers(values: dict[str, list[str]], **expected: Any) -> bool:
    return all([int(one, 0) for one in values[f"srv6lab.{name}"]] == value for name, value in expected.items())


def test_data_probes_and_reports_of_srv6_ai_fabric_are_named(tmp_path: Path) -> None:
    data = struct.pack("!QB", 7, 3) + bytes(32)
    probe = struct.pack("!BBHBBQQHHH", 0xA5, 2, 0x123, 2, 0, 10**12, 0, 1, 15, 9997)
    reply = struct.pack("!BBHBBQQHHH", 0xA6, 2, 0x123, 2, 0, 10**12, 55, 1, 15, 9997)
    planes = b"".join(struct.pack("!BBHIII", plane, 0, 0, 90 + plane, 100, 4) for plane in range(2))
    report = struct.pack("!BBHHH", 0xA7, 1, 9, 2, 0) + planes
    first, second, third, fourth = shown(
        tmp_path, udp(9999, data), udp(9998, probe), udp(9998, reply), udp(9997, report)
    )
    assert numbers(first, sequence=[7], plane=[3])
    assert numbers(second, kind=[0xA5], version=[2], request=[0x123], plane=[2], sent_ns=[10**12], service_ns=[0])
    assert numbers(third, kind=[0xA6], service_ns=[55])
    assert numbers(fourth, kind=[0xA7], window=[9], plane=[0, 1], seen=[90, 91], expected=[100, 100], max_gap=[4, 4])


def test_packets_of_mrc_srv6_fabric_are_named_by_their_first_word(tmp_path: Path) -> None:
    words = [(5202, "MRC1"), (5210, "NAK1"), (5210, "ACK1")]
    found = shown(tmp_path, *(udp(port, word.encode() + bytes(20)) for port, word in words))
    assert [values["srv6lab.word"] for values in found] == [[word] for _, word in words]


def test_other_packets_on_these_ports_are_left_alone(tmp_path: Path) -> None:
    cut = struct.pack("!BBHHH", 0xA7, 1, 9, 200, 0)
    found = shown(tmp_path, udp(9999, b"abc"), udp(9998, bytes(28)), udp(9997, cut), udp(5202, b"GET "), udp(5210, b""))
    assert [values for values in found if values] == []
