"""The answer to a request that breaks a rule. libmrc finds an errno in its text: (EPERM), (EBUSY), (ENOMEM)."""

from __future__ import annotations

from common import uverbs


class RefusedError(ValueError):
    """A request that cannot be carried out; nothing was changed."""


def has_room(limits: uverbs.ProgramLimits, name: str, held: int) -> None:
    """Raises RefusedError for a program that holds as many of these as it may."""
    limit: int = getattr(limits, name)
    if held >= limit:
        raise RefusedError(f"a program may have {limit} {name} at a time; destroy one first (ENOMEM)")
