"""The C programs of these tests, compiled against the library."""

import subprocess
from pathlib import Path

from running import sdk
from switch.native.build import compiler

SANITIZERS = ("-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


def compiled(source: Path, folder: Path, *flags: str) -> str:
    """Compiles a program and the library, both with these flags; the path of the program."""
    library, program = sdk.library(*flags), folder / source.stem
    words = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread", *flags, f"-I{sdk.INCLUDE}"]
    link = [f"-L{library}", f"-Wl,-rpath,{library}", "-lmrc"]
    subprocess.run([*compiler(), *words, "-o", str(program), str(source), *link], check=True)
    return str(program)
