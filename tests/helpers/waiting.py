"""Waiting for what another process or thread does; processes that have ended, or are to be interrupted."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any


def eventually(condition: Callable[[], bool], what: str, seconds: float = 20) -> None:
    """Until the condition holds. AssertionError with `what` was waited for, when the time is over."""
    deadline_s = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline_s, what
        threading.Event().wait(0.002)


def at_once(calls: Iterable[Callable[[], object]], seconds: float | None = 60) -> None:
    """Call all of them, each in a thread, until they have returned."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    assert not any(thread.is_alive() for thread in threads)


def ran(words: Sequence[str | Path], timeout: float = 60, **more: Any) -> subprocess.CompletedProcess[str]:
    """A process that has ended, whatever its status, with what it said."""
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=timeout, **more)


def heeding_interrupts() -> None:
    """For a child (`preexec_fn`): what a shell runs in the background ignores signals, and passes that on."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
