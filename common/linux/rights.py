"""Whose files are trusted, and the rights of processes that answer others: given up before the first request."""

import contextlib
import os
import resource
import stat
from collections.abc import Mapping
from pathlib import Path

__all__ = ["allow_many_files", "drop_rights", "is_our_folder", "is_trusted", "ordinary_user"]

NOBODY = 65534
ID_END = 2**32 - 1
"""Ids are below: this one means "as it was" to `chown`."""
_PR_SET_DUMPABLE = 4


def sudo_id(name: str, environment: Mapping[str, str] = os.environ) -> int | None:
    """The id that `SUDO_UID` or `SUDO_GID` gives root; None where it is not set. ValueError for what is no id."""
    text = environment.get(name, "")
    if os.geteuid() != 0 or not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 11 and int(text) < ID_END):
        raise ValueError(
            f"{name} must be a decimal id from 0 to {ID_END - 1}, as sudo sets it (got {text[:20]!r}): unset {name}, or"
            " start the command with sudo"
        )
    return int(text)


def ordinary_user(environment: Mapping[str, str] = os.environ) -> tuple[int, int] | None:
    """The user and the group that a server of root takes on: those of sudo's caller, else nobody's. None if this
    process is not root's."""
    if os.geteuid() != 0:
        return None
    uid, gid = sudo_id("SUDO_UID", environment), sudo_id("SUDO_GID", environment)
    return (uid, gid) if uid and gid else (NOBODY, NOBODY)


def is_trusted(user: int, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this is root, this process's user, or the user who called sudo. Root has another number in some
    containers."""
    return user in (0, os.geteuid(), os.stat("/").st_uid, sudo_id("SUDO_UID", environment))


def is_our_folder(path: Path, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this is a folder, and no link, of root, of this process's user, or of the user who called sudo."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and is_trusted(status.st_uid, environment)


def allow_many_files() -> int:
    """Raise the limit of open files to what is allowed, and return the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def drop_rights(uid: int, gid: int) -> None:
    """From root to an ordinary user, for good."""
    import ctypes  # late, for nothing else needs it, and not later: that user may not be able to read it

    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    # As root without sudo that user is `nobody`, like other processes: these must not read this process's memory.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
