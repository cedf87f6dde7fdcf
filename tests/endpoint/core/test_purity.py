"""The transports do no I/O: they import nothing that could, read no clock, and draw from no generator of their own."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = sorted([*ROOT.glob("endpoint/core/*.py"), *ROOT.glob("endpoint/roce/*.py"), ROOT / "endpoint/transport.py"])

ALLOWED = {
    "__future__",
    "abc",
    "collections",
    "collections.abc",
    "dataclasses",
    "enum",
    "itertools",
    "math",
    "random",
    "struct",
    "typing",
    "zlib",
    "endpoint.transport",
}
RANDOM_NAMES = {"Random"}


def imports(tree: ast.AST) -> list[tuple[str, list[str]]]:
    """Modules imported at run time, with the names taken from them; not what only type checkers read."""
    checking = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found: list[tuple[str, list[str]]] = []
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.module or "", [alias.name for alias in node.names]))
    return found


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_a_file_imports_only_what_computes(file: Path) -> None:
    tree = ast.parse(file.read_text())
    for module, names in imports(tree):
        known = module in ALLOWED or module.startswith(("endpoint.core", "endpoint.roce"))
        assert known, f"{file.name} imports {module}"
        if module == "random":
            assert set(names) <= RANDOM_NAMES, f"{file.name} takes {names} from random"


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_a_file_makes_no_generator_and_opens_nothing(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"Random", "open", "print", "input", "exec", "eval"}, f"line {node.lineno}"


def test_importing_the_core_loads_no_module_that_does_io_or_tells_the_time() -> None:
    program = (
        "import sys; before = set(sys.modules)\n"
        "import endpoint.core.endpoint\n"
        "print(' '.join(set(sys.modules) - before))"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    loaded = set(output.split())
    assert "endpoint.core.endpoint" in loaded
    assert not loaded & {"socket", "select", "selectors", "asyncio", "threading", "subprocess", "json", "pathlib"}
