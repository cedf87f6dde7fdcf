"""Random programs and expressions: our JSON against p4c's, and against the specification's arithmetic."""

import contextlib
import json
import random
import shutil
from pathlib import Path

import pytest

from p4c.frontend.compilation import Compilation
from p4c.frontend.parse import ast
from p4c.model import UnsupportedError, load
from switch.engine import PortConfig
from switch.reference import ReferenceEngine
from switch.stf.programs import make_engine
from tests.helpers.frontend.expression_meaning import meaning
from tests.helpers.frontend.random_expressions import RandomExpressions
from tests.helpers.frontend.random_parsers import RandomParser
from tests.helpers.frontend.random_programs import RandomProgram
from tests.helpers.waiting import ran

SEEDS = range(12)
needs_p4c = pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c is not on PATH")


def outputs(document: dict[str, object], frames: list[bytes], name: str = "") -> list[list[tuple[int, bytes]]]:
    """What leaves for each frame that comes in on port 1."""
    engine = make_engine(name) if name else ReferenceEngine(seed=1)
    engine.load(load(document))
    for port in (1, 2):
        engine.configure_port(port, PortConfig(), 0)
    found = []
    for i, frame in enumerate(frames):
        engine.receive(1, frame, i * 1000)
        found.append([(t.port, bytes(t.frame)) for t in engine.advance(i * 1000 + 999)])
    return found


def packets(program: RandomProgram, seed: int) -> list[bytes]:
    """Whole and longer ones, of anything, of zeros and of ones, and one that is too short."""
    rng = random.Random(seed)
    frames = [rng.randbytes(program.header_bytes + rng.randint(0, 4)) for _ in range(12)]
    return [*frames, bytes(program.header_bytes), b"\xff" * program.header_bytes, b"\xff"]


def both(text: str, directory: Path) -> tuple[dict[str, object], dict[str, object]]:
    """Our JSON and p4c's."""
    source, target = directory / "random.p4", directory / "random.json"
    source.write_text(text)
    done = ran(["p4c-bm2-ss", "--std", "p4-16", "-o", target, source])
    assert done.returncode == 0, done.stderr
    return Compilation(source).run().json, json.loads(target.read_text())


@needs_p4c
@pytest.mark.p4c
@pytest.mark.parametrize("seed", SEEDS)
def test_both_compilers_make_the_same_of_a_random_program(seed: int, tmp_path: Path) -> None:
    program = RandomProgram(seed)
    ours, theirs = both(program.text, tmp_path)
    frames = packets(program, seed)
    assert outputs(ours, frames) == outputs(theirs, frames)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_random_loops_do_what_their_rounds_do_one_by_one_on_both_engines(seed: int, tmp_path: Path) -> None:
    """Assertions change no packet. The rounds are written out by the generator."""
    made = {}
    for form in ("for", "rounds"):
        program = RandomProgram(seed, form)
        (tmp_path / f"{form}.p4").write_text(program.text)
        made[form] = Compilation(tmp_path / f"{form}.p4").run().json
    assert "for (" in (tmp_path / "for.p4").read_text()
    frames = packets(program, seed)
    expected = outputs(made["rounds"], frames)
    assert outputs(made["for"], frames) == expected
    with contextlib.suppress(UnsupportedError):  # of an expression beyond 128 bits, also without loops
        assert outputs(made["for"], frames, "native") == expected


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
