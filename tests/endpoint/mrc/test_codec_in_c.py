"""The codec's calls in C against the plain Python codec and zlib, on any bytes of any length."""

import array
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from struct import error as StructError  # noqa: N812
from types import ModuleType
from typing import Any
from zlib import crc32

import pytest
from hypothesis import example, given, settings, strategies as st

from endpoint.nic import codec, frame, icrc, packet, wire
from endpoint.nic.packet import SACK
from tests.helpers.transport.native_codec import SANITIZE, compiler
from tests.helpers.waiting import ran

ROOT = Path(__file__).parents[3]
HERE, PEER, PORT_ADDRESS, LIST = (bytes([number]) * 16 for number in range(1, 5))
TRIMMED = (5, 6)
UDP_PORT = 4791
WRITE_FIELDS = (0, 0xC7, 0, 0, 0, 0, 0, 0, 0)


def headers(
    length: int,
    *,
    traffic_class: int = 0,
    dst: bytes = HERE,
    outer: bytes | None = PORT_ADDRESS,
    udp_dport: int = UDP_PORT,
) -> bytes:
    """What stands in front of a BTH."""
    return frame.headers(
        ether_dst=bytes(6), ether_src=bytes(6), outer=None if outer is None else (LIST, outer), src=PEER, dst=dst,
        traffic_class=traffic_class, ev=0x12345678, udp_dport=udp_dport, length=length,
    )  # fmt: skip


@given(st.integers(0, 255), st.integers(0, 9000), st.sampled_from((None, PORT_ADDRESS)))
def test_headers_from_a_template_are_those_made_at_once(traffic_class: int, length: int, outer: bytes | None) -> None:
    at_once = headers(length, traffic_class=traffic_class, outer=outer)
    assert frame.filled(headers(0, outer=outer), traffic_class, length) == at_once


def written(payload: bytes, opcode: int, flags: int, psn: int, va: int, **front: Any) -> bytes:
    """A frame of a write by the plain codec; what `payload` begins with may be more headers."""
    head = wire.Bth(opcode, 0x123, psn, flags).pack() + wire.Meth(7, 9).pack() + wire.Reth(va, 0xABCD, 1 << 20).pack()
    return frame.seal(headers(len(head) + len(payload) + icrc.SIZE, **front), head + payload)


def acknowledged(syndrome: int, msn: int, behind: bytes = b"", **front: Any) -> bytes:
    """A frame of a transport acknowledgement by the plain codec."""
    transport = wire.Bth(wire.Opcode.ACKNOWLEDGE, 0x123, 5).pack() + wire.Aeth(syndrome, msn).pack() + behind
    return frame.seal(headers(len(transport) + icrc.SIZE, **front), transport)


def asked(opcode: int, header: bytes) -> bytes:
    """A frame of an endpoint request or response by the plain codec."""
    transport = wire.Bth(opcode, wire.ENDPOINT_QPN, 5).pack() + header
    return frame.seal(headers(len(transport) + icrc.SIZE), transport)


def fields_of(
    opcode: int, second: int, psn: int, qpn: int, src: bytes, source_port: int, inner: int, outer: int, *reth: int
) -> tuple[Any, ...]:
    """Fields of a frame in few numbers, to be compared."""
    return psn << 24 | qpn, src, inner << 16 | source_port, outer << 16 | opcode << 8 | second, *reth


def plainly_read(data: bytes) -> tuple[Any, ...] | None:
    """What `usual` and the readers say about a frame, by the plain codec."""
    try:
        found = frame.parse(data)
        bth = wire.Bth.unpack(data, found.bth)
    except (frame.MalformedFrame, StructError):
        return None
    usual = found.outer is not None and found.outer[1] in (PORT_ADDRESS, HERE) and found.dst == HERE
    usual = usual and found.dscp not in TRIMMED and found.udp_dport == UDP_PORT and found.end == len(data)
    # a whole AETH, ERTH, EETH, or RETH, and the ICRC
    behind = {wire.Opcode.ACKNOWLEDGE: 4, wire.Opcode.ENDPOINT_REQUEST: 16, wire.Opcode.ENDPOINT_RESPONSE: 36}
    behind |= {wire.Opcode.SACK: 36} | dict.fromkeys(wire.WRITES, 20)
    usual = usual and bth.opcode in behind
    least = 118 + behind[wire.Opcode(bth.opcode)] if usual else 0
    if not usual or bth.flags & wire.TIMESTAMP or len(data) < least or not icrc.verify(data[found.offset :]):
        return None
    reth = wire.Reth(0, 0, 0)
    if bth.opcode in wire.WRITES:
        reth = wire.Reth.unpack(data, 118)
    if bth.opcode == wire.Opcode.ACKNOWLEDGE:
        aeth = wire.Aeth.unpack(data, 114)
        reth.length = aeth.syndrome << 24 | aeth.msn
    outer, inner = (int.from_bytes(data[at : at + 4], "big") for at in (14, 54))
    port, psn = int.from_bytes(data[94:96], "big"), int.from_bytes(data[110:114], "big")
    own = (bth.opcode, data[103], psn, bth.dest_qpn, found.src, port, inner, outer)
    return fields_of(*own, reth.va, reth.rkey, reth.length)


