"""Headers survive a round trip, sit at the documented bytes, and the ICRC covers what it must."""

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from endpoint.nic import frame, icrc, packet, wire
from endpoint.nic.headers import ClientEeth
from tests.helpers import headers_page

U1, U2, U4, U7, U8 = (st.integers(0, 2**bits - 1) for bits in (1, 2, 4, 7, 8))
U15, U16, U24, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (15, 16, 24, 32, 64))
BOOL = st.booleans()
S16 = st.integers(-(2**15), 2**15 - 1)

HEADERS = [
    st.builds(wire.Bth, U8, U24, U24, U8, U2, BOOL, BOOL, U16, U8),
    st.builds(wire.Meth, U16, U16),
    st.builds(wire.Tseth, U16, U1, U4),
    st.builds(wire.Reth, U64, U32, U32),
    st.builds(wire.Aeth, U8, U24),
    st.builds(wire.Seth, U24, S16, U64, U32, U2, BOOL, S16, U4, U4, U8, U16, U16, U4),
    st.builds(wire.CcState, U16, U15, BOOL, U7, U24),
    st.builds(wire.Neth, U8, U24, U32, U16, U8, U16, U16, U4, U4, U4),
    st.builds(wire.Peth, U16, U16, U1, U4, U8, U16, U16),
    st.builds(wire.Erth, U2, U32, U16, U1, U4, U8),
    st.builds(wire.Eeth, U2, U32, U16, U1, U4, U8),
]


@given(st.one_of(HEADERS), st.integers(0, 7))
def test_every_header_survives_packing_at_any_offset(header: Any, offset: int) -> None:
    packed = header.pack()
    assert type(header).unpack(b"\0" * offset + packed, offset) == header


BY_HAND: dict[str, Any] = {
    "c8a0ffff40123456b0abcdef": wire.Bth(
        wire.Opcode.WRITE_LAST, 0x123456, 0xABCDEF, 0xB0, pad=2, solicited=True, variant=0x40
    ),
    "00070003c0010203": wire.CcState(7, 3, True, 64, 0x010203),
    "01020304": wire.Meth(0x0102, 0x0304),
    "0102800f": wire.Tseth(0x0102, 1, 15),
    "01020304050607080909090a0000000b": wire.Reth(0x0102030405060708, 0x0909090A, 11),
    "1f010203": wire.Aeth(0x1F, 0x010203),
    "8042fffedeadbeef06070809000a0b0c1507ffff0102030405060708": wire.Seth(
        0x0A0B0C, -1, 0x0102030405060708, 0xDEADBEEF, 2, True, -2, 1, 5, 7, 0x0607, 0x0809
    ),
    "a00002550102030406070809000a0b0c25001122": wire.Neth(2, 0x0A0B0C, 0x01020304, 0x1122, 0x55, 0x0607, 0x0809, 2, 5),
    "0000005501020000060708091122800f": wire.Peth(0x0102, 0x1122, 1, 15, 0x55, 0x0607, 0x0809),
    "0001005501020304000000001122800f": wire.Erth(1, 0x01020304, 0x1122, 1, 15, 0x55),
    "0004005501020304" + "00" * 20 + "1122800f00000000": wire.Eeth(1, 0x01020304, 0x1122, 1, 15, 0x55),
    "0010005501020304" + "00" * 20 + "1122800f00000000": ClientEeth(1, 0x01020304, 0x1122, 1, 15, 0x55),
}
"""Headers with a value in every field, and their bytes by the specification's figures."""


@pytest.mark.parametrize("text", BY_HAND)
def test_every_field_sits_at_its_bytes(text: str) -> None:
    header: Any = BY_HAND[text]
    assert header.pack().hex() == text
    assert type(header).unpack(bytes.fromhex(text)) == header


@given(U32)
def test_an_ev_survives_striping(value: int) -> None:
    source_port, flow_label = frame.stripe(value)
    assert 0 <= source_port < 2**16
    assert 0 <= flow_label < 2**16
    assert frame.unstripe(source_port, flow_label) == value
    assert frame.unstripe(source_port, flow_label | 0xF0000) == value


def _frame(outer: bool = True, payload: bytes = b"payload!") -> bytes:
    transport = wire.Bth(wire.Opcode.WRITE_ONLY, 7, 9).pack() + wire.Meth(0, 1).pack()
    transport += wire.Reth(0x1000, 5, len(payload)).pack() + payload
    front = frame.headers(
        ether_dst=b"\x02" * 6,
        ether_src=b"\x04" * 6,
        outer=(b"\xfd" + b"\1" * 15, b"\xfc\xbb" + b"\2" * 14) if outer else None,
        src=b"\xfd" + b"\3" * 15,
        dst=b"\xfd" + b"\4" * 15,
        traffic_class=10 << 2 | 2,
        ev=0xABCD1234,
        udp_dport=4791,
        length=len(transport) + 4,
    )
    return frame.seal(front, transport)


