"""Hashes and random numbers against published vectors."""

import pytest
from hypothesis import given, strategies as st

from switch.reference.hashes import ALGORITHMS, csum16
from switch.reference.rng import SplitMix64

CHECK = b"123456789"  # the input of the catalogue of CRC algorithms


@pytest.mark.parametrize(
    ("algorithm", "data", "value"),
    [
        ("crc16", CHECK, 0xBB3D),  # CRC-16/ARC
        ("crc32", CHECK, 0xCBF43926),  # CRC-32/ISO-HDLC
        ("crcCCITT", CHECK, 0x29B1),  # CRC-16/CCITT-FALSE
        ("csum16", bytes.fromhex("0001f203f4f5f6f7"), 0x220D),  # RFC 1071, section 3: the sum is ddf2
        ("csum16", b"\x01", 0xFEFF),  # an odd byte is the high one
        ("csum16", b"", 0xFFFF),
        ("xor16", bytes.fromhex("0102030405"), 0x0706),
        ("xor32", bytes.fromhex("0102030405"), 0x04020304),
        ("identity", bytes.fromhex("0102"), 0x0102),
        ("identity", bytes(range(1, 12)), 0x0102030405060708),
    ],
)
def test_hashes_have_their_published_values(algorithm: str, data: bytes, value: int) -> None:
    assert ALGORITHMS[algorithm](data) == value


@given(st.binary(max_size=64))
def test_a_checksum_put_into_its_data_makes_the_sum_all_ones(data: bytes) -> None:
    data += b"\0" * (len(data) % 2)
    assert csum16(data + csum16(data).to_bytes(2, "big")) == 0


def test_splitmix64_gives_its_published_numbers() -> None:
    generator = SplitMix64(1234567)
    drawn = [generator.draw() for _ in range(3)]
    assert drawn == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_random_numbers_stay_within_their_bounds(seed: int, a: int, b: int) -> None:
    low, high = sorted((a, b))
    assert low <= SplitMix64(seed).between(low, high) <= high


def test_the_whole_range_is_a_raw_draw() -> None:
    assert SplitMix64(5).between(0, 2**64 - 1) == SplitMix64(5).draw()


@pytest.mark.parametrize(("share", "expected"), [(0.0, False), (1.0, True)])
def test_no_loss_and_all_loss_are_certain(share: float, expected: bool) -> None:
    generator = SplitMix64(3)
    assert {generator.chance(share) for _ in range(1000)} == {expected}
