"""Makes a build of a unit: compiled aside, tried, then published in one step.

Any number of processes may ask at once: one compiles, the others wait and find its build. Whatever a killed process
left is removed by the next one.
"""

import importlib.metadata
import os
import shlex
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from common import files, locks
from common.compiled.finder import SWITCH, library
from common.compiled.unit import Build, Unit, find, record, record_path
from common.interpreter import python

__all__ = ["ExtensionBuildError", "build", "compilers"]

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("worker.py")
BUILD_S = 1800.0
"""For another process that compiles: a minute of one processor, and far longer on an emulated one."""
UNNAMED_S = 86400
"""A folder that no record names any more may still be in use by a process for so long."""
QUICK = "tcc"
"""The Tiny C Compiler takes 2 s of what takes gcc a minute, and its code twice as long; Debian and Ubuntu have it."""
_TRY = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"


class ExtensionBuildError(RuntimeError):
    """Something that compiling needs is missing, or a compiler refused; the message says which, and what to do."""


def compilers() -> str:
    """The versions of mypyc and of the C compiler. Raises BuildError for what is missing."""
    words = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(words[0]) is None:
        raise ExtensionBuildError(f"there is no C compiler {words[0]!r}; apt-get install gcc libc6-dev")
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        raise ExtensionBuildError(f"{header} is missing; apt-get install python3-dev")
    try:
        mypy = importlib.metadata.version("mypy")
    except importlib.metadata.PackageNotFoundError:
        raise ExtensionBuildError("mypy is not installed; pip install mypy") from None
    said = subprocess.run([words[0], "--version"], capture_output=True, text=True, check=False).stdout
    return f"mypyc {mypy}, {said.splitlines()[0] if said else words[0]}"


def build(unit: Unit, tell: Callable[[str], None], *, quick: bool = False, after: int = 0) -> Build:
    """The build of a unit for its sources as they are; made if there is none, or other compilers made it.

    Takes about half a minute of two processors. `quick` is content with any build, and if there is none makes one in a
    fourth of that time, whose code is slower, where the machine has a compiler for that. `after` is a process that
    installs C compilers: none is looked for before it has ended. Raises BuildError, and then leaves what there was.
    """
    with_what = "" if after else compilers()
    directory = files.make_cache(files.cache_directory())
    with locks.held(directory / f"{unit.name}.lock", f"the lock of the {unit.name}'s builds", BUILD_S, tell):
        key = unit.key()
        previous = find(unit, key, quick=quick)
        if previous is not None and (quick or previous.compilers == with_what):
            return previous
        _prune(unit, directory)
        if quick and (after or shutil.which(QUICK)):
            try:
                return _made(unit, key, directory, tell, QUICK, after)
            except ExtensionBuildError as error:
                tell(f"the quick build failed, so the usual compiler follows: {str(error).splitlines()[-1]}")
        return _made(unit, key, directory, tell, "", after)


def _made(unit: Unit, key: str, directory: Path, tell: Callable[[str], None], quick: str, after: int) -> Build:
    """A new build, by the compiler `quick` if that is there, once the process `after` has ended."""
    with tempfile.TemporaryDirectory(dir=directory, prefix=f".{unit.name}-") as scratch:
        made = _compile(unit, key, Path(scratch), tell, quick, after)
        with_what, quickly = compilers(), Path(scratch, "quick").exists()
        tell("trying the modules")
        _try_out(unit, key, Path(scratch), made, with_what)
        return _publish(unit, key, directory, made, f"{with_what}, {quick}" if quickly else with_what, quick=quickly)


def _prune(unit: Unit, directory: Path) -> None:
    """Remove what was left by killed processes, builds that are old, and folders that no record names any more."""
    for left in directory.glob(f".{unit.name}-*"):
        shutil.rmtree(left, ignore_errors=True)  # this process has the lock: no process works on it
    now_s = time.time()
    files.drop_unused(directory, f"{unit.name}-*.build", now_s)
    named = {path.read_text().partition("\n")[0] for path in directory.glob(f"{unit.name}-*.build")}
    for folder in directory.glob(f"{unit.name}-*.d"):
        if folder.name not in named and now_s - folder.stat().st_mtime > UNNAMED_S:
            shutil.rmtree(folder, ignore_errors=True)


