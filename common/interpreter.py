"""The Python interpreter for child processes: the lab's own, which never imports from the current directory."""

from __future__ import annotations

import sys


def python(*words: str) -> list[str]:
    """The command line that runs Python with these words, such as `-m endpoint agent`.

    `-P` keeps the current directory off `sys.path`: the lab is started, also as root, in folders that belong to other
    users, and a file there called `rich.py` must not run.
    """
    return [sys.executable, "-P", *words]
