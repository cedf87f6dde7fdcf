"""The codec in C and the transport in Python name the same opcodes and offsets: what one says, the other must say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from endpoint.nic import frame, packet, wire

ROOT = Path(__file__).parents[3]
C = (ROOT / "endpoint/nic/native/codec_direct.c").read_text()
OFFSETS = {
    "ETHERTYPE": packet.RECEIVE_OFFSET,
    "OUTER": frame.ETHERNET,
    "INNER": packet.INNER_OFFSET,
    "LENGTH": packet.LENGTH_OFFSET,
    "SOURCE_PORT": packet.UDP_OFFSET,
    "OPCODE": packet.BTH_OFFSET,
    "BEHIND_BTH": packet.BEHIND_BTH,
    "USUAL_MIN": packet.RECEIVE_MIN + 4,  # the ICRC
}
OPCODES = {
    "ACKNOWLEDGE": wire.OP_ACKNOWLEDGE,
    "REQUEST": wire.OP_ENDPOINT_REQUEST,
    "RESPONSE": wire.OP_ENDPOINT_RESPONSE,
    "SACK": wire.OP_SACK,
}


def named_in_c(name: str) -> int:
    """The number that an enum of the C file gives this name."""
    found = re.findall(rf"\b{name} = (0x[0-9A-F]+|\d+)\b", C)
    assert len(found) == 1, f"{name} is written {len(found)} times"
    return int(found[0], 0)


@pytest.mark.parametrize("name", [*OFFSETS, *OPCODES])
def test_c_and_python_say_the_same_number(name: str) -> None:
    assert named_in_c(name) == {**OFFSETS, **OPCODES}[name]


def test_c_knows_no_opcode_that_python_does_not() -> None:
    numbers = {int(number, 0) for number in re.findall(r"\b0x[CD][0-9A-F]\b", C)}
    assert numbers == numbers & {int(opcode) for opcode in wire.Opcode}


@pytest.mark.parametrize("folder", ["endpoint/nic", "endpoint/mrc"])
def test_opcodes_are_numbers_in_one_file_only(folder: str) -> None:
    """A literal opcode elsewhere would not change with `wire.py`."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        if path.name != "wire.py":
            text = path.read_text().replace("data[12] != 0x86 or data[13] != 0xDD", "")  # the ethertype
            assert re.findall(r"\b(?:0xC[6-9AB]|0xD[189CDE])\b", text) == [], path
