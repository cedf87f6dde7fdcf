"""Random programs and expressions: our JSON against p4c's, and against arithmetic done here."""

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4c.frontend.compilation import Compilation
from p4c.frontend.parse import ast
from p4c.model import load
from switch.engine import PortConfig
from switch.reference import ReferenceEngine
from tests.helpers.frontend.expression_meaning import meaning
from tests.helpers.frontend.random_expressions import RandomExpressions
from tests.helpers.frontend.random_parsers import RandomParser
from tests.helpers.frontend.random_programs import SKELETON, RandomProgram

SEEDS = range(12)
needs_p4c = pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c is not on PATH")


def outputs(document: dict[str, object], frames: list[bytes]) -> list[list[tuple[int, bytes]]]:
    """What leaves for each frame that comes in on port 1."""
    engine = ReferenceEngine(seed=1)
    engine.load(load(document))
    for port in (1, 2):
        engine.configure_port(port, PortConfig(), 0)
    found = []
    for i, frame in enumerate(frames):
        engine.receive(1, frame, i * 1000)
        found.append([(t.port, bytes(t.frame)) for t in engine.advance(i * 1000 + 999)])
    return found


def both(text: str, directory: Path) -> tuple[dict[str, object], dict[str, object]]:
    """Our JSON and p4c's."""
    source, target = directory / "random.p4", directory / "random.json"
    source.write_text(text)
    done = subprocess.run(
        ["p4c-bm2-ss", "--std", "p4-16", "-o", str(target), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Compilation(source).run().json, json.loads(target.read_text())


@needs_p4c
@pytest.mark.p4c
@pytest.mark.parametrize("seed", SEEDS)
def test_both_compilers_make_the_same_of_a_random_program(seed: int, tmp_path: Path) -> None:
    program = RandomProgram(seed)
    ours, theirs = both(program.text, tmp_path)
    rng = random.Random(seed)
    frames = [rng.randbytes(program.header_bytes + rng.randint(0, 4)) for _ in range(12)]
    frames += [bytes(program.header_bytes), b"\xff" * program.header_bytes, b"\xff"]
    assert outputs(ours, frames) == outputs(theirs, frames)


@needs_p4c
@pytest.mark.p4c
@pytest.mark.parametrize("seed", SEEDS)
def test_both_compilers_make_the_same_of_a_random_parser(seed: int, tmp_path: Path) -> None:
    ours, theirs = both(RandomParser(seed).text, tmp_path)
    rng = random.Random(seed)
    few = [0, 1, 2, 3, 4, 5, 7, 8, 255]
    frames = [bytes(rng.choice([*few, rng.randrange(256)]) for _ in range(rng.randint(1, 40))) for _ in range(30)]
    assert outputs(ours, frames) == outputs(theirs, frames)


@needs_p4c
@pytest.mark.p4c
@pytest.mark.parametrize("seed", SEEDS)
def test_both_compilers_make_the_same_of_random_typed_expressions(seed: int, tmp_path: Path) -> None:
    program = RandomExpressions(seed)
    ours, theirs = both(program.text, tmp_path)
    frames = program.frames()
    assert outputs(ours, frames) == outputs(theirs, frames)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_typed_expressions_mean_what_the_specification_says(seed: int, tmp_path: Path) -> None:
    program = RandomExpressions(seed)
    source = tmp_path / "random.p4"
    source.write_text(program.text)
    compilation = Compilation(source)
    document = compilation.run().json
    assert compilation.program is not None
    (ingress,) = (d for d in compilation.program.declarations if isinstance(d, ast.ControlDecl) and d.name == "I")
    assert ingress.body is not None
    assigned = [s for s in ingress.body.statements if isinstance(s, ast.AssignmentStatement)][
        1:
    ]  # the first is egress_spec
    assert len(assigned) == len(program.lines)
    for frame, sent in zip(frames := program.frames(), outputs(document, frames), strict=True):
        fields = program.values(frame)
        expected, bits = 0, 0
        for s in assigned:
            width = s.target.type.width
            expected = expected << width | meaning(s.value, fields) & ((1 << width) - 1)
            bits += width
        assert sent == [(2, frame + expected.to_bytes(bits // 8, "big"))]


# --- expressions against arithmetic done here -----------------------------------------------------

W = 16
MASK = (1 << W) - 1


def signed(value: int) -> int:
    return value - (1 << W) if value >> (W - 1) else value


def saturate(value: int) -> int:
    return min(max(value, 0), MASK)


OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "|+|": lambda a, b: saturate(a + b),
    "|-|": lambda a, b: saturate(a - b),
    "<<": lambda a, b: a << (b & 31),
    ">>": lambda a, b: a >> (b & 31),
}


@dataclass(frozen=True)
class Sample:
    """P4 text over the fields x and y, and what it is worth, modulo 2^16."""

    text: str
    worth: Callable[[int, int], int]

    def __repr__(self) -> str:
        return self.text


def operate(op: str, a: Sample, b: Sample) -> Sample:
    right = f"({b.text} & 31)" if op in ("<<", ">>") else b.text
    work = OPERATORS[op]
    return Sample(f"({a.text} {op} {right})", lambda x, y: work(a.worth(x, y), b.worth(x, y)) & MASK)


def choose(a: Sample, b: Sample, c: Sample) -> Sample:
    def worth(x: int, y: int) -> int:
        return c.worth(x, y) if a.worth(x, y) < b.worth(x, y) else a.worth(x, y)

    return Sample(f"({a.text} < {b.text} ? {c.text} : {a.text})", worth)


def compare(a: Sample, b: Sample) -> Sample:
    text = f"((int<16>)({a.text}) >= (int<16>)({b.text}) ? 16w1 : 16w0)"
    return Sample(text, lambda x, y: int(signed(a.worth(x, y)) >= signed(b.worth(x, y))))


def join(a: Sample, b: Sample, at: int) -> Sample:
    low = (1 << (at + 1)) - 1
    text = f"(({a.text})[{at}:0] ++ ({b.text})[15:{at + 1}])"
    return Sample(text, lambda x, y: ((a.worth(x, y) & low) << (15 - at)) | (b.worth(x, y) >> (at + 1)))


def widen(a: Sample, sign: bool) -> Sample:
    if sign:
        text = f"(((bit<24>)(int<24>)(int<16>)({a.text}))[19:4])"
        return Sample(text, lambda x, y: (signed(a.worth(x, y)) >> 4) & MASK)
    return Sample(f"(((bit<24>)({a.text}))[19:4])", lambda x, y: a.worth(x, y) >> 4)


def invert(a: Sample) -> Sample:
    return Sample(f"(~{a.text})", lambda x, y: ~a.worth(x, y) & MASK)


def negate(a: Sample) -> Sample:
    return Sample(f"(-{a.text})", lambda x, y: -a.worth(x, y) & MASK)


LEAVES = st.one_of(
    st.just(Sample("hdr.data.x", lambda x, y: x)),
    st.just(Sample("hdr.data.y", lambda x, y: y)),
    st.integers(0, MASK).map(lambda n: Sample(f"16w{n}", lambda x, y: n)),
)


def grow(inner: st.SearchStrategy[Sample]) -> st.SearchStrategy[Sample]:
    return st.one_of(
        st.builds(operate, st.sampled_from(sorted(OPERATORS)), inner, inner),
        st.builds(choose, inner, inner, inner),
        st.builds(compare, inner, inner),
        st.builds(join, inner, inner, st.integers(0, 14)),
        st.builds(widen, inner, st.booleans()),
        inner.map(invert),
        inner.map(negate),
    )


@settings(max_examples=80)
@given(
    st.recursive(LEAVES, grow, max_leaves=12),
    st.lists(st.tuples(st.integers(0, MASK), st.integers(0, MASK)), min_size=1, max_size=4),
)
def test_an_expression_is_worth_what_the_language_says(
    tmp_path_factory: pytest.TempPathFactory, sample: Sample, inputs: list[tuple[int, int]]
) -> None:
    source = tmp_path_factory.getbasetemp() / "expression.p4"
    fields = "bit<16> x; bit<16> y; bit<16> z;"
    body = f"hdr.data.z = {sample.text};"
    source.write_text(
        SKELETON.format(types="", fields=fields, meta="", functions="", controls="", locals="", body=body)
    )
    frames = [x.to_bytes(2, "big") + y.to_bytes(2, "big") + b"\0\0" for x, y in inputs]
    found = outputs(Compilation(source).run().json, frames)
    assert [int.from_bytes(sent[0][1][4:6], "big") for sent in found] == [sample.worth(x, y) & MASK for x, y in inputs]