@pytest.mark.parametrize("outer", [True, False])
def test_a_frame_comes_apart_into_what_it_was_made_of(outer: bool) -> None:
    data = _frame(outer)
    parsed = frame.parse(data)
    assert (parsed.ev, parsed.udp_dport, parsed.dscp, parsed.marked) == (0xABCD1234, 4791, 10, False)
    assert parsed.end == len(data)
    assert (parsed.outer is not None) is outer
    assert wire.Bth.unpack(data, parsed.bth).psn == 9
    assert icrc.verify(data[parsed.offset :])
    assert len(data) == 14 + 40 * (1 + outer) + 8 + 12 + 4 + 16 + 8 + 4


def test_the_icrc_ignores_exactly_what_may_change_on_the_way() -> None:
    data = _frame()
    inner = 54
    mutable_bits = {(inner, bit) for bit in range(4)}  # traffic class, high half
    mutable_bits |= {(inner + i, bit) for i in (1, 2, 3, 7, 46, 47, 52) for bit in range(8)}
    for index in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[index] ^= 1 << bit
            covered = index >= inner and (index, bit) not in mutable_bits
            # The version nibble is fixed at 6 in the CRC and checked by the parser instead.
            if (index == inner) and bit >= 4:
                with pytest.raises(frame.MalformedFrame):
                    frame.parse(changed)
            else:
                assert icrc.verify(changed[inner:]) is not covered, (index, bit)


def test_the_icrc_agrees_with_a_crc_computed_bit_by_bit() -> None:
    inner = bytearray(_frame()[54:])
    masked = bytearray(b"\xff" * 8) + inner[:-4]
    masked[8] |= 0x0F
    masked[9:12] = b"\xff\xff\xff"
    masked[8 + 7] = 0xFF
    masked[8 + 46 : 8 + 48] = b"\xff\xff"
    masked[8 + 52] = 0xFF
    register = 0xFFFFFFFF
    for byte in masked:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xEDB88320 if register & 1 else 0)
    assert (register ^ 0xFFFFFFFF).to_bytes(4, "little") == inner[-4:]


@given(st.binary(max_size=200), st.binary(max_size=20), st.integers(0, 200))
def test_hostile_bytes_parse_or_are_refused_with_a_reason(data: bytes, patch: bytes, at: int) -> None:
    whole = _frame()
    for hostile in (data, whole[:at] + data, whole[:at] + patch + whole[at + len(patch) :]):
        with contextlib.suppress(frame.MalformedFrame):
            parsed = frame.parse(hostile)
            assert parsed.bth <= len(hostile)
            assert (hostile[parsed.offset] >> 4, hostile[parsed.offset + 6]) == (6, frame.NEXT_UDP)
            assert parsed.src + parsed.dst == hostile[parsed.offset + 8 : parsed.offset + 40]
    assert not icrc.verify(data)


@given(HEADERS[5], HEADERS[6], U24)
def test_the_fused_sack_layout_is_the_plain_headers_in_a_row(seth: wire.Seth, state: wire.CcState, psn: int) -> None:
    plain = wire.Bth(wire.Opcode.SACK, 7, psn).pack() + seth.pack() + state.pack()
    assert len(plain) == packet.SACK.size
    assert packet.SACK.pack(*packet.SACK.unpack(plain)) == plain
    first, answer, entropy, _, _, cack, kind, mpr, offset, bitmap, stamp, ooo, last = packet.SACK.unpack(plain)[5:]
    credit = kind << 8 | mpr
    assert (answer, entropy, cack & 0xFFFFFF, offset, bitmap) == (
        seth.ack_psn_offset,
        seth.entropy,
        seth.cack_psn,
        seth.sack_offset,
        seth.bitmap,
    )
    assert (first >> 5 & 3, bool(first & 2), last >> 24 & 0x7F) == (seth.mark, seth.probe_response, state.rcv_cwnd_pen)
    assert (credit >> 12, credit >> 8 & 0xF, credit & 0xFF) == (seth.cc_type, seth.cc_flags, seth.mpr)
    assert (stamp, ooo & 0x7FFF) == (state.tx_timestamp, state.ooo_count)


@given(HEADERS[0], HEADERS[1], HEADERS[3])
def test_the_fused_write_layout_is_the_plain_headers_in_a_row(bth: wire.Bth, meth: wire.Meth, reth: wire.Reth) -> None:
    plain = bth.pack() + meth.pack() + reth.pack()
    assert len(plain) == packet.WRITE.size
    assert packet.WRITE.pack(*packet.WRITE.unpack(plain)) == plain
    assert packet.WRITE.unpack(plain)[5:] == (meth.rqmsn, meth.msn, reth.va, reth.rkey, reth.length)


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
