"""Whole programs: small ones by their packets, bad ones by their messages, random ones beside p4c and arithmetic."""

import contextlib
import json
import os
import random
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from p4c.frontend import Compiled, CompileError
from p4c.frontend.compilation import Compilation
from p4c.frontend.diagnostics import PHASES
from p4c.frontend.parse import ast
from p4c.model import UnsupportedError, load
from switch.engine import Engine, PortConfig
from switch.native.engine import NativeEngine
from switch.p4rt.bindings import p4info_pb2
from switch.reference import ReferenceEngine
from switch.stf import parse, run
from switch.stf.programs import make_engine
from tests.helpers.frontend.expression_meaning import meaning
from tests.helpers.frontend.random_containers import RandomContainers
from tests.helpers.frontend.random_expressions import RandomExpressions
from tests.helpers.frontend.random_parsers import RandomParser
from tests.helpers.frontend.random_programs import RandomProgram
from tests.helpers.waiting import ran

PROGRAMS = Path(__file__).parent / "programs"
PACKET_TESTS = sorted(PROGRAMS.glob("*.stf"))
SOURCES = sorted(p for p in PROGRAMS.glob("*.p4") if p.stem != "common")
NOT_FOR_P4C = {"conditional_blocks", "union_stack"}  # they say why themselves
SHARED = [p for p in SOURCES if p.stem not in NOT_FOR_P4C]
NOT_FOR_NATIVE = {"union_stack"}  # refused by name: keys that are fields of the last union of a stack
needs_p4c = pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c is not on PATH")
needs_bmv2 = pytest.mark.skipif(shutil.which("simple_switch") is None, reason="simple_switch is not on PATH")


@cache
def ours(source: Path) -> Compiled:
    return Compilation(source).run()


@cache
def theirs(source: Path, directory: Path) -> tuple[dict[str, object], str]:
    out, info = directory / f"{source.stem}.json", directory / f"{source.stem}.txtpb"
    words = ["p4c-bm2-ss", "--std", "p4-16", "--p4runtime-files", str(info), "-o", str(out), str(source)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text()), info.read_text()


def engine(kind: str) -> Engine:
    return NativeEngine(seed=0) if kind == "native" else ReferenceEngine(seed=0)


@pytest.mark.parametrize("kind", ["reference", "native"])
@pytest.mark.parametrize("path", PACKET_TESTS, ids=lambda p: p.stem)
def test_packets_come_out_as_the_file_says(path: Path, kind: str) -> None:
    program = load(ours(path.with_suffix(".p4")).json)
    if kind == "native" and path.stem in NOT_FOR_NATIVE:
        with pytest.raises(UnsupportedError):
            engine(kind).load(program)
        return
    failures = run(engine(kind), program, parse(path.read_text()))
    assert not failures, "\n".join(map(str, failures))


@needs_p4c
@pytest.mark.p4c
@pytest.mark.parametrize("path", [p for p in PACKET_TESTS if p.stem not in NOT_FOR_P4C], ids=lambda p: p.stem)
def test_p4c_json_gives_the_same_packets(path: Path, tmp_path: Path) -> None:
    document, _ = theirs(path.with_suffix(".p4"), tmp_path)
    failures = run(engine("reference"), load(document), parse(path.read_text()))
    assert not failures, "\n".join(map(str, failures))


def unordered(message: object) -> object:
    """A message as nested sets: the order of tables, actions and the like means nothing."""
    if not hasattr(message, "ListFields"):
        return message
    parts: list[Any] = []
    for field, value in message.ListFields():
        repeated = field.label == field.LABEL_REPEATED and not isinstance(value, dict) and hasattr(value, "append")
        if repeated or isinstance(value, list):
            parts.append((field.name, frozenset((repr(unordered(v)), sum(v == w for w in value)) for v in value)))
        elif hasattr(value, "items"):
            parts.append((field.name, frozenset((k, repr(unordered(v))) for k, v in value.items())))
        else:
            parts.append((field.name, unordered(value)))
    return frozenset(parts)


@needs_p4c
@pytest.mark.p4c
@pytest.mark.parametrize("source", SHARED, ids=lambda p: p.stem)
def test_p4info_says_what_p4c_says(source: Path, tmp_path: Path) -> None:
    _, info = theirs(source, tmp_path)
    expected = text_format.Parse(info, p4info_pb2.P4Info())
    found = text_format.Parse(ours(source).p4info_text, p4info_pb2.P4Info())
    assert sorted(map(str, found.tables)) == sorted(map(str, expected.tables))
    assert unordered(found) == unordered(expected)


