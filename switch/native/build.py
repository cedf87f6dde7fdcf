"""Compiling C with the system's compiler, cached by content.

A shared object is named by the hash of everything that went into it: sources, flags, compiler and its version. It is
written under `$XDG_CACHE_HOME/mrclab` (default `~/.cache/mrclab`) and moved into place in one step, so that any number
of processes may build at once. A build removes files that were not used for a month. A wheel of the lab brings the
runtime and the shipped programs built, which no compiler's version is part of.
"""

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from common import cache as caches
from common import files

RUNTIME = Path(__file__).parent / "runtime"
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-fno-strict-aliasing", "-pthread")
WARNINGS = ("-Wall", "-Wextra", "-Werror=implicit-function-declaration", "-Wno-unused-label", "-Wno-unused-function")
SANITIZED = ("-g", "-O1", "-fno-omit-frame-pointer")
SANITIZERS: Mapping[str, tuple[str, ...]] = {
    "": (),
    "address": (*SANITIZED, "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
    "thread": (*SANITIZED, "-fsanitize=thread"),
}
"""The compiler's options by what the code is to be watched for; "" for nothing."""
COMPILER_S_MAX = 300
"""`leaf.p4` takes 1.2 s on an idle machine; a program made to keep a compiler busy could take hours."""


class EngineBuildError(RuntimeError):
    """No compiler, or it refused or did not end; the message has the command and what the compiler said."""


@cache
def compiler() -> tuple[str, ...]:
    """The command of the C compiler: `$CC`, or the first of cc, gcc, clang on PATH."""
    named = os.environ.get("CC")
    for candidate in [named] if named else ["cc", "gcc", "clang"]:
        words = tuple(shlex.split(candidate))
        if words and (path := shutil.which(words[0])):
            return (os.path.abspath(path), *words[1:])
    tried = named or "cc, gcc, clang"
    raise EngineBuildError(f"no C compiler: {tried} not found; install gcc or clang, or set CC")


@cache
def _compiler_version() -> str:
    return _run((*compiler(), "--version"))


def build_runtime(sanitize: str = "") -> Path:
    """The shared object of the runtime; where Python's headers are, it is also the module `exchange` of this Python."""
    sources = sorted(RUNTIME.rglob("*.c"))
    return _build("runtime", "", sources, sanitize, _python_flags())


@cache
def _python_flags() -> tuple[str, ...]:
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        return ()
    return (f'-DMRCLAB_PYTHON="{sysconfig.get_config_var("SOABI")}"', f"-I{include}")


def build_program(text: str, name: str, sanitize: str = "") -> Path:
    """The shared object of an emitted program."""
    return _build(name, text, [], sanitize)


@cache
def _runtime_digest(sources: bool) -> str:
    """Of the headers, and of the C files too when asked for."""
    digest = hashlib.sha256()
    for path in sorted(RUNTIME.rglob("*.[ch]" if sources else "*.h")):
        digest.update(str(path.relative_to(RUNTIME)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def shipped(name: str, text: str = "") -> Path:
    """Where a wheel has an emitted program, or the runtime if there is no text. Clones have no such file."""
    soabi = "" if text else str(sysconfig.get_config_var("SOABI"))
    digest = hashlib.sha256("\0".join([*FLAGS, soabi, _runtime_digest(not text), text]).encode()).hexdigest()[:24]
    return Path(caches.SHIPPED) / f"{_file_name(Path(name).name)}-{digest}.so"


def _build(name: str, text: str, sources: list[Path], sanitize: str, more: tuple[str, ...] = ()) -> Path:
    if not sanitize and (built := shipped(name, text)).exists():
        return built
    hidden = ("-fvisibility=hidden",) if text else ()
    flags = (*FLAGS, *hidden, *WARNINGS, *SANITIZERS[sanitize], f"-I{RUNTIME}", *more)
    material = [*compiler(), _compiler_version(), *FLAGS, "map", *more, sanitize, _runtime_digest(bool(sources)), text]
    digest = hashlib.sha256("\0".join(material).encode()).hexdigest()[:24]
    directory = files.cache_directory()
    own = f"program-{_file_name(name)}" if text else name
    target = directory / f"{own}-{digest}{f'-{sanitize}' if sanitize else ''}.so"
    if files.in_use(target):
        return target
    files.make_cache(directory)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".build-") as scratch:
        inputs = [str(path) for path in sources]
        if text:
            source = Path(scratch) / "program.c"
            source.write_text(text)
            inputs = [str(source)]
        made = Path(scratch) / "made.so"
        # What is made holds no path of the clone that made it.
        mapped = (f"-ffile-prefix-map={RUNTIME}=runtime", f"-ffile-prefix-map={scratch}=.")
        _run((*compiler(), *flags, *mapped, "-o", str(made), *inputs), scratch)
        made.chmod(0o755)  # what others may write is not loaded
        made.replace(target)
    for names in ("program-*.so", "runtime-*.so"):
        files.drop_unused(directory, names, target.stat().st_mtime)
    return target


def _file_name(name: str) -> str:
    return "".join(ch if ch.isalnum() or ch in "-_" else "_" for ch in name)[:60]


def _run(command: tuple[str, ...], scratch: str | None = None) -> str:
    """The output of the command, which works in the folder `scratch` and keeps its temporary files there: another user
    may be able to exchange those in TMPDIR, and the linker takes `libgcc_s.so.1` of the current folder.

    An exception in this call also ends the command and the compiler proper, its child.
    """
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        cwd=scratch, env=None if scratch is None else {**os.environ, "TMPDIR": scratch},
    )  # fmt: skip
    with process:
        try:
            output, errors = process.communicate(timeout=COMPILER_S_MAX)
        except subprocess.TimeoutExpired:
            raise EngineBuildError(
                f"the C compiler must end within {COMPILER_S_MAX} s: {shlex.join(command)} was stopped"
            ) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        raise EngineBuildError(f"{shlex.join(command)} failed:\n{errors[-4000:]}")
    return output + errors
