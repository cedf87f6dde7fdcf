"""libmrc for programs in C: built when it is first needed, and given to programs that the lab starts."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from common import files, plain_file
from switch.native import EngineBuildError, compiler

__all__ = ["INCLUDE", "STRICT", "environment", "flags", "library", "search_path", "uses_verbs"]

ROOM = Path(__file__).resolve().parents[1] / "libmrc"
SOURCE, INCLUDE = ROOM / "source", ROOM / "include"
LIBRARY = "libmrc.so"
NAMES = ("lib_mrc.so", "libnv_mrc.so")
"""Names by which programs of others look for the library."""
FLAGS = (
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-pthread",
    "-Wall",
    "-Wextra",
)
STRICT = "MRCLAB_STRICT"
"""The environment variable with which the library refuses what a NIC refuses (`libmrc/source/strict.c`)."""
_MARKS = (b"libibverbs.so", b"libmrc.so", *(name.encode() for name in NAMES))
_CONNECTING = {"connect", "accept", "accept4"}
_HEADER_MISSING = "infiniband/verbs.h"


def library(*more: str) -> Path:
    """The folder with the library, built from the sources as they are, with further flags of the compiler. Says on
    standard error when it builds. Raises BuildError."""
    sources = sorted(SOURCE.glob("*.c"))
    flags = (*FLAGS, *more, f"-I{INCLUDE}", f"-I{SOURCE}", f"-Wl,-soname,{LIBRARY}")
    digest = hashlib.sha256(repr((compiler(), flags)).encode())
    for path in sorted([*SOURCE.iterdir(), *INCLUDE.iterdir()]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    cache = files.cache_directory()
    folder = cache / f"libmrc-{digest.hexdigest()[:24]}"
    if files.in_use(folder) and files.in_use(folder / LIBRARY):
        return folder
    sys.stderr.write("mrclab: building libmrc, once for these sources\n")
    files.make_cache(cache)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".build-") as scratch:
        made = Path(scratch) / folder.name
        made.mkdir(mode=0o755)
        exports = f"-Wl,--version-script={SOURCE / 'exports.map'}"
        _compile(*compiler(), *flags, exports, "-o", str(made / LIBRARY), *map(str, sources), scratch=scratch)
        (made / LIBRARY).chmod(0o755)  # what others may write is not loaded
        for name in NAMES:
            (made / name).symlink_to(LIBRARY)
        try:
            made.rename(folder)
        except OSError:
            if not files.in_use(folder / LIBRARY):  # another process may have been first
                raise
    return folder


def _compile(*command: str, scratch: str) -> None:
    # Elsewhere, another user may be able to exchange temporary files; the linker takes a library of the current folder.
    environment = {**os.environ, "TMPDIR": scratch}
    done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
    if done.returncode and _HEADER_MISSING in done.stderr:
        raise EngineBuildError(f"{_HEADER_MISSING} is missing; apt-get install libibverbs-dev")
    if done.returncode:
        raise EngineBuildError(f"{shlex.join(command)} failed:\n{done.stderr[-4000:]}")


def flags() -> str:
    """Flags that compile and link a program with the library, as shell words. Raises BuildError."""
    return shlex.join([f"-I{INCLUDE}", f"-L{library()}", "-lmrc"])


def search_path(before: Mapping[str, str] = os.environ) -> str:
    """Where commands are looked for: the lab's Python and its programs come first."""
    return os.pathsep.join([str(Path(sys.executable).parent), before.get("PATH", os.defpath)])


def found_command(word: str) -> str | None:
    """The file that a command's first word means; None where there is none."""
    return shutil.which(word, path=search_path())


def uses_verbs(program: str | None) -> bool:
    """Whether a file is a binary that names libibverbs or libmrc: linked with one of them, or to load one later."""
    if program is None:
        return False
    try:
        with plain_file.open_named(program) as file:
            if file.read(4) != b"\x7fELF":
                return False
            return any(mark in block for block in _blocks(file) for mark in _MARKS)
    except OSError:
        return False


def connections_of(program: str) -> list[str]:
    """The functions by which a binary opens connections outside of the library."""
    done = subprocess.run(["nm", "-D", "--undefined-only", program], capture_output=True, text=True, check=False)
    imported = {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines() if line.strip()}
    return sorted(imported & _CONNECTING)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    kept = b""
    while block := file.read(1 << 20):
        yield kept + block
        kept = block[-32:]


def environment(folder: Path, before: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables with which a program finds the library in place of libibverbs.

    The library is loaded ahead of all others, so its functions of libibverbs come first. The real libibverbs stays for
    libraries that need its inner parts, such as a vendor's provider.
    """
    return {
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(folder), before.get("LD_LIBRARY_PATH")])),
        "LD_PRELOAD": " ".join(filter(None, [str(folder / LIBRARY), before.get("LD_PRELOAD")])),
    }