def exactly(data: bytes) -> memoryview:
    """The bytes in memory of their own, with nothing behind the last one, so that sanitizers notice a read there."""
    return memoryview(array.array("B", data))


def read(native: ModuleType, data: bytes, counted: bool = False) -> tuple[Any, ...] | None:
    """The fields of a usual frame, each read in C."""
    bits = sum(1 << dscp for dscp in TRIMMED)
    arguments = (HERE, PORT_ADDRESS + HERE, bits, UDP_PORT, counted)
    usual = native.usual(data, *arguments)
    assert native.usual(exactly(data), *arguments) is usual
    if not usual:
        return None
    opcode, second = divmod(native.u16(data, packet.BTH_OFFSET), 256)
    va = rkey = total = 0
    if opcode in wire.WRITES:
        at = packet.RETH_OFFSET
        va, rkey, total = native.u64(data, at), native.u32(data, at + 8), native.u32(data, at + 12)
    elif opcode == wire.Opcode.ACKNOWLEDGE:
        total = native.u32(data, packet.BEHIND_BTH)
    psn, qpn = native.u32(data, packet.PSN_OFFSET), native.u32(data, packet.QPN_OFFSET) & 0xFFFFFF
    inner, outer = native.u32(data, packet.INNER_OFFSET), native.u32(data, frame.ETHERNET)
    src = data[packet.SRC_OFFSET : packet.SRC_OFFSET + 16]
    assert native.has(data, packet.SRC_OFFSET, src)
    return fields_of(opcode, second, psn, qpn, src, native.u16(data, packet.UDP_OFFSET), inner, outer, va, rkey, total)


@given(st.binary(max_size=40), st.integers(-3, 50), st.binary(min_size=1, max_size=4))
@example(b"\xff" * 8, 0, b"\xff" * 4)
def test_numbers_and_bytes_of_a_frame_are_read_as_in_python(native, data, at, part) -> None:
    for plain, in_c, size in ((codec.u16, native.u16, 2), (codec.u32, native.u32, 4), (codec.u64, native.u64, 8)):
        for given_data in (data, exactly(data)):
            if 0 <= at <= len(data) - size:
                assert in_c(given_data, at) == plain(given_data, at) == int.from_bytes(data[at : at + size], "big")
            else:
                with pytest.raises(IndexError):
                    in_c(given_data, at)
    if at >= 0:
        assert native.has(exactly(data), at, part) == codec.has(data, at, part)
    if 0 <= at < len(data):
        assert native.has(data, at, data[at : at + 4])


by_all_means = pytest.mark.parametrize("means", [0, 1, 2], ids=["tables", "narrowly", "widely"])
"""What the processor has not is replaced by the best that it has."""


@by_all_means
@given(data=st.binary(max_size=400), state=st.integers(0, 0xFFFFFFFF), repeats=st.integers(0, 40))
def test_its_crc_is_zlibs(native: ModuleType, means: int, data: bytes, state: int, repeats: int) -> None:
    data *= repeats
    assert native.crc32(data, state, means) == crc32(data, state)
    assert native.crc32(exactly(data), state, means) == crc32(data, state)


