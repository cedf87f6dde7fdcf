"""The one exception of the P4Runtime server: a canonical code and a message for people.

Codes are those of google.rpc.Code, as the P4Runtime specification assigns them ("Error Reporting Messages"). A message
names the thing, the rule and, where there is a choice, the valid choices.
"""

from collections.abc import Iterable
from enum import IntEnum
from functools import partial

CHOICES_SHOWN_MAX = 12
TEXT_BYTES_MAX = 1024
"""A client by default accepts 8 KiB of gRPC metadata, and a batch's message is there two or three times."""


class Code(IntEnum):
    """google.rpc.Code, as far as the specification uses it."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class P4RuntimeError(RuntimeError):
    """A request, or one update of a batch, that the server refuses; nothing was changed."""

    def __init__(self, code: Code, message: str) -> None:
        self.code = code
        self.message = shortened(message)
        super().__init__(f"{code.name}: {self.message}")


# The refusals by code; a call gives the message.
invalid = partial(P4RuntimeError, Code.INVALID_ARGUMENT)
not_found = partial(P4RuntimeError, Code.NOT_FOUND)
exists = partial(P4RuntimeError, Code.ALREADY_EXISTS)
denied = partial(P4RuntimeError, Code.PERMISSION_DENIED)
exhausted = partial(P4RuntimeError, Code.RESOURCE_EXHAUSTED)
unready = partial(P4RuntimeError, Code.FAILED_PRECONDITION)
unimplemented = partial(P4RuntimeError, Code.UNIMPLEMENTED)


def shortened(message: str) -> str:
    """The beginning of a message that has more than TEXT_BYTES_MAX bytes in UTF-8."""
    data = message.encode()
    if len(data) <= TEXT_BYTES_MAX:
        return message
    return data[: TEXT_BYTES_MAX - len("…".encode())].decode(errors="ignore") + "…"


def choices(names: Iterable[object]) -> str:
    """The valid choices as text, cut off so that a message stays readable."""
    listed = [str(name) for name in names]
    if not listed:
        return "none"
    if len(listed) <= CHOICES_SHOWN_MAX:
        return ", ".join(listed)
    return ", ".join(listed[:CHOICES_SHOWN_MAX]) + f" and {len(listed) - CHOICES_SHOWN_MAX} more"
