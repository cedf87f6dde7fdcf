"""Commands given in a folder that holds another user's Python files: none of those files runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.interpreter import python
from tests.helpers.rooms import python_files

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("rich", "argparse", "json", "numpy", "encodings", "ensurepip", "venv", "pip", "sitecustomize")
PACKAGES = ("common", "scenarios", "cli", "endpoint", "switch", "running")
SHORT = ("--time", "0.2", "--plain", "--runs", "runs")
UNKNOWN = 3  # the verdict of a run that short
NAMES = (*(f"{name}.py" for name in MODULES), *(f"{name}/__init__.py" for name in PACKAGES))


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    folder = tmp_path / "colleague"
    for name in NAMES:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write(__file__ + '\\n')\nraise SystemExit(77)\n")
    return folder


def run(words: list[str], folder: Path, user: int | None = None) -> subprocess.CompletedProcess[str]:
    """A command given in that folder, perhaps by another user, without Python's own variables."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        words, cwd=folder, env=environment, user=user, capture_output=True, text=True, check=False, timeout=300
    )


def lab() -> list[str]:
    """The `lab` script as it is, with the environment that runs this test, where `./lab` installed that one."""
    if not list(Path(sys.prefix).glob(".installed-dev-*")):
        pytest.skip("./lab did not install the environment of this Python, and would install another one")
    return ["env", f"MRCLAB_VENV={sys.prefix}", str(ROOT / "lab")]


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("run", "smoke", "--world", "simulated", "--seed", "1", *SHORT),
        pytest.param(("sweep", "smoke", "--seeds", "2", *SHORT), marks=pytest.mark.slow),
        ("switch", "compile", str(ROOT / "p4/leaf.p4"), "-o", "made"),
    ],
    ids=lambda words: words[0],
)
def test_no_file_of_the_current_folder_runs(hostile: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run([*lab(), *words], hostile)
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
    assert done.returncode in (0, UNKNOWN), done.stderr


def test_the_files_would_run_in_an_interpreter_that_imports_from_the_folder(hostile: Path, tmp_path: Path) -> None:
    assert run([sys.executable, "-c", "import rich"], hostile).returncode == 77
    assert (tmp_path / "ran").exists()


def test_every_child_that_is_python_is_started_by_the_common_interpreter() -> None:
    """`common/interpreter.py` adds -P; a command line that names sys.executable itself would lack it."""
    allowed = {"common/interpreter.py", "cli/commands/exec.py", "running/programs.py", "common/compiled/worker.py"}
    allowed.add("scenarios/ddp.py")  # one of several Pythons that may have PyTorch; adds -P to each
    allowed |= {"cli/compiled_form.py", "cli/huge_pages.py"}  # start their own command line again, -P included
    allowed.add("running/parallel/runs.py")  # the folder of mpiexec
    allowed.add("packages/course/course/box/box.py")  # a sandbox, with more flags than the common interpreter
    allowed.add("running/sdk.py")  # the folder of its commands, for PATH
    found = {file.relative_to(ROOT).as_posix() for file in python_files() if "sys.executable" in file.read_text()}
    assert "common/interpreter.py" in found
    assert found <= allowed


def test_a_picture_obeys_no_settings_of_the_current_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "matplotlibrc")  # which waits for a writer when it is opened
    words = python("-m", "cli", "graph", "tiny", "-o", "drawn.svg")
    subprocess.run(words, cwd=tmp_path, stdout=subprocess.DEVNULL, check=True, timeout=60)
    assert (tmp_path / "drawn.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: gives files to another user")
def test_a_picture_takes_nothing_from_a_cache_of_another_user(tmp_path: Path) -> None:
    """The list of fonts; as a FIFO it held root for ever."""
    cache = tmp_path / "matplotlib"
    cache.mkdir()
    words = ["import matplotlib.font_manager as fonts", "print(f'fontlist-v{fonts.FontManager.__version__}.json')"]
    name = subprocess.run(python("-c", ";".join(words)), capture_output=True, text=True, check=True).stdout.strip()
    os.mkfifo(cache / name)
    for path in (tmp_path, cache, cache / name):
        os.chown(path, 65534, 65534)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    words = python("-m", "cli", "topo", "draw", "tiny", "-o", str(tmp_path / "drawn.svg"))
    subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=300)


@pytest.mark.parametrize(
    "code",
    [
        "from switch.native.build import build_program; build_program('int one = 1;', 'one')",
        pytest.param("from running import sdk; sdk.library()", marks=pytest.mark.slow),
    ],
)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_no_compiler_reads_the_current_folder_or_writes_where_another_user_may(code: str, tmp_path: Path) -> None:
    """The linker takes a library of the current folder for its own: root's switches would load what that one names."""
    current, log, wrapper = tmp_path / "current", tmp_path / "log", tmp_path / "wrapper"
    current.mkdir()
    os.mkfifo(current / "libgcc_s.so.1")
    wrapper.write_text(f'#!/bin/sh\ncase $* in --version) ;; *) echo "$PWD $TMPDIR" >>{log} ;; esac\nexec gcc "$@"\n')
    wrapper.chmod(0o755)
    environment = {**os.environ, "CC": str(wrapper), "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    subprocess.run(python("-c", code), cwd=current, env=environment, check=True, timeout=300)
    places = {tuple(line.split()) for line in log.read_text().splitlines()}
    assert places == {(place, place) for place, _ in places}
    assert all(place.startswith(str(tmp_path / "cache/mrclab/.build-")) for place, _ in places)


def test_matplotlib_is_imported_with_the_settings_that_come_with_it() -> None:
    for file in python_files():
        first = re.search(r"^ *(from|import) matplotlib\b", file.read_text(), re.MULTILINE)
        if first is not None and file.name != "interpreter.py":
            assert "from common.interpreter import mpl" in file.read_text()[: first.start()], file