@given(
    st.binary(max_size=300), st.integers(0, 30), st.integers(0, 0xFF), st.integers(0, 0xFFFFFF),
    st.integers(0, 2**64 - 1), st.integers(0, 9), st.integers(0, 9), st.integers(0, 0xFF),
    st.sampled_from([PORT_ADDRESS, None]), st.sampled_from([b"", b"imm."]),
)  # fmt: skip
def test_it_writes_the_plain_codecs_frame(
    native: ModuleType, data: bytes, repeats: int, flags: int, psn: int, va: int, start: int, behind: int,
    traffic_class: int, outer: bytes | None, immediate: bytes,
) -> None:  # fmt: skip
    payload = data * repeats
    fields = (traffic_class, 0xC7, 0, 0xFF000123, flags << 24 | psn, 7 << 16 | 9, va, 0xABCD, 1 << 20)
    memory = exactly(bytes(start) + payload + bytes(behind))
    expected = written(immediate + payload, 0xC7, flags, psn, va, traffic_class=traffic_class, outer=outer)
    assert native.write(headers(0, outer=outer), *fields, memory, start, len(payload), immediate) == expected


COUNTED_SIZES = st.integers(1, 2000).map(lambda words: 4 * words)


@given(COUNTED_SIZES, st.sampled_from([0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB]))
def test_a_counted_write_is_the_frame_without_its_payload(native: ModuleType, size: int, opcode: int) -> None:
    immediate = b"imm." if opcode in (0xC9, 0xCB) else b""
    fields = (1, opcode, 0, 0xFF000123, 5, 7 << 16 | 9, 1 << 40, 0xABCD, 1 << 20)
    whole = native.write(headers(0), *fields, bytearray(size), 0, size, immediate)
    counted = native.write(headers(0), *fields, None, 0, size, immediate)
    assert counted[:-4] == whole[: len(whole) - 4 - size]
    assert frame.left_out(counted) == size
    assert frame.left_out(whole) == frame.left_out(whole[:-1]) == frame.left_out(counted[:-1]) == 0
    assert read(native, counted, counted=True) == read(native, whole, counted=True) == read(native, whole) is not None
    assert read(native, counted) is None  # a NIC that carries payload sees a frame that was cut


@given(COUNTED_SIZES, st.integers(0, 138 * 8 - 1))
def test_a_counted_write_with_any_bit_flipped_is_read_by_both_or_by_neither(native, size, bit) -> None:
    counted = native.write(headers(0), *WRITE_FIELDS, None, 0, size, b"")
    broken = bytearray(counted)
    broken[bit // 8] ^= 1 << bit % 8
    if frame.left_out(broken) == 0:  # the ICRC says so, or there is no such length
        assert read(native, bytes(broken), counted=True) is None


def test_a_counted_write_of_no_frame_is_refused(native: ModuleType) -> None:
    with pytest.raises(OverflowError, match="no IPv6 packet has room"):
        native.write(headers(0), *WRITE_FIELDS, None, 0, 65500, b"")
    with pytest.raises(TypeError):
        native.write(headers(0), *WRITE_FIELDS, None, 0, -1, b"")


@given(st.binary(min_size=5, max_size=300), st.integers(0, 0xFF), st.sampled_from([PORT_ADDRESS, None]))
def test_it_seals_as_the_plain_codec(native: ModuleType, data: bytes, traffic_class: int, outer: bytes | None) -> None:
    transport = exactly(data[:4] + b"\xff" + data[5:])
    front = headers(len(data) + icrc.SIZE, traffic_class=traffic_class, outer=outer)
    sent = data[:4] + b"\0" + data[5:]
    assert native.seal(headers(0, outer=outer), traffic_class, transport) == frame.seal(front, sent)


WORD, HALF, SIGNED = st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1), st.integers(-(2**15), 2**15 - 1)


@given(
    st.integers(0, 0xFF), st.integers(0, 0xFFFFFF), st.integers(0, 0xFFFFFF), HALF, SIGNED, WORD, st.integers(0, 0xFF),
    SIGNED, st.integers(0, 2**64 - 1), HALF, HALF, WORD,
)  # fmt: skip
def test_its_sacks_are_the_plain_codecs(
    native: ModuleType, traffic_class: int, destination: int, cack: int, first: int, answer: int, ev: int, mpr: int,
    start: int, bitmap: int, stamp: int, beyond: int, congestion: int,
) -> None:  # fmt: skip
    destination |= 0xFF << 24  # the variant byte as the ICRC has it
    numbers = (destination, cack, first, answer, ev, mpr, start, bitmap, stamp, beyond, congestion)
    transport = bytearray(
        SACK.pack(0xDC, 0, 0xFFFF, destination, cack, first, answer, ev, 0, 0, cack, 0, mpr, start, bitmap, stamp,
                  beyond, congestion)
    )  # fmt: skip
    transport[4] = 0  # the variant byte as it is sent
    expected = frame.seal(headers(len(transport) + icrc.SIZE, traffic_class=traffic_class), bytes(transport))
    assert native.sack(headers(0), traffic_class, *numbers) == expected


