"""The two programs compiled by either compiler, and the engines that run them."""

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from p4c.frontend import compile_program
from p4c.model import Program, load_program
from switch.engine import Engine
from switch.native.engine import NativeEngine
from switch.reference import ReferenceEngine

ROOT = Path(__file__).parents[3]
PROGRAMS = ("leaf", "spine")
COMPILERS = (
    "mrclab",
    pytest.param(
        "p4c", marks=[pytest.mark.p4c, pytest.mark.skipif(shutil.which("p4c") is None, reason="p4c is not on PATH")]
    ),
)
ENGINES = ("reference", "native")


@dataclass(frozen=True)
class Artefacts:
    json: bytes
    p4info: str
    program: Program


def compiled(name: str, compiler: str = "mrclab") -> Artefacts:
    return compiled_from(ROOT / "p4" / f"{name}.p4", compiler)


@cache
def compiled_from(source: Path, compiler: str = "mrclab") -> Artefacts:
    json, p4info = _p4c(source) if compiler == "p4c" else _mrclab(source)
    return Artefacts(json, p4info, load_program(json))


def _mrclab(source: Path) -> tuple[bytes, str]:
    done = compile_program(source)
    return done.json_text.encode(), done.p4info_text


def _p4c(source: Path) -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory() as directory:
        p4info = Path(directory, "p4info.txtpb")
        words = ["p4c", "--target", "bmv2", "--arch", "v1model", "--std", "p4-16", "--p4runtime-files", str(p4info)]
        done = subprocess.run([*words, "-o", directory, str(source)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return Path(directory, f"{source.stem}.json").read_bytes(), p4info.read_text()


def engine(kind: str, seed: int = 1) -> Engine:
    if kind == "reference":
        return ReferenceEngine(seed=seed)
    return NativeEngine(seed=seed)
