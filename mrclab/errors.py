"""Errors between a program and its NIC."""


class MRCError(RuntimeError):
    """The base of all errors that this package raises."""


class RefusedError(MRCError):
    """The NIC refused a request, or the library did before it was sent; nothing was changed."""


class QueueFullError(MRCError):
    """A queue has no room for another work request: poll completions, then post again."""


class DeviceGoneError(MRCError):
    """There is no NIC in this network namespace, or its agent has ended, or it has cut this program off."""


class JobFailedError(RuntimeError):
    """A call of a job has failed, or this rank cannot go on; the message says why."""