def _compile(
    unit: Unit, key: str, scratch: Path, tell: Callable[[str], None], quick: str, after: int
) -> dict[str, Path]:
    """The extensions in the scratch folder, by the names of their modules."""
    for package in unit.packages:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(unit.root) / package, scratch / package, ignore=ignored)
    if unit._replace(root=str(scratch)).key() != key:
        raise ExtensionBuildError("the sources were edited while they were copied; try again")
    sources = {**unit.sources(), **unit.extensions()}
    tell(f"compiling {len(sources)} modules of {unit.name}{' quickly' * bool(quick)}")
    name = library(unit, key)
    words = python(str(WORKER), name, ",".join(unit.seldom()), quick, str(after), *sources.values(), *unit.direct())
    log = scratch / "log"
    with log.open("wb") as output:
        status = _run(words, scratch, output.fileno())
    if status:
        said = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise ExtensionBuildError(f"compiling {unit.name} failed ({status}):\n{said}")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    files = [*unit.extensions(), name]
    paths = {module: scratch / "made" / f"{module.replace('.', '/')}{suffix}" for module in files}
    if missing := [module for module, path in paths.items() if not path.exists()]:
        raise ExtensionBuildError(f"compiling {unit.name} made no {', '.join(missing)}")
    for path in paths.values():
        path.chmod(0o755)  # what others may write is not loaded
    return paths


def _run(words: list[str], scratch: Path, output: int) -> int:
    """The worker's exit status. Whatever ends this call also ends the worker and the C compiler that it runs."""
    # Temporary files of compilers: elsewhere, other users may be able to exchange them.
    environment = {**os.environ, "MRCLAB_PARENT": str(os.getpid()), "TMPDIR": str(scratch)}
    worker = subprocess.Popen(
        words, cwd=scratch, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        start_new_session=True,
    )  # fmt: skip
    try:
        return worker.wait()
    except BaseException:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        raise


def _try_out(unit: Unit, key: str, scratch: Path, made: dict[str, Path], with_what: str) -> None:
    """Import every module from a separate cache, as a user of the build will."""
    own = scratch / "cache" / "mrclab"
    folder = own / "tried.d"
    files.make_cache(own)
    folder.mkdir(mode=0o755)
    copies = {module: folder / f"{module}.so" for module in made}
    for module, path in made.items():
        os.link(path, copies[module])
    tried = Build(str(folder), with_what, {module: str(path) for module, path in copies.items()})
    (own / os.path.basename(record_path(unit, key))).write_text(record(tried))
    environment = {
        **os.environ,
        SWITCH: "on",
        "XDG_CACHE_HOME": str(scratch / "cache"),
        "PYTHONPATH": os.pathsep.join([unit.root, str(ROOT)]),
    }
    words = python("-c", _TRY, *unit.sources(), *unit.extensions())
    done = subprocess.run(words, cwd=unit.root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ExtensionBuildError(f"the compiled {unit.name} cannot be imported:\n{done.stderr[-2000:]}")


def _publish(unit: Unit, key: str, directory: Path, made: dict[str, Path], with_what: str, *, quick: bool) -> Build:
    """A folder of a new name first, then the record that names it: a reader of the record finds all of it."""
    folder = Path(tempfile.mkdtemp(dir=directory, prefix=f"{unit.name}-", suffix=".d"))
    folder.chmod(0o755)
    target = {module: folder / f"{module}.so" for module in made}
    for module, path in made.items():
        os.replace(path, target[module])
    published = Build(str(folder), with_what, {module: str(path) for module, path in target.items()}, quick)
    files.write(Path(record_path(unit, key, quick=quick)), record(published))
    return published
