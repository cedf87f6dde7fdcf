"""Unix sockets of the lab: addresses of the form `unix:/path`, and connections to the user's processes alone."""

import errno
import os
import socket
import stat
import struct
from pathlib import Path

__all__ = ["PREFIX", "ForeignSocketError", "connected", "path_of"]

PREFIX = "unix:"
PATH_BYTES_MAX = 107
"""Bytes of a socket's path: `sun_path` has 108, the last of which is zero."""
TIMEOUT_S = 30.0
_CREDENTIALS = struct.Struct("3i")  # struct ucred: process, user, group


class ForeignSocketError(OSError):
    """A socket that belongs to `user`, who is neither root nor the user of this process; or that is no socket."""

    def __init__(self, place: Path | str, rule: str, user: int | None = None) -> None:
        super().__init__(errno.EPERM, rule, str(place))
        self.user = user


def connected(
    place: Path | str, kind: socket.SocketKind = socket.SOCK_STREAM, limit_s: float = TIMEOUT_S
) -> socket.socket:
    """A connection to a process of root or of this user.

    `place` is a path, or an abstract name that begins with a zero byte.

    A privileged client that trusts any listener carries out a stranger's answers. So the listener must be root or the
    user of this process, and so must the owner of the path, which is no link. Root also takes a path of another user
    where a root process listens: `up` gives its sockets to the user who called sudo. `limit_s` bounds the wait for a
    listener whose queue is full. Raises OSError when no process listens, ForeignSocketError when one of another user
    does.
    """
    made = socket.socket(socket.AF_UNIX, kind)
    try:
        # A blocking connect waits for its turn when many connect at once; one with a timeout of Python's would fail at
        # once.
        seconds, rest = divmod(limit_s, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(seconds), int(rest * 1e6)))
        if isinstance(place, Path):
            _connect_to_path(made, place)
        else:
            made.connect(place)
        listener = listener_of(made)
        if listener not in (0, os.geteuid()):
            raise _foreign(place, listener, "listens")
    except BaseException:
        made.close()
        raise
    return made


def listener_of(connection: socket.socket) -> int:
    """The user of the process that listens at the other end of a connection, or made it."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(packed)[1])


def _connect_to_path(made: socket.socket, path: Path) -> None:
    """Connect to the file that was looked at: another user may put another one in its place meanwhile."""
    file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISSOCK(status.st_mode):
            raise ForeignSocketError(path, "must be a socket, and no link or other file")
        if os.geteuid() not in (0, status.st_uid) and status.st_uid != 0:
            raise _foreign(path, status.st_uid, "owns it")
        made.connect(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


def _foreign(place: Path | str, user: int, does: str) -> ForeignSocketError:
    return ForeignSocketError(place, f"must be a socket of root's or yours (user {user} {does})", user)


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
