"""The answer to a request that breaks a rule, or that the kernel refuses.

An errno in its text, such as (EBUSY), is the one that libmrc returns; without any, libmrc returns EINVAL.
"""

import errno

from common import uverbs


class Violation(Exception):  # noqa: N818 (the program's deed, not our error)
    """A message that the library never sends: its sender is cut off."""


ERRNOS = (
    "EACCES",
    "EAGAIN",
    "EBUSY",
    "EFBIG",
    "EINVAL",
    "EIO",
    "EMFILE",
    "ENFILE",
    "ENOBUFS",
    "ENOMEM",
    "ENOSPC",
    "EPERM",
)
"""Each errno that an answer may name; `libmrc/source/uverbs.c` knows the same."""


class RefusedError(ValueError):
    """A request that cannot be carried out; nothing was changed."""


def has_room(limits: uverbs.ProgramLimits, name: str, held: int) -> None:
    """Raises RefusedError for a program that holds as many of these as it may."""
    limit: int = getattr(limits, name)
    if held >= limit:
        raise RefusedError(f"a program may have {limit} {name} at a time; destroy one first (ENOMEM)")


def of_kernel(error: OSError) -> str:
    """The error of a system call as a program is told it: the reason, and its errno or EIO."""
    name = errno.errorcode.get(error.errno or 0, "")
    return f"{error.strerror or error} ({name if name in ERRNOS else 'EIO'})"
