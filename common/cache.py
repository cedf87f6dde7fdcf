"""Where what can be made again is kept. Needs nothing that takes time to import: every agent reads this first."""

from __future__ import annotations

import os
import stat
import sys

__all__ = ["SHIPPED"]

_PLACE = "XDG_CACHE_HOME"
SHIPPED = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shipped")
"""The folder of a wheel's machine code, which spares it a compiler; a clone has none (hatch_build.py)."""


def directory() -> str:
    """The folder of the user's cache of this program: `$XDG_CACHE_HOME/mrclab`, or `~/.cache/mrclab`.

    Where that cannot be written, as in read-only containers, it is a folder among the temporary files, which is said
    once and holds for all child processes.
    """
    given = os.environ.get(_PLACE, "")
    # The XDG Base Directory Specification: relative paths are invalid and are ignored.
    root = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), ".cache")
    found = os.path.join(root, "mrclab")
    if _writable(found):
        return found
    instead = _replacement(os.environ.get("TMPDIR") or "/tmp")
    sys.stderr.write(f"mrclab: {found} cannot be written: compiled programs are kept in {instead}\n")
    os.environ[_PLACE] = instead
    return os.path.join(instead, "mrclab")


def _replacement(temporary: str) -> str:
    """A folder that only this user can write, made if there is none yet. Other users may have taken the usual name."""
    prefix = f"mrclab-cache-{os.geteuid()}"
    for name in sorted(os.listdir(temporary)):
        if name.startswith(prefix):
            status = os.lstat(os.path.join(temporary, name))
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022:
                return os.path.join(temporary, name)
    import tempfile  # late: it takes time to import

    return tempfile.mkdtemp(prefix=f"{prefix}-", dir=temporary)


def _writable(folder: str) -> bool:
    """Whether the folder can be written, or could be made; nothing is made, since root would have to hand it over."""
    if os.path.isdir(folder):
        return os.access(folder, os.W_OK | os.X_OK)
    above = os.path.dirname(folder)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    probe = os.path.join(above, f".mrclab-{os.getpid()}")  # root may write everywhere, /proc says otherwise
    try:
        os.mkdir(probe)
        os.rmdir(probe)
    except OSError:
        return False
    return True