@pytest.mark.parametrize("place", range(12))
def test_a_sack_with_a_number_that_its_header_has_no_room_for_is_refused(native: ModuleType, place: int) -> None:
    most = (0xFF, 2**32, 2**32, 0xFFFF, 0x7FFF, 2**32, 0xFF, 0x7FFF, 2**64, 0xFFFF, 0xFFFF, 2**32)
    signed = place in (4, 7)
    for wrong in (most[place] + 1, -(2**15) - 1 if signed else -1, 2**70, -(2**70)):
        numbers = [0] * 12
        numbers[place] = wrong
        with pytest.raises(OverflowError):
            native.sack(headers(0), *numbers)


@given(
    st.binary(max_size=200), st.sampled_from([*wire.Opcode]), st.integers(0, 0xFF),
    st.sampled_from([0, 2 << 2, 3, *(dscp << 2 | 1 for dscp in TRIMMED), 0xFF]), st.sampled_from([HERE, PEER]),
    st.sampled_from([PORT_ADDRESS, HERE, LIST, None]), st.sampled_from([4791, 4971]),
)  # fmt: skip
@example(b"", wire.Opcode.WRITE_ONLY, 0, 0, HERE, PORT_ADDRESS, 4791)
def test_it_reads_what_the_plain_codec_reads(native, payload, opcode, flags, traffic_class, dst, outer, port) -> None:
    data = written(
        payload, opcode, flags, 5, 1 << 40, traffic_class=traffic_class, dst=dst, outer=outer, udp_dport=port
    )
    assert read(native, data) == plainly_read(data)


def test_the_usual_frames_are_read(native: ModuleType) -> None:
    """The comparisons above would pass with a `read` that knows no frame at all."""
    for opcode in [*sorted(wire.WRITES), wire.Opcode.SACK]:
        found = read(native, written(b"payload!" * 2, opcode, wire.ACK_REQUEST, 5, 1 << 40))
        assert found is not None
        assert found[:2] == ((wire.ACK_REQUEST << 24 | 5) << 24 | 0x123, PEER)
        assert found[2] & 0xFFFFFFFF == 0x12345678  # the EV
        assert found[3] & 0xFFFF == opcode << 8
        assert found[4:] == ((0, 0, 0) if opcode == wire.Opcode.SACK else (1 << 40, 0xABCD, 1 << 20))


@settings(max_examples=300)
@given(st.integers(0, 1 << 32), st.integers(0, 3), st.booleans(), st.booleans())
def test_a_damaged_frame_is_read_by_both_or_by_neither(native, seed, flips, cut, mend) -> None:
    chance = Random(seed)
    data = bytearray(written(chance.randbytes(chance.randrange(200)), 0xC6, 0, 5, 1 << 40))
    for _ in range(flips):
        data[chance.randrange(118)] ^= 1 << chance.randrange(8)
    if mend:  # so that more than the ICRC decides
        data[-4:] = icrc.WIRE.pack(icrc.compute(bytes(data[54:-4])))
    if cut:
        del data[chance.randrange(len(data)) :]
    assert read(native, bytes(data)) == plainly_read(bytes(data))


@pytest.mark.parametrize(
    "whole",
    [
        written(b"payload!", 0xC6, 0, 5, 1 << 40),
        written(b"payload!", 0xC6, wire.ACK_REQUEST, 5, 1 << 40),
        acknowledged(0, 9),
        asked(wire.Opcode.ENDPOINT_REQUEST, wire.Erth(wire.EndpointOp.EV_PROBE).pack()),
        asked(wire.Opcode.ENDPOINT_RESPONSE, wire.Eeth(wire.EndpointOp.PORT_STATUS_UPDATE, 5).pack()),
    ],
)
def test_a_frame_with_any_bit_flipped_is_read_by_both_or_by_neither(native: ModuleType, whole: bytes) -> None:
    for bit in range(min(118, len(whole) - icrc.SIZE) * 8):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        assert read(native, bytes(data)) == plainly_read(bytes(data)), f"bit {bit}"
        data[-4:] = icrc.WIRE.pack(icrc.compute(bytes(data[54:-4])))  # the sender is hostile, not the wire
        assert read(native, bytes(data)) == plainly_read(bytes(data)), f"bit {bit} with a right ICRC"


