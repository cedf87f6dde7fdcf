"""Rights of processes that answer others: given up for good before the first request."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping

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


def drop_rights(uid: int, gid: int) -> None:
    """From root to an ordinary user, for good."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    # As root without sudo that user is `nobody`, like other processes: these must not read this process's memory.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
