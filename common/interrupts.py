"""Ctrl-C at the wrong moment: held back until what must not be left half done is done. SIGTERM, SIGHUP, which a closed
terminal sends, and SIGQUIT do the same."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["all_alike", "ending", "held_back", "taking_over"]

Handler = Callable[[int, FrameType | None], object]


def ending() -> list[signal.Signals]:
    """The signals that end this process, beside Ctrl-C. One that was ignored when it started stays ignored (nohup)."""
    every = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    return [number for number in every if signal.getsignal(number) != signal.SIG_IGN]


@contextmanager
def held_back() -> Iterator[None]:
    """Signals that end this process wait until the end of the `with` and then do what they do. For moments. Only the
    main thread hears signals: in another nothing needs to be held back, and nothing is."""
    came: list[int] = []
    with taking_over(lambda number, _: came.append(number), signal.SIGINT, *ending()):
        yield
    for number in came:
        signal.raise_signal(number)


@contextmanager
def all_alike() -> Iterator[None]:
    """The first signal that ends this process interrupts like Ctrl-C, so that all clean up alike. Only Ctrl-C breaks
    into that: `timeout` sends two signals, and the end of a session SIGTERM and SIGHUP."""
    numbers = ending()

    def first(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, lambda *_: None)  # not SIG_IGN, which processes that the clean-up starts would inherit
        signal.default_int_handler(number, frame)

    with taking_over(first, *numbers):
        yield


@contextmanager
def taking_over(handler: Handler, *numbers: signal.Signals) -> Iterator[None]:
    """Have this handler hear these signals. Only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)