# a whole RETH, AETH, ERTH, EETH
@pytest.mark.parametrize(("opcode", "least"), [(0xC6, 32), (0xD1, 16), (0xD8, 28), (0xD9, 48)])
def test_a_short_frame_with_a_right_icrc_is_no_usual_frame(native: ModuleType, opcode: int, least: int) -> None:
    transport = wire.Bth(opcode, 0x123, 5).pack() + bytes(48)
    read_at = []
    for size in range(12, len(transport) + 1):
        data = frame.seal(headers(size + icrc.SIZE), transport[:size])
        found = read(native, data)
        assert found == plainly_read(data)
        read_at += [size] if found else []
    assert read_at == list(range(least, 61))


def test_only_whole_addresses_are_those_of_a_host(native: ModuleType) -> None:
    data, addresses = written(b"payload!", 0xC6, 0, 5, 1 << 40), LIST + PORT_ADDRESS
    found = [size for size in range(33) if native.usual(data, HERE, addresses[:size], 0, UDP_PORT, False)]
    assert found == [32]


@given(st.binary(max_size=300), st.binary(max_size=48), st.integers(0, 2**64 - 1))
def test_any_bytes_are_taken(native: ModuleType, data: bytes, addresses: bytes, bits: int) -> None:
    assert native.usual(exactly(data), HERE, addresses, bits, UDP_PORT, False) is False
    assert native.usual(exactly(data), HERE, addresses, bits, UDP_PORT, True) is False
    assert read(native, data) is None


def test_wrong_arguments_raise_and_touch_nothing(native: ModuleType) -> None:
    memory, front = memoryview(bytearray(64)), headers(0)
    payload = (memory, 0, 4, b"")
    for start, size in ((0, 65), (64, 1), (-1, 4), (0, -1), (1 << 62, 1 << 62), (65, 0)):
        with pytest.raises(ValueError, match="not inside"):
            native.write(front, *WRITE_FIELDS, memory, start, size, b"")
    for place, value in enumerate((256, 256, 256, 1 << 32, 1 << 32, 1 << 32, 1 << 64, 1 << 32, 1 << 32)):
        for wrong in (value, -1):
            fields = [*WRITE_FIELDS]
            fields[place] = wrong
            with pytest.raises(OverflowError):
                native.write(front, *fields, *payload)
    for immediate in (b"123", b"12345", b"12345678"):
        with pytest.raises(ValueError, match="an immediate has four bytes"):
            native.write(front, *WRITE_FIELDS, memory, 0, 4, immediate)
    of_another_type: list[tuple[Callable[..., object], tuple[Any, ...]]] = [
        (native.write, (bytearray(front), *WRITE_FIELDS, *payload)),
        (native.write, (front, *WRITE_FIELDS, "text", 0, 4, b"")),
        (native.write, (front, "text", *WRITE_FIELDS[1:], *payload)),
        *((native.write, (front, *WRITE_FIELDS, *behind)) for behind in ((), (memory, 0, 4), (memory, 0, 4, "text"))),
        *((native.seal, (*given, b"12345")) for given in ((), (bytearray(front), 0), (front, "text"))),
        *((native.seal, (front, 0, "text")), (native.crc32, ()), (native.sack, ())),
        *((native.sack, (*given, *range(11))) for given in ((front,), (bytearray(front), 0), (front, "text"))),
        *((native.usual, (*given, 0, 0, 0)) for given in ((), (b"", b"", b""), (b"", HERE, ""), ("text", HERE, HERE))),
    ]
    for call, arguments in of_another_type:
        with pytest.raises(TypeError):
            call(*arguments)
    memory.release()
    with pytest.raises(ValueError, match="released"):
        native.write(front, *WRITE_FIELDS, *payload)
    with pytest.raises(ValueError, match="4 bytes are no transport packet"):
        native.seal(front, 0, b"1234")
    with pytest.raises(BufferError):
        native.usual(memoryview(bytes(400))[::2], HERE, HERE, 0, 0, False)
    for call, arguments in (
        (native.seal, (front, -1, b"12345")),
        (native.seal, (front, 256, b"12345")),
        (native.usual, (bytes(200), HERE, HERE, 1 << 64, 0, False)),
    ):
        with pytest.raises(OverflowError):
            call(*arguments)


