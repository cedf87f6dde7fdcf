"""Ctrl-C at the wrong moment: held back until what must not be left half done is done; SIGTERM does the same."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

__all__ = ["first_only", "held_back", "sigterm_too"]


@contextmanager
def held_back() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the end of the `with` and then do what they do. For moments. Only the main thread
    hears signals: in another nothing needs to be held back, and nothing is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


@contextmanager
def sigterm_too() -> Iterator[None]:
    """The first SIGTERM interrupts like Ctrl-C, so that both clean up alike. Only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, partial(first_only, signal.default_int_handler))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def first_only(handler: Callable[[int, FrameType | None], object], number: int, frame: FrameType | None) -> None:
    """A handler of a signal whose next ones are passed over: `timeout` sends two, and the second would end what the
    first one has begun to clean up."""
    signal.signal(number, signal.SIG_IGN)
    handler(number, frame)