@needs_bmv2
@pytest.mark.bmv2
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_bmv2_loads_the_json(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "program.json"
    target.write_text(ours(source).json_text)
    # With an interface that is not there BMv2 ends right after loading: what it says before tells whether it loaded.
    words = ["simple_switch", "--log-console", "--thrift-port", "0", "-i", "0@no-such-interface", str(target)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as switch:
        said = []
        assert switch.stdout is not None
        for line in switch.stdout:
            said.append(line)
            if "Adding interface" in line:
                break
        switch.kill()
    assert any("Adding interface" in line for line in said), "".join(said)


def test_warnings_name_what_bmv2_does_otherwise() -> None:
    assert "holds these entries for constant" in ours(PROGRAMS / "match_kinds.p4").warnings
    assert ours(PROGRAMS / "calculator.p4").warnings == ""


BAD = Path(__file__).parent / "bad"
EVERY = sorted(p.relative_to(BAD) for p in BAD.glob("*/*.p4"))
DOUBTFUL = [p for p in EVERY if str(p.parent) == "lint"]
CASES = [p for p in EVERY if p not in DOUBTFUL]
PLACE = re.compile(r"^(\S+):(\d+):(\d+)(?:\+(\d+))?(: (?:error|warning).*)$", re.MULTILINE)


def shown(place: re.Match[str]) -> str:
    """A place as it is printed: the message, the line of the program, and a mark below it."""
    file, line, column, more, message = place.groups()
    text = (BAD / file).read_text().splitlines()[int(line) - 1]
    mark = " " * (int(column) - 1) + "^" + "~" * int(more or 0)
    return f"{file}:{line}:{column}{message}\n    {text}\n    {mark}"


def place_of(printed: re.Match[str]) -> str:
    return printed[1] + f"+{len(printed[3])}" * bool(printed[3]) + printed[2]


def test_every_phase_has_bad_programs() -> None:
    assert {str(p.parent) for p in EVERY} == set(PHASES)


@pytest.mark.parametrize("path", CASES, ids=str)
def test_a_bad_program_is_rejected_by_its_phase_with_the_golden_message(path, monkeypatch) -> None:
    monkeypatch.chdir(BAD)
    with pytest.raises(CompileError) as caught:
        Compilation(path).run()
    errors = [d for d in caught.value.diagnostics if d.severity == "error"]
    assert {d.phase for d in errors} == {str(path.parent)}
    assert all(d.span.line > 0 and d.span.column > 0 for d in errors)
    compare_with_golden(path, f"{caught.value}\n")


def compare_with_golden(path: Path, text: str) -> None:
    golden = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        printed = re.sub(r"(:\d+)(: .*)\n {4}.*\n +\^(~*)$", place_of, text, flags=re.MULTILINE)
        golden.write_text(printed)
    assert text == PLACE.sub(shown, golden.read_text())


@pytest.mark.parametrize("path", DOUBTFUL, ids=str)
def test_a_doubtful_program_is_compiled_with_the_golden_warnings(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside what is warned of, each program has what looks alike and is right."""
    monkeypatch.chdir(BAD)
    compilation = Compilation(path)
    assert compilation.run().warnings
    assert {d.phase for d in compilation.diagnostics.items} == {"lint"}
    compare_with_golden(path, f"{compilation.diagnostics.render()}\n")


SEEDS = range(12)


def outputs(document: dict[str, object], frames: list[bytes], name: str = "") -> list[list[tuple[int, bytes]]]:
    """The frames that leave for each one that comes in on port 1."""
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


@pytest.mark.parametrize("chosen", [False, True], ids=["", "chosen at run time"])
@pytest.mark.parametrize("seed", [0, 3, 10, 46])
def test_random_containers_mean_what_the_specification_says(seed: int, chosen: bool, tmp_path: Path) -> None:
    """On both engines; unions that are chosen at run time may be refused by the native one."""
    program, rng = RandomContainers(seed, chosen=chosen), random.Random(seed)
    (tmp_path / "random.p4").write_text(program.text)
    made = Compilation(tmp_path / "random.p4").run().json
    frames = [program.frame(rng) for _ in range(30)]
    expected = [[(2, program.expected(frame))] for frame in frames]
    assert outputs(made, frames) == expected
    with contextlib.suppress(*[UnsupportedError] * chosen):
        assert outputs(made, frames, "native") == expected


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
