"""Headers have one table: what is made of it is up to date, and opcodes and places are written nowhere else."""

import re
from pathlib import Path

import pytest

from endpoint.nic import frame, packet
from tests.helpers import headers_page

ROOT = Path(__file__).parents[3]
C = (ROOT / "endpoint/nic/native/codec_direct.c").read_text()
OFFSETS = {
    "OUTER": frame.ETHERNET,
    "INNER": packet.INNER_OFFSET,
    "LENGTH": packet.LENGTH_OFFSET,
    "OPCODE": packet.BTH_OFFSET,
}


@pytest.mark.parametrize("name", OFFSETS)
def test_c_and_python_say_where_the_headers_in_front_of_the_bth_are(name: str) -> None:
    assert re.findall(rf"\b{name} = (\d+)\b", C) == [str(OFFSETS[name])]


def test_what_is_made_of_the_table_of_headers_is_up_to_date() -> None:
    assert headers_page.PAGE.read_text() == headers_page.page(), "python -m tests.helpers.headers_page writes it"
    assert headers_page.OFFSETS.read_text() == headers_page.offsets(), "python -m tests.helpers.headers_page writes it"


@pytest.mark.parametrize("folder", ["endpoint/nic", "endpoint/mrc"])
def test_opcodes_are_numbers_in_one_file_only(folder: str) -> None:
    """A literal opcode elsewhere would not change with `wire.py`."""
    for path in [*sorted((ROOT / folder).rglob("*.py")), *sorted((ROOT / folder).rglob("*.c"))]:
        if path.name != "wire.py":
            text = path.read_text().replace("data[12] != 0x86 or data[13] != 0xDD", "")  # the ethertype
            assert re.findall(r"\b(?:0xC[6-9AB]|0xD[189CDE])\b", text) == [], path
