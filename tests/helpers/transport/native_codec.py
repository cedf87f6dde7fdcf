"""C modules of the endpoint as they are in the tree, compiled alone and with all warnings, whatever build it has."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from types import ModuleType

_ENDPOINT = Path(__file__).parents[3] / "endpoint"
_NATIVE = _ENDPOINT / "nic" / "native"
SOURCE = Path(__file__).with_name("codec_tested.c")
RING = _ENDPOINT / "packet_sockets" / "native" / "ring_native.c"
SANITIZE = "MRCLAB_CODEC_SANITIZE"
"""In the environment: compile with sanitizers; the process must have been started with libasan loaded."""


def compiler() -> list[str]:
    """The command of the C compiler; empty without one."""
    words = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    return words if shutil.which(words[0]) else []


def load(folder: Path, source: Path = SOURCE) -> ModuleType | None:
    """The module of a C file, compiled into `folder`; None without a C compiler or Python's headers."""
    words, include = compiler(), Path(sysconfig.get_paths()["include"])
    if not words or not (include / "Python.h").exists():
        return None
    flags = ["-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", f"-I{include}", f"-I{_NATIVE}"]
    if os.environ.get(SANITIZE):
        flags += ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    made = folder / f"{source.stem}.so"
    subprocess.run([*words, *flags, str(source), "-o", str(made)], check=True)
    spec = importlib.util.spec_from_file_location(source.stem, made)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
