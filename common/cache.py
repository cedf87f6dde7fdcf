"""Where what can be made again is kept. Needs nothing that takes time to import: every agent reads this first."""

from __future__ import annotations

import os
import stat
import sys

_PLACE = "XDG_CACHE_HOME"


def directory() -> str:
    """The folder of the user's cache of this program: `$XDG_CACHE_HOME/mrclab`, or `~/.cache/mrclab`.

    Where that cannot be written, as in read-only containers, it is a folder among the temporary files, which is said
    once and holds for all child processes. OSError when that place is taken by another user.
    """
    given = os.environ.get(_PLACE, "")
    # The XDG Base Directory Specification: relative paths are invalid and are ignored.
    root = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), ".cache")
    found = os.path.join(root, "mrclab")
    if _writable(found):
        return found
    instead = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"mrclab-cache-{os.geteuid()}")
    os.makedirs(instead, mode=0o700, exist_ok=True)
    status = os.lstat(instead)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise OSError(f"{found} cannot be written, and {instead} must be a folder that only you can write")
    sys.stderr.write(f"mrclab: {found} cannot be written: compiled programs are kept in {instead}\n")
    os.environ[_PLACE] = instead
    return os.path.join(instead, "mrclab")


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
