"""Small programs, each with the constructs of one kind of P4 work, by the packets that go in and come out."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from p4c.frontend import Compiled
from p4c.frontend.compilation import Compilation
from p4c.model import load
from p4c.model.errors import UnsupportedError
from switch.engine import Engine
from switch.native.engine import NativeEngine
from switch.p4rt.bindings import p4info_pb2
from switch.reference import ReferenceEngine
from switch.stf import parse, run

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
