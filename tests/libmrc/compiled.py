"""The C programs of these tests, compiled against the library, and what they need of a machine."""

import shutil
import subprocess
from pathlib import Path

import pytest

from running import sdk
from switch.native.build import compiler

SANITIZERS = ("-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")

VERBS = any(Path(root, "infiniband/verbs.h").is_file() for root in ("/usr/include", "/usr/local/include"))
REQUIREMENTS = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine"),
    pytest.mark.skipif(not VERBS, reason="no infiniband/verbs.h: apt-get install libibverbs-dev"),
]
PERFTEST = pytest.mark.skipif(shutil.which("ib_write_bw") is None, reason="no ib_write_bw: apt-get install perftest")


def compiled(source: Path, folder: Path, *flags: str) -> str:
    """Compiles a program and the library, both with these flags; the path of the program."""
    library, program = sdk.library(*flags), folder / source.stem
    words = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread", *flags, f"-I{sdk.INCLUDE}"]
    link = [f"-L{library}", f"-Wl,-rpath,{library}", "-lmrc"]
    subprocess.run([*compiler(), *words, "-o", str(program), str(source), *link], check=True)
    return str(program)
