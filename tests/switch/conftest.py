"""Programs for the switch tests, from either compiler, compiled once a session."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from p4c.model import Program, load
from switch.stf.programs import read_program

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/switch/stf"
COMPILERS = (
    "ours",
    pytest.param(
        "p4c", marks=[pytest.mark.p4c, pytest.mark.skipif(shutil.which("p4c") is None, reason="p4c is not on PATH")]
    ),
)


@pytest.fixture(scope="session", params=COMPILERS)
def compiler(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def compiled(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Program]:
    """Compiles a program of tests/switch/stf by name, or leaf.p4 and spine.p4."""
    programs: dict[str, Program] = {}

    def compile_program(name: str) -> Program:
        if name not in programs:
            source = next(p for p in (HERE / name, ROOT / "p4" / name) if p.exists())
            if compiler == "ours":
                programs[name] = read_program(source)
            else:
                folder = tmp_path_factory.mktemp(source.stem)
                command = ["p4c", "--target", "bmv2", "--arch", "v1model", "-I", str(source.parent), "-o", str(folder)]
                subprocess.run([*command, str(source)], check=True, capture_output=True)
                programs[name] = load(folder / f"{source.stem}.json")
        return programs[name]

    return compile_program
