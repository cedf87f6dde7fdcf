"""What `./lab` takes from its caller's folder and environment, and where it installs: nothing of others' runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.interpreter import python
from tests.helpers.bare_machine import PYTHON, ROOT, Machine
from tests.helpers.tracked import python_files
from tests.helpers.waiting import ran

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
    return ran(words, timeout=300, cwd=folder, env=environment, user=user)


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


@pytest.mark.parametrize("words", [("list",), ("controller", "shell", "p0l0"), ("install",), ("test",)])
def test_a_folder_of_other_files_is_not_installed_into(machine: Machine, words: tuple[str, ...]) -> None:
    place = machine.folder / ("venv-shell" if words[0] == "controller" else "venv")
    (place / "thesis").mkdir(parents=True)
    (place / "thesis/chapter").write_text("of three years")
    done = machine.run(*words)
    assert done.returncode == 2
    assert f"{place} must be an environment of Python with pip, or empty" in done.stderr
    assert (place / "thesis/chapter").read_text() == "of three years"
    assert [path.name for path in place.iterdir()] == ["thesis"]


def test_an_environment_that_the_user_has_made_is_installed_into_and_keeps_its_packages(machine: Machine) -> None:
    machine.fake("python", PYTHON, "venv/bin")
    machine.fake("mine", "", "venv/bin")
    assert machine.run("list").returncode == 0
    assert not any("-m venv" in line for line in machine.log)
    assert (machine.folder / "venv/bin/mine").exists()


def test_an_environment_of_the_user_whose_installation_was_broken_off_loses_nothing(machine: Machine) -> None:
    machine.fake("python", PYTHON.replace('case "$*" in', 'case "$*" in\n*locks/user.txt) exit 130 ;;'), "venv/bin")
    (machine.folder / "venv/thesis").write_text("of three years")
    assert machine.run("list").returncode == 130
    done = machine.run("list")
    assert (done.returncode, "venv must be whole" in done.stderr) == (2, True)
    assert (machine.folder / "venv/thesis").read_text() == "of three years"


def test_an_environment_whose_python_was_replaced_is_made_again(machine: Machine) -> None:
    """The system's Python 3.13 in place of 3.11 finds no pip there."""
    assert machine.run("list").returncode == 0
    (machine.folder / "venv/bin/python").unlink()
    machine.fake("python3", PYTHON.replace("3.11.2", "3.13.5"))
    assert machine.run("list").returncode == 0
    assert any("-m venv" in line for line in machine.log)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ("4711 drwxr-xr-x", "venv must be root's or this user's (user 4711 owns it)"),
        ("0 drwxrwxrwx", "venv must not be writable for all"),
        ("0 drwxrwxrwt", "venv must not be writable for all"),
        ("0 drwxrwxr-x", ""),
        ("1000 drwx------", ""),
    ],
)
def test_no_python_of_an_environment_of_others_is_started(machine: Machine, seen: str, said: str) -> None:
    """Root would run what they put there, already when it is asked whether it has pip."""
    machine.fake("id", "#!/bin/sh\necho 1000\n")
    own = f"*venv*%A*|*%A*venv*) echo '{seen}' ;;\n*venv*) echo {seen.split()[0]} ;;"
    machine.fake("stat", f'#!/bin/sh\ncase "$*" in\n{own}\n*) echo "0 drwxr-xr-x" ;;\nesac\n')
    machine.fake("python", '#!/bin/sh\necho "ran $*" >>"$LOG"\n', "venv/bin")
    done = machine.run("list")
    assert (said in done.stderr, any(line.startswith("ran") for line in machine.log)) == (True, not said)
    assert done.returncode == 2 or not said


