"""Programs for the native engine's tests, compiled by our compiler or, where that is asked for, by p4c."""

import importlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from p4c.model import Program, load

ROOT = Path(__file__).parents[3]


def compile_with_p4c(source: Path, directory: Path) -> Path:
    command = ["p4c", "--target", "bmv2", "--arch", "v1model", "-o", str(directory), str(source)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return directory / f"{source.stem}.json"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Program]:
    """Compile a P4 source once a session."""
    known: dict[Path, Program] = {}

    def compile_source(source: Path) -> Program:
        if source not in known:
            directory = tmp_path_factory.mktemp(source.stem)
            try:
                frontend = importlib.import_module("p4c.frontend")
            except ModuleNotFoundError:
                if not shutil.which("p4c"):
                    pytest.skip("neither p4c.frontend nor p4c is there to compile with")
                known[source] = load(compile_with_p4c(source, directory))
            else:
                known[source] = load(frontend.compile_program(source).json)
        return known[source]

    return compile_source


@pytest.fixture(scope="session")
def leaf(compiled: Callable[[Path], Program]) -> Program:
    return compiled(ROOT / "p4" / "leaf.p4")


@pytest.fixture(scope="session")
def spine(compiled: Callable[[Path], Program]) -> Program:
    return compiled(ROOT / "p4" / "spine.p4")
