"""The process that compiles: mypyc over copies of the sources, then the C compiler, in a session of its own.

    MRCLAB_PARENT=PID python -P worker.py LIBRARY FILE...

Writes extensions below `made` in the current folder. Ends, with the C compiler, when its parent does. Imports nothing
of ours: the sources that it finds beside it are the copies.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from types import FrameType

_PR_SET_PDEATHSIG = 1


def _end_all(number: int, frame: FrameType | None) -> None:
    os.killpg(0, signal.SIGKILL)


def main(arguments: list[str]) -> None:
    parent = int(os.environ["MRCLAB_PARENT"])
    signal.signal(signal.SIGTERM, _end_all)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # gone before this process could ask to be told
        return
    from mypyc.build import mypycify
    from setuptools import Extension, setup

    name, *files = arguments
    modules = [file for file in files if not file.endswith(".c")]
    # -g0: debugging symbols would make up nine tenths of a build.
    extensions = mypycify(
        ["--python-executable", sys.executable, "--explicit-package-bases", "--hide-error-context", *modules],
        opt_level="2",
        debug_level="0",
        group_name=name.removesuffix("__mypyc"),
    )
    for extension in extensions:  # calls within an extension need no detour by which another could replace them
        extension.extra_compile_args.append("-fno-semantic-interposition")
        extension.extra_link_args.append("-Wl,-Bsymbolic-functions")
    extensions += [
        Extension(file.removesuffix(".c").replace("/", "."), [file], extra_compile_args=["-O2", "-g0"])
        for file in files
        if file.endswith(".c")
    ]
    words = ["build_ext", "--build-lib", "made", "--build-temp", "temp", "--parallel", str(os.cpu_count() or 1)]
    setup(name=name, ext_modules=extensions, script_args=["--quiet", *words])


if __name__ == "__main__":
    main(sys.argv[1:])
