"""Expressions on both engines: the C that is emitted must be worth what exact arithmetic is worth."""

from pathlib import Path

import pytest

from p4c.frontend import compile_program
from p4c.model import load
from tests.helpers.engines.scenario import sent_by_both
from tests.helpers.frontend.random_expressions import RandomExpressions, program

SEEDS = range(4)
COUNT = 60  # expressions of a program: the C compiler takes longer to start than to compile them


def results(text: str, frames: list[bytes], directory: Path) -> tuple[list[str], list[str]]:
    """Frames of the reference interpreter and of the native engine."""
    source = directory / "expressions.p4"
    source.write_text(text)
    return sent_by_both(load(compile_program(source).json), frames)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_typed_expressions_agree(seed: int, tmp_path: Path) -> None:
    made = RandomExpressions(seed, COUNT)
    frames = made.frames()
    reference, native = results(made.text, frames, tmp_path)
    assert len(reference) == len(frames)
    assert native == reference


@pytest.mark.parametrize(
    ("inputs", "output", "expression", "given", "wanted"),
    [
        # A constant of less than 32 bits, shifted beyond them.
        ("bit<32> x;", "bit<48>", "16w0xf7af ++ hdr.i.x", "01020304", "f7af01020304"),
        # Two signed numbers, whose bitwise and may be positive.
        ("int<8> x; int<8> y; int<8> z;", "int<8>", "((hdr.i.x & hdr.i.y) >> 1) |+| hdr.i.z", "7e7e7f", "7f"),
        ("int<8> x; int<8> y; int<8> z;", "int<8>", "((hdr.i.x & hdr.i.y) >> 1) |-| hdr.i.z", "7e7e81", "7f"),
        # The lowest number of all is a bit shorter than its magnitude.
        (
            "int<128> x; int<128> y;",
            "int<128>",
            "(hdr.i.x ^ hdr.i.y) >> 120",
            "7f" + "00" * 15 + "ff" * 16,
            "ff" * 15 + "80",
        ),
    ],
)
def test_an_expression_that_was_once_wrong_or_refused(inputs, output, expression, given, wanted, tmp_path) -> None:
    text = program(inputs, f"{output} z;", f"hdr.o.z = {expression};")
    frame = bytes.fromhex(given)
    for answers in results(text, [frame], tmp_path):
        assert answers == [given + wanted]


@pytest.mark.parametrize("outputs", ["bit<136> w; bit<8> z;", "bit<4> p; bit<136> w; bit<4> z;"])
@pytest.mark.parametrize("inputs", ["bit<136> w; bit<8> x;", "bit<3> p; bit<136> w; bit<5> x;"])
def test_a_field_above_128_bits_begins_at_any_bit(inputs: str, outputs: str, tmp_path: Path) -> None:
    body = "hdr.o.w = hdr.i.w; hdr.o.z = 7;" + (" hdr.o.p = 9;" if "p;" in outputs else "")
    text = program(inputs, outputs, body)
    frame = bytes(range(0x71, 0x71 + 18))
    reference, native = results(text, [frame], tmp_path)
    assert native == reference
    assert len(reference[0]) == 2 * 36
