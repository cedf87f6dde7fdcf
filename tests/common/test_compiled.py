"""A compiled unit: used for the very sources that it was made of and for no others, whole or not at all."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common.compiled import build as building, finder
from common.compiled.unit import Unit, record_path
from tests.helpers.waiting import eventually, heeding_interrupts

ROOT = Path(__file__).parents[2]
PACKAGE = """
import os
from common.compiled.finder import use
from common.compiled.unit import Unit
UNIT = Unit("shapes", os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ("shapes",), ("shapes/flat",))
FORM = use(UNIT)
"""
SQUARE = """
def area(side: int) -> int:
    return side * side
"""
CUBE = """
#include <Python.h>
static PyObject *volume(PyObject *self, PyObject *side)
{
    long length = PyLong_AsLong(side);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(length * length * length);
}
static PyMethodDef methods[] = {{"volume", volume, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef cube = {PyModuleDef_HEAD_INIT, "cube", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_cube(void) { return PyModule_Create(&cube); }
"""
ROUND = """
def turned(side: int, clockwise: bool) -> int:
    return 0

def whole(sides: list[int]) -> int:
    return sum([turned(side, True) for side in sides])
"""
ROUND_HEADER = """
#include <stddef.h>
size_t round_turned(size_t side, char clockwise);
"""
ROUND_IN_C = """
#include "round_direct.h"
size_t round_turned(size_t side, char clockwise) { return clockwise ? side : side + 2; }
"""
BUILD = "import shapes; from common.compiled.build import build; print(build(shapes.UNIT, print).folder)"
QUICKLY = BUILD.replace("print).folder", "print, quick=True).folder")
FORM = "import shapes; from shapes.flat import round; print(*shapes.FORM[::2], round.whole([3, 4]))"
LOOK = """
import shapes
from shapes.flat import square
print(shapes.FORM.compiled, square.area(3), square.__file__.endswith(".so"), shapes.FORM.why)
"""

LOOK_AT_DIRECT = """
import shapes
from shapes.flat import round
print(round.whole([3, 4]), round.turned(3, True))
"""
LOOK_IN_C = """
import shapes
try:
    from shapes.flat import cube
except ImportError:
    print("no cube")
else:
    print(cube.volume(3), cube.__name__)
"""


class Tree:
    """A project of one package with a module to compile and a module in C, and a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.square = folder / "shapes" / "flat" / "square.py"
        self.cube = folder / "shapes" / "flat" / "cube.c"
        self.round = folder / "shapes" / "flat" / "round.py"
        self.direct = folder / "shapes" / "flat" / "native" / "round_direct.c"
        self.cache = folder / "cache" / "mrclab"

    def make(self) -> Tree:
        self.square.parent.mkdir(parents=True)
        (self.folder / "shapes" / "__init__.py").write_text(PACKAGE)
        (self.square.parent / "__init__.py").write_text("")
        self.square.write_text(SQUARE)
        self.cube.write_text(CUBE)
        self.round.write_text(ROUND)
        self.direct.parent.mkdir()
        self.direct.write_text(ROUND_IN_C)
        self.direct.with_suffix(".h").write_text(ROUND_HEADER)
        return self

    def unit(self) -> Unit:
        return Unit("shapes", str(self.folder), ("shapes",), ("shapes/flat",))

    def environment(self, **more: str) -> dict[str, str]:
        own = {"XDG_CACHE_HOME": str(self.folder / "cache"), "PYTHONPATH": f"{self.folder}:{ROOT}"}
        return {**os.environ, finder.SWITCH: "", **own, **more}

    def start(self, program: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program], cwd=self.folder, env=self.environment(**more), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=heeding_interrupts,
        )  # fmt: skip

    def run(self, program: str, **more: str) -> str:
        process = self.start(program, **more)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        return output.strip()

    @property
    def leftovers(self) -> list[str]:
        """What is in the cache beside records, builds and the lock."""
        return [path.name for path in self.cache.iterdir() if path.suffix not in (".build", ".d", ".lock")]


def test_a_header_of_the_c_belongs_to_the_key(tmp_path: Path) -> None:
    tree = Tree(tmp_path).make()
    tree.cube.with_name("cube.h").write_text("enum { EDGES = 12 };")
    key = tree.unit().key()
    tree.cube.with_name("cube.h").write_text("enum { EDGES = 13 };")
    assert tree.unit().key() != key


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    try:
        building.compilers()
    except building.ExtensionBuildError as error:
        pytest.skip(str(error))
    tree = Tree(tmp_path_factory.mktemp("built")).make()
    tree.run(BUILD)
    return tree


@pytest.fixture
def tree(built: Tree, tmp_path: Path) -> Tree:
    """A copy of the tree that has a build; the build fits, for it depends on no place."""
    shutil.copytree(built.folder, tmp_path / "copy")
    return Tree(tmp_path / "copy")


def test_a_build_is_used_alone_and_an_edit_takes_effect_at_once_until_the_old_source_is_back(tree: Tree) -> None:
    assert tree.run(LOOK).startswith("True 9 True mypyc")
    assert tree.leftovers == []
    tree.square.write_text(SQUARE.replace("side * side", "side + 100"))
    assert tree.run(LOOK).startswith("False 103 False there is no build of these sources")
    tree.square.write_text(SQUARE)
    assert tree.run(LOOK).startswith("True 9 True")


@pytest.mark.slow
def test_the_environment_switches_the_build_off_or_demands_one(tree: Tree) -> None:
    assert tree.run(LOOK, MRCLAB_COMPILED="off").startswith("False 9 False MRCLAB_COMPILED is off")
    tree.square.write_text(SQUARE + "# edited\n")
    process = tree.start(LOOK, MRCLAB_COMPILED="on")
    assert "RuntimeError: MRCLAB_COMPILED is on, but shapes cannot be used" in process.communicate(timeout=60)[1]
    process = tree.start(LOOK, MRCLAB_COMPILED="maybe")
    assert "MRCLAB_COMPILED is 'maybe'; valid: auto, off, on" in process.communicate(timeout=60)[1]


def test_a_module_in_c_is_there_only_with_the_build_of_the_very_c(tree: Tree) -> None:
    assert tree.run(LOOK_IN_C) == "27 shapes.flat.cube"
    assert tree.run(LOOK_IN_C, MRCLAB_COMPILED="off") == "no cube"
    tree.cube.write_text(CUBE.replace("length * length * length", "length + 1"))
    assert tree.run(LOOK_IN_C) == "no cube"
    assert tree.run(LOOK).startswith("False 9 False there is no build of these sources")
    tree.run(BUILD)
    assert tree.run(LOOK_IN_C) == "4 shapes.flat.cube"


@pytest.mark.slow
def test_compiled_code_calls_a_function_in_c_that_a_header_declares(tree: Tree) -> None:
    assert tree.run(LOOK_AT_DIRECT) == "7 0"  # by name it is the Python one, which is the oracle of the other
    assert tree.run(LOOK_AT_DIRECT, MRCLAB_COMPILED="off") == "0 0"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(building.QUICK) is None, reason="needs tcc")
def test_a_quick_build_does_until_a_full_one_is_there(tree: Tree) -> None:
    tree.cube.write_text(CUBE.replace("length * length * length", "length + 1"))
    said = tree.run(QUICKLY)
    assert "quickly" in said
    assert tree.run(FORM) == "True True 7"
    assert tree.run(QUICKLY).splitlines() == said.splitlines()[-1:]  # it is found again
    full = tree.run(BUILD).splitlines()[-1]
    assert tree.run(FORM) == "True False 7"
    assert tree.run(QUICKLY) == full
    assert tree.leftovers == []


@pytest.mark.slow
def test_where_the_quick_compiler_fails_the_usual_one_follows(tree: Tree) -> None:
    tree.cube.write_text(CUBE.replace("length * length * length", "length + 1"))
    broken = tree.folder / "bin" / building.QUICK
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert "the usual compiler follows" in tree.run(QUICKLY, PATH=f"{broken.parent}:{os.environ['PATH']}")
    assert tree.run(FORM) == "True False 7"
    assert tree.leftovers == []


@pytest.mark.slow
def test_a_header_that_declares_what_python_does_not_have_is_refused(tree: Tree) -> None:
    tree.round.write_text(ROUND.replace("turned", "rolled"))
    assert "round.py has no function turned" in tree.start(BUILD).communicate(timeout=120)[1]


def library(tree: Tree) -> Path:
    """The file that has the code of all compiled modules."""
    (found,) = tree.cache.glob("shapes-*.d/*__mypyc.so")
    return found


def damaged_size(tree: Tree) -> None:
    library(tree).write_bytes(b"")


def damaged_library(tree: Tree) -> None:
    """Of the right size, but no extension."""
    library(tree).write_bytes(bytes(library(tree).stat().st_size))


def missing_file(tree: Tree) -> None:
    library(tree).unlink()


def half_a_record(tree: Tree) -> None:
    (record,) = tree.cache.glob("*.build")
    record.write_text(record.read_text()[:-4])


@pytest.mark.slow
@pytest.mark.parametrize("damage", [damaged_size, damaged_library, missing_file, half_a_record])
def test_a_broken_build_is_never_used(tree: Tree, damage: Callable[[Tree], None]) -> None:
    damage(tree)
    assert tree.run(LOOK).startswith("False 9 False")


def test_a_broken_build_is_made_anew(tree: Tree) -> None:
    damaged_size(tree)
    tree.run(BUILD)
    assert tree.run(LOOK).startswith("True 9 True")


def test_several_who_build_at_once_share_one_build(tree: Tree) -> None:
    tree.square.write_text(SQUARE.replace("side * side", "2 * side"))
    processes = [tree.start(BUILD) for _ in range(3)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    assert len({output.split()[-1] for output, _ in outputs}) == 1
    assert tree.run(LOOK).startswith("True 6 True")
    assert tree.leftovers == []


def workers(tree: Tree) -> list[int]:
    """Processes at work in the tree's cache, the C compiler among them."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and os.readlink(folder / "cwd").startswith(str(tree.cache)):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.fixture
def at_work(tree: Tree) -> Iterator[subprocess.Popen[str]]:
    """A process that is in the midst of compiling, with a C compiler that never ends."""
    begun = tree.folder / "begun"
    compiler = tree.folder / "slow-cc"
    compiler.write_text(f'#!/bin/sh\n[ "$1" != --version ] || exec gcc --version\n: > {begun}\nexec sleep 600\n')
    compiler.chmod(0o755)
    tree.square.write_text(SQUARE.replace("side * side", "5"))
    process = tree.start(BUILD, CC=str(compiler))
    eventually(begun.exists, "it never began", 60)
    assert workers(tree)
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_a_build_leaves_no_process_and_the_next_build_works(tree, at_work, number) -> None:
    at_work.send_signal(number)
    at_work.wait(60)
    eventually(lambda: not workers(tree), "a process is left", 60)
    assert tree.run(LOOK).startswith("False 5 False")
    tree.run(BUILD)
    assert tree.run(LOOK).startswith("True 5 True")
    assert tree.leftovers == []


def test_what_cannot_be_compiled_is_said_with_the_compilers_words_and_changes_nothing(tree: Tree) -> None:
    tree.square.write_text("def area(side: int) -> int:\n    return str(side)\n")
    process = tree.start(BUILD)
    errors = process.communicate(timeout=120)[1]
    assert 'Incompatible return value type (got "str", expected "int")' in errors
    tree.square.write_text(SQUARE)
    assert tree.run(LOOK).startswith("True 9 True")
    tree.cube.write_text(CUBE.replace("PyLong_FromLong(length", "PyLong_FromLong(breadth"))
    errors = tree.start(BUILD).communicate(timeout=120)[1]
    assert "compiling shapes failed" in errors
    assert "breadth" in errors
    tree.cube.write_text(CUBE)
    assert tree.run(LOOK_IN_C) == "27 shapes.flat.cube"


def test_a_missing_compiler_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(building.ExtensionBuildError, match="no C compiler 'no-such-compiler'; apt-get install gcc"):
        building.compilers()


def test_what_a_release_lacks_first_is_the_compiler_and_then_mypy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel brings neither; `compile` itself is no remedy for the second."""
    monkeypatch.setattr("importlib.metadata.version", lambda name: importlib.metadata.distribution("no-such-" + name))
    with pytest.raises(building.ExtensionBuildError, match=r"^mypy is not installed; pip install mypy$"):
        building.compilers()
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(building.ExtensionBuildError, match="no C compiler"):
        building.compilers()


def test_old_builds_of_other_sources_go_and_those_in_use_stay(tree: Tree) -> None:
    fresh = Path(tree.run("import shapes; print(shapes.UNIT.key())"))
    old = tree.cache / "shapes-0123456789abcdef.build"
    shutil.copy(tree.cache / f"shapes-{fresh}.build", old)
    os.utime(old, (0, 0))
    unnamed = tree.cache / "shapes-unnamed.d"
    unnamed.mkdir()
    os.utime(unnamed, (0, 0))
    tree.square.write_text(SQUARE + "# another\n")
    tree.run(BUILD)
    assert not old.exists()
    assert not unnamed.exists()
    tree.square.write_text(SQUARE)
    assert tree.run(LOOK).startswith("True 9 True")


@pytest.mark.slow  # in ring 1 the endpoint's build is found by its record
def test_the_record_is_named_by_unit_and_key(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tree.folder / "cache"))
    assert Path(record_path(tree.unit(), tree.unit().key())).is_file()
