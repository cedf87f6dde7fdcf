"""Whose files are trusted, and the rights of processes that answer others: given up before the first request."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Mapping
from pathlib import Path

NOBODY = 65534
_PR_SET_DUMPABLE = 4


def ordinary_user(environment: Mapping[str, str] = os.environ) -> tuple[int, int] | None:
    """(uid, gid) that a server takes on: the user who called sudo, else nobody. None when this is no root."""
    if os.geteuid() != 0:
        return None
    uid, gid = environment.get("SUDO_UID", ""), environment.get("SUDO_GID", "")
    if uid.isdecimal() and gid.isdecimal() and int(uid) and int(gid):
        return int(uid), int(gid)
    return NOBODY, NOBODY


def is_our_folder(path: Path, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this is a folder, and no link, of root, of this process's user, or of the user who called sudo."""
    ours = {0, os.geteuid()}
    if os.geteuid() == 0 and (caller := environment.get("SUDO_UID", "")).isdecimal():
        ours.add(int(caller))
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid in ours


def drop_rights(uid: int, gid: int) -> None:
    """From root to an ordinary user, for good."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    # As root without sudo that user is `nobody`, like other processes: these must not read this process's memory.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
