"""How programs are started: the lab's own Python, never importing from the current directory; a user's command."""

from __future__ import annotations

import os
import shutil
import sys
from typing import NoReturn

__all__ = ["become", "python"]


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
        found = shutil.which(words[0])
        why = f"there is no command {words[0]!r} on PATH"
        why = why if found is None else f"{found} names an interpreter that is missing"
        raise FileNotFoundError(f"exec: {why}") from None