@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(-2, 70), st.integers(-2, 70), st.integers(-2, 70))
@example(b"12345678", b"abcdefgh", 2, 3, 5)
def test_it_places_what_a_slice_would(native, memory, data, at, start, size) -> None:
    buffer = array.array("B", memory)
    inside = min(at, start, size) >= 0 and at + size <= len(memory) and start + size <= len(data)
    if inside:
        expected = bytearray(memory)
        expected[at : at + size] = data[start : start + size]
        native.place(memoryview(buffer), at, exactly(data), start, size)
        assert bytes(buffer) == expected
        return
    with pytest.raises(ValueError, match="not inside"):
        native.place(memoryview(buffer), at, exactly(data), start, size)
    assert bytes(buffer) == memory


def test_nothing_is_placed_where_nothing_may_be_written(native: ModuleType) -> None:
    released = memoryview(bytearray(8))
    released.release()
    wrong = [(b"12345678", BufferError), (memoryview(b"12345678"), BufferError), (released, ValueError), (7, TypeError)]
    for memory, error in wrong:
        with pytest.raises(error):
            native.place(memory, 0, b"1234", 0, 4)
    for place in ((1 << 64, 0, 4), (0, 1 << 64, 4), (0, 0, -(1 << 64))):
        with pytest.raises(OverflowError):
            native.place(bytearray(8), place[0], b"1234", *place[1:])
    for arguments in (
        (),
        (bytearray(8), 0, b"1234", 0),
        (bytearray(8), "0", b"1234", 0, 4),
        (bytearray(8), 0, 5, 0, 4),
    ):
        with pytest.raises(TypeError):
            native.place(*arguments)


def test_only_the_headers_of_a_path_are_taken_as_such(native: ModuleType) -> None:
    for outer in (PORT_ADDRESS, None):
        whole = headers(0, outer=outer)
        for wrong in (b"", whole[:-1], whole + b"1"):
            with pytest.raises(ValueError, match="no headers of a path"):
                native.write(wrong, *WRITE_FIELDS, b"1234", 0, 4, b"")
            with pytest.raises(ValueError, match="no headers of a path"):
                native.seal(wrong, 0, b"12345")


def test_a_frame_is_no_longer_than_ipv6_can_say(native: ModuleType) -> None:
    most = 0xFFFF - 48 - icrc.SIZE  # what an outer header, UDP and the ICRC leave
    masked = bytes(4) + b"\xff" + bytes(most - 5)
    assert native.seal(headers(0), 0, masked) == frame.seal(headers(most + icrc.SIZE), bytes(most))
    with pytest.raises(OverflowError):
        native.seal(headers(0), 0, bytes(most + 1))
    with pytest.raises(OverflowError):
        native.write(headers(0), *WRITE_FIELDS, bytes(most), 0, most - 31, b"")


@pytest.fixture(scope="module")
def sanitized() -> dict[str, str]:
    """The environment of a Python that can load C compiled with AddressSanitizer."""
    words = compiler()
    if not words:
        pytest.skip("needs a C compiler")
    named = "libclang_rt.asan.so" if "clang" in words[0] else "libasan.so"
    library = subprocess.check_output([*words, f"-print-file-name={named}"], text=True).strip()
    if not Path(library).is_file():
        pytest.skip(f"the C compiler has no {named}")
    # Python itself leaves memory behind at exit; its own arenas would hide where a block ends.
    own = {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc", SANITIZE: "1"}
    return {**os.environ, **own}


def under_sanitizers(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.slow
@pytest.mark.skipif(SANITIZE in os.environ, reason="runs under the sanitizers")
@pytest.mark.skipif(os.environ.get("MRCLAB_COMPILED") == "off", reason="the same C; ./lab test runs it once, compiled")
def test_the_sanitizers_find_nothing_in_these_tests(sanitized: dict[str, str]) -> None:
    ring = ROOT / "tests" / "endpoint" / "test_nic_ring.py"
    done = under_sanitizers(sanitized, __file__, str(ring))
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert " passed" in done.stdout


@pytest.mark.skipif(SANITIZE not in os.environ, reason="a test for the sanitizers")
def test_the_sanitizers_are_at_work(native: ModuleType) -> None:
    """A process that reads behind the end of memory through the codec ends: the tests here can fail."""
    program = """
import ctypes, importlib.util, sys
spec = importlib.util.spec_from_file_location("codec_tested", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
block = ctypes.CDLL(None)
block.malloc.restype = ctypes.c_void_p
start = block.malloc(ctypes.c_size_t(100))
module.crc32((ctypes.c_char * 101).from_address(start), 0, 2)
print("nothing was noticed")
"""
    assert native.__file__ is not None
    done = ran([sys.executable, "-c", program, native.__file__])
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