@pytest.mark.parametrize(
    ("where", "sticky"), [("open/venv", 0), ("open/own/venv", 0), ("link", 0), ("open/venv", 0o1000)]
)
def test_no_environment_is_used_whose_place_others_can_take(machine: Machine, where: str, sticky: int) -> None:
    """They would rename the folder after the look at its owner, and root would run the Python of another one."""
    place = machine.folder / "open"
    place.mkdir()
    place.chmod(0o777 | sticky)
    machine.fake("stat", f'#!/bin/sh\nexec {shutil.which("stat")} "$@"\n')
    machine.fake("python", '#!/bin/sh\necho "ran $*" >>"$LOG"\n', f"{where if where != 'link' else 'open/venv'}/bin")
    (machine.folder / "link").symlink_to("open/venv")
    done = machine.run("list", environment={"MRCLAB_VENV": str(machine.folder / where)})
    ran = any(line.startswith("ran") for line in machine.log)
    assert ("must lie in folders that not all may write to" in done.stderr, ran) == (not sticky, bool(sticky))
    assert sticky or done.returncode == 2


@pytest.mark.parametrize("words", [("list",), ("topo", "show", "tiny")])
def test_nothing_is_installed_by_way_of_temporary_files_that_others_can_exchange(machine: Machine, words) -> None:
    """Installers run what they unpack there."""
    (machine.folder / "shared").mkdir()
    (machine.folder / "shared").chmod(0o777)
    machine.fake("stat", f'#!/bin/sh\nexec {shutil.which("stat")} "$@"\n')
    done = machine.run(*words, environment={"TMPDIR": str(machine.folder / "shared")})
    assert (done.returncode, "name another by TMPDIR" in done.stderr or "chmod +t" in done.stderr) == (2, True)
    assert not any("install" in line for line in machine.log)


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_uv_takes_nothing_from_a_cache_that_others_may_change(machine: Machine, mode: int) -> None:
    """uv copies unpacked packages from its cache, and checks neither their owner nor their digest again."""
    (machine.folder / "cache").mkdir()
    (machine.folder / "cache").chmod(mode)
    machine.fake("stat", f'#!/bin/sh\nexec {shutil.which("stat")} "$@"\n')
    machine.fake("uv", '#!/bin/sh\necho "uv cache ${UV_NO_CACHE:-used}" >>"$LOG"\n', "venv/bin")
    machine.fake("python", PYTHON, "venv/bin")
    assert machine.run("list", environment={"XDG_CACHE_HOME": str(machine.folder / "cache")}).returncode == 0
    said = {line for line in machine.log if line.startswith("uv cache")}
    assert said == {"uv cache used" if mode == 0o755 else "uv cache true"}


def test_a_clone_whose_path_python_would_split_is_refused(machine: Machine) -> None:
    """At a colon, and import the rest of it from the current folder."""
    place = machine.folder / "a:b"
    place.mkdir()
    (place / "lab").write_bytes((ROOT / "lab").read_bytes())
    (place / "lab").chmod(0o755)
    done = subprocess.run([place / "lab", "list"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "must have no colon" in done.stderr


@pytest.mark.parametrize(
    ("given", "taken"),
    [(":/opt", "/opt"), ("/a b:.::../x:/*:", "/a b:/*"), (":", ""), ("lib", ""), ("/opt", "/opt"), ("", "")],
)
def test_no_entry_of_pythonpath_means_the_current_folder(machine: Machine, given: str, taken: str) -> None:
    machine.fake("python3", PYTHON.replace("echo", 'echo "path ${PYTHONPATH-}" >>"$LOG"\necho', 1))
    assert machine.run("list", environment={"PYTHONPATH": given}).returncode == 0
    paths = {line.removeprefix("path ") for line in machine.log if line.startswith("path ")}
    assert {path for path in paths if not path.startswith(f"{ROOT}:")} == {
        taken
    }  # that: before there is an environment


@pytest.mark.parametrize(("user", "given", "left"), [(0, 0o000, 0o022), (0, 0o077, 0o077), (1000, 0o002, 0o002)])
def test_others_cannot_change_what_root_installs(machine: Machine, user: int, given: int, left: int) -> None:
    machine.fake("id", f"#!/bin/sh\necho {user}\n")
    machine.fake("sudo", '#!/bin/sh\nexec "$@"\n')
    assert machine.run("list", umask=given).returncode == 0
    assert (machine.folder / "venv/bin").stat().st_mode & 0o777 == 0o777 & ~left
