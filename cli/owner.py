"""Under sudo, the runs and caches that root has written are given to the user at the end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def hand_over(*paths: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Give these files and folders, with all in them, to the user who called sudo. Does nothing without sudo."""
    uid, gid = environment.get("SUDO_UID"), environment.get("SUDO_GID")
    if os.geteuid() != 0 or uid is None or gid is None:
        return
    for path in paths:
        if not os.path.lexists(path):
            continue
        inside = [] if path.is_symlink() or not path.is_dir() else list(path.rglob("*"))
        for entry in (path, *inside):
            os.chown(entry, int(uid), int(gid), follow_symlinks=False)
