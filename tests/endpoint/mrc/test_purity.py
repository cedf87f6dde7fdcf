"""What computes does no I/O: it imports nothing that could, reads no clock, and draws from no generator of its own.

Transports, hosts, the prober and the workloads are held to it file by file; `pyproject.toml` forbids the same of
whatever they import in turn.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("nic", "mrc", "roce", "workloads")
ALONE = ("blame", "completion", "decoder", "denylist", "host", "packet_sampling", "prober", "region", "transport")
WORKLOADS = ROOT / "endpoint/workloads"
FILES = sorted(
    [
        *(file for folder in FOLDERS for file in ROOT.glob(f"endpoint/{folder}/**/*.py")),
        *(ROOT / f"endpoint/{name}.py" for name in ALONE),
    ]
)
PURE = tuple(f"endpoint.{name}" for name in (*FOLDERS, *ALONE))

ALLOWED = {
    "__future__", "abc", "bisect", "collections", "collections.abc", "dataclasses", "enum", "heapq", "itertools",
    "gc",  # which object holds which
    "math", "random", "struct", "types", "typing", "zlib",
    "mypy_extensions",  # marks classes for the compiler, and computes nothing
    "common.door",  # a package's names, imported when they are asked for
    "common.fields", "common.latency", "common.linux", "common.linux.bpf", "common.states", "common.seeds",
    "endpoint.profile",
}  # fmt: skip
IN_WORKLOADS = {"numpy", "numpy.typing", "statistics", "weakref"}
OF_SCHEDULES = {"array", "pathlib", "schedules"}  # a schedule is a file that an option names
FROM_ENDPOINT = {"blame", "frame_filter", "prober"}
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
        known = module in ALLOWED or module.startswith(PURE) or (module == "endpoint" and set(names) <= FROM_ENDPOINT)
        known |= file.parent == WORKLOADS and module in IN_WORKLOADS
        known |= (module, names) == ("sys", ["intern"])  # equal strings kept once: nothing that a program can see
        known |= file.name == "schedule.py" and module.partition(".")[0] in OF_SCHEDULES
        assert known, f"{file.name} imports {module}"
        if module == "random":
            assert set(names) <= RANDOM_NAMES, f"{file.name} takes {names} from random"


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_a_file_makes_no_generator_and_opens_nothing(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            seeded = file.parent == WORKLOADS and node.func.id == "Random" and node.args
            composed = file.name == "headers.py" and node.func.id == "exec"  # methods, of a table in the same file
            assert seeded or composed or node.func.id not in {"Random", "open", "print", "input", "exec", "eval"}, (
                f"line {node.lineno}"
            )


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_a_file_takes_seeded_generators_only_from_random(file: Path) -> None:
    tree = ast.parse(file.read_text())
    seeded = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random":
            annotation = isinstance(node.ctx, ast.Load) and node.attr == "Random" and file.parent != WORKLOADS
            assert annotation or (node.attr == "Random" and id(node) in seeded), f"line {node.lineno}: {node.attr}"


def test_importing_a_transport_loads_no_module_that_does_io_or_tells_the_time() -> None:
    program = (
        "import sys; before = set(sys.modules)\n"
        "import endpoint.mrc.endpoint\n"
        "print(' '.join(set(sys.modules) - before))"
    )
    loaded = set(subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True).split())
    assert "endpoint.mrc.endpoint" in loaded
    assert not loaded & {"socket", "select", "selectors", "asyncio", "threading", "subprocess", "json", "pathlib"}
