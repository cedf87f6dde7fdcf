"""Addresses of the form `unix:/path`, as gRPC writes them, and the length that the kernel gives a path."""

from __future__ import annotations

import os
from pathlib import Path

PREFIX = "unix:"
PATH_BYTES_MAX = 107
"""Bytes of a socket's path: `sun_path` has 108, the last of which is zero."""


def path_of(address: str) -> Path | None:
    """The path of a `unix:` address; None for any other. ValueError when it is not absolute, or too long."""
    if not address.startswith(PREFIX):
        return None
    path = Path(address.removeprefix(PREFIX))
    if not path.is_absolute():
        raise ValueError(f"the path of a unix: address must be absolute (got {path})")
    check(path)
    return path


def check(path: Path) -> None:
    """ValueError when the kernel has no room for the path."""
    length = len(os.fsencode(path))
    if length > PATH_BYTES_MAX:
        raise ValueError(f"the path of a socket must have at most {PATH_BYTES_MAX} bytes (got {length}: {path})")
