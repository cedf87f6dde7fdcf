"""Where what can be made again is kept. Needs nothing that takes time to import: every agent reads this first."""

import errno
import os
import stat
import sys

__all__ = ["SHIPPED", "is_trusted", "open_to_others"]

_PLACE = "XDG_CACHE_HOME"
_ROOTS = "~root/.cache"
SHIPPED = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shipped")
"""The folder of a wheel's machine code, which spares it a compiler; a clone has none (hatch_build.py)."""


def directory() -> str:
    """The folder of the user's cache of this program: `$XDG_CACHE_HOME/mrclab`, or `~/.cache/mrclab`.

    If that folder cannot be written, as in read-only containers, or if another user could write there, the cache is a
    folder among the temporary files. The command says so once, and its child processes use that folder as well. Root
    takes its own home instead, without a message: `sudo -E` keeps the caller's home each time.
    """
    given = os.environ.get(_PLACE, "")
    # The XDG Base Directory Specification: relative paths are invalid and are ignored.
    root = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.realpath(os.path.join(root, "mrclab"))  # a link could be led elsewhere between a look and a load
    if not (why := _fault(folder)):
        return folder
    home = os.path.expanduser(_ROOTS)
    if os.geteuid() == 0 and not _fault(os.path.join(home, "mrclab")):
        os.environ[_PLACE] = home
        return os.path.join(home, "mrclab")
    places = [os.environ.get("TMPDIR") or "/tmp", "/tmp"]
    safe = next((place for place in places if not _fault(os.path.join(place, _PLACE))), None)
    if safe is None:
        raise PermissionError(errno.EACCES, f"{why}, and so must /tmp, unless it is sticky", ascii(folder)[1:-1])
    instead = _replacement(safe)
    sys.stderr.write(f"mrclab: {ascii(folder)[1:-1]} {why}: compiled programs are kept in {ascii(instead)[1:-1]}\n")
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


def is_trusted(status: os.stat_result) -> bool:
    """Whether only root and this user may write to a file or a folder. Root has another number in some containers."""
    return status.st_uid in (0, os.geteuid(), os.stat("/").st_uid) and not status.st_mode & 0o022


def _remedy(folder: str, status: os.stat_result) -> str:
    """The command after which only its owner may write to a folder, if this user is the owner: with a umask of 002, or
    by an older version, the folder was made writable for the group."""
    if status.st_uid != os.geteuid():
        return ""
    from common.quoting import quoted  # late: it takes time to import

    return f": chmod {'go-w' if status.st_mode & 0o002 else 'g-w'} {quoted(folder)}"


def open_to_others(folder: str) -> str:
    """Where other users could write to a folder without links, which may not be there yet, or put another one in its
    place, in words; "" if they could not. A user who may write to a folder above could, but for sticky ones such as
    /tmp."""
    above = _there(folder)
    while True:
        status = os.stat(above)
        sticky = status.st_mode & stat.S_ISVTX and above != folder
        if not is_trusted(status) and not (sticky and status.st_uid in (0, os.stat("/").st_uid)):
            return f"others may write to {ascii(above)[1:-1]}{_remedy(above, status)}"
        if above == "/":
            return ""
        above = os.path.dirname(above)


def _there(folder: str) -> str:
    """The folder, or the deepest one above it that is there."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def _fault(folder: str) -> str:
    """Why code must not be kept in a folder, which may not be there yet; "" if it may be.

    Nothing is made, since root would have to hand it over.
    """
    if where := open_to_others(folder):
        return f"must be this user's alone ({where})"
    if (place := _there(folder)) == folder:
        return "" if os.access(folder, os.W_OK | os.X_OK) else "cannot be written"
    probe = os.path.join(place, f".mrclab-{os.getpid()}")  # root may write everywhere, /proc says otherwise
    try:
        os.mkdir(probe)
        os.rmdir(probe)
    except OSError:
        return "cannot be written"
    return ""
