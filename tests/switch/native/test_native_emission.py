"""C for expressions that no P4 compiler writes: it is safe, as long as the expression is, and says the same."""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from p4c.frontend import compile_program
from p4c.model import Program, UnsupportedError, load
from switch.native import binding
from switch.native.emit import emit
from tests.helpers.engines.scenario import sent_by_both
from tests.helpers.p4.around import around

SOURCE = around(
    "header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; } header e_t { bit<8> v; }",
    "h_t h; e_t[2] s;",
    "state start { packet.extract(hdr.h); packet.extract(hdr.s.next); packet.extract(hdr.s.next); transition accept; }",
    "cells.write(1, 7); hdr.h.b = 8w0x5a;",
    local="register<bit<32>>(4) cells;",
)
REPLACED = {"type": "hexstr", "value": "0x5a"}
FRAMES = [bytes([a, 0, c, d, 1, 0]) for a, c, d in ((0, 0, 0), (1, 2, 3), (0x7F, 0xFF, 1), (0xFF, 0x80, 0xFF))]

Json = dict[str, Any]
Wrap = Callable[[Json], Json]


def field(name: str) -> Json:
    return {"type": "field", "value": ["h", name]}


def const(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def binary(op: str, left: Json, right: Json) -> Json:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right}}


def cell(index: Json) -> Json:
    return {"type": "register", "value": ["I.cells", index]}


def element(index: Json) -> Json:
    """Field `v` of an element of the stack."""
    stack = {"type": "header_stack", "value": "s"}
    value = {"op": "access_field", "left": binary("dereference_header_stack", stack, index), "right": 0}
    return {"type": "expression", "value": value}


A, C, D = field("a"), field("c"), field("d")


def masked(inner: Json) -> Json:
    return binary("&", binary(">>", inner, const(1)), const(0x55))


def added(inner: Json) -> Json:
    return binary("usat_cast", binary("+", inner, C), const(8))


def subtracted(inner: Json) -> Json:
    """Both ends of the type are in reach."""
    return binary("sat_cast", binary("-", C, inner), const(8))


def nested(wrap: Wrap, depth: int) -> Json:
    expression = A
    for _ in range(depth):
        expression = wrap(expression)
    return expression


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Json:
    source = tmp_path_factory.mktemp("emission") / "bytes.p4"
    source.write_text(SOURCE)
    return dict(compile_program(source).json)


def changed(document: Json, expression: Json) -> Program:
    """The program that sets h.b to the expression."""
    copied = copy.deepcopy(document)
    primitives = [primitive for action in copied["actions"] for primitive in action["primitives"]]
    (assignment,) = (each for each in primitives if REPLACED in each["parameters"])
    assignment["parameters"][1] = {"type": "expression", "value": expression}
    return load(copied)


def results(document: Json, expression: Json) -> tuple[list[str], list[str]]:
    """Frames of the reference interpreter and of the native engine when h.b is the value of the expression."""
    return sent_by_both(changed(document, expression), FRAMES)


FAR = (
    binary("-", A, const(0x40000000)), binary("-", A, const(1)), binary("+", A, const(1 << 64)),
    binary("+", A, const(1 << 127)), binary("-", A, const(1 << 64)), binary("-", binary("*", C, const(1 << 70)), D),
)  # fmt: skip


@pytest.mark.parametrize("index", FAR, ids=range(len(FAR)))
@pytest.mark.parametrize("read", [cell, element])
def test_an_index_that_is_negative_or_above_64_bits_is_outside_of_any_array(read, index, document) -> None:
    reference, native = results(document, read(index))
    assert len(reference) == len(FRAMES)
    assert native == reference


def test_a_cell_is_not_written_by_the_low_bits_of_an_index(document: Json) -> None:
    other = copy.deepcopy(document)
    primitives = [primitive for action in other["actions"] for primitive in action["primitives"]]
    (write,) = (each for each in primitives if each["op"] == "register_write")
    write["parameters"][1] = binary("+", A, const(1 << 64))
    reference, native = results(other, cell(const(1)))
    assert [frame[2:4] for frame in reference] == ["00"] * len(FRAMES)
    assert native == reference


def test_an_expression_of_many_masks_and_shifts_is_emitted_once_per_operator(document: Json) -> None:
    """At 3.6 times the work per level, this test would not end."""
    reference, native = results(document, nested(masked, 60))
    assert len(reference) == len(FRAMES)
    assert native == reference


@pytest.mark.parametrize(
    ("wrap", "depth"),
    [
        (added, 60),
        (subtracted, 60),
        (lambda inner: binary("/", const(0xFFFF), inner), 60),
        (lambda inner: binary("%", const(1 << 70), inner), 60),
        (lambda inner: cell(binary("-", inner, const(1))), 30),
        (lambda inner: element(binary("-", inner, const(1))), 30),
    ],
    ids=["add", "subtract", "divide", "remainder", "register", "stack"],
)
def test_the_text_of_an_operand_is_not_doubled_by_any_operator(wrap: Wrap, depth: int, document: Json) -> None:
    """Doubled 30 times, this test would not end."""
    reference, native = results(document, nested(wrap, depth))
    assert len(reference) == len(FRAMES)
    assert native == reference


def test_an_expression_nested_beyond_the_stack_is_refused(document: Json) -> None:
    program = changed(document, nested(masked, 100))

    def below(frames: int) -> str:
        return below(frames - 1) if frames else emit(program)

    with pytest.raises(UnsupportedError, match="must not be nested so deeply"):
        below(700)


def test_a_program_that_is_being_built_keeps_no_other_waiting(document: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = changed(document, const(1)), changed(document, const(2))
    begun, may_end, built = Event(), Event(), list[str]()
    build = binding.compile_program

    def compile_slowly(program: Program) -> Path:
        built.append(program.digest)
        if program is slow:
            begun.set()
            assert may_end.wait(60)
        return build(program)

    monkeypatch.setattr(binding, "_programs", {})
    monkeypatch.setattr(binding, "compile_program", compile_slowly)
    with ThreadPoolExecutor() as threads:
        pushes = [threads.submit(binding.load_program, slow) for _ in range(2)]
        try:
            assert begun.wait(60)
            threads.submit(binding.load_program, quick).result(timeout=20)
        finally:
            may_end.set()
    assert pushes[0].result() == pushes[1].result()
    assert built == [slow.digest, quick.digest]
