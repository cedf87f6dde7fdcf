"""Waiting for what another process or thread does."""

import threading
import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], what: str, seconds: float = 20) -> None:
    """Until the condition holds. AssertionError with `what` was waited for, when the time is over."""
    deadline_s = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline_s, what
        threading.Event().wait(0.002)
