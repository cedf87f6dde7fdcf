"""How programs and Matplotlib are started: nothing of the current directory is imported or obeyed; a user's command."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["at_home", "become", "mpl", "python", "working_in"]

mpl: Any
"""Matplotlib with the settings that come with it. Take it before all else of Matplotlib.

Matplotlib obeys a file `matplotlibrc` of the current directory before all others, and then the user's. Settings can
start programs (`text.usetex`), and a FIFO of that name would hold root for ever; so would one among the files that it
keeps in XDG_CACHE_HOME, unless that is this user's alone.
"""


def __getattr__(name: str) -> Any:
    """Import `mpl` when it is first taken, in the folder of the settings that come with it."""
    if name != "mpl":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if (loaded := sys.modules.get("matplotlib")) is not None:
        return loaded  # without leaving the current folder again, which is that of all threads
    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
    from common.cache import directory  # late: most commands draw nothing

    directory()  # leads XDG_CACHE_HOME elsewhere where another user could write
    with working_in(Path(spec.origin).with_name("mpl-data")):
        import matplotlib

        return matplotlib


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Work in another folder for a moment. The current one may have been removed meanwhile."""
    before = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


@contextmanager
def at_home(folder: str) -> Iterator[None]:
    """Have libraries take this folder for HOME for a moment: after `sudo -E` that is another user's."""
    before = os.environ.get("HOME")
    os.environ["HOME"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["HOME"]
        else:
            os.environ["HOME"] = before


def python(*words: str) -> list[str]:
    """The command line that runs Python with these words, such as `-m endpoint agent`.

    `-P` keeps the current directory off `sys.path`: the lab is started, also as root, in folders that belong to other
    users, and a file there called `rich.py` must not run.
    """
    return [sys.executable, "-P", *words]


def become(words: list[str]) -> NoReturn:
    """Replace this process by a user's command. FileNotFoundError says whether the command or its interpreter lacks."""
    sys.stdout.flush()
    try:
        os.execvp(words[0], words)
    except FileNotFoundError:
        program = shutil.which(words[0])
        why = f"there is no command {words[0]!r} on PATH"
        why = why if program is None else f"{program} names an interpreter that is missing"
        raise FileNotFoundError(f"exec: {why}") from None
