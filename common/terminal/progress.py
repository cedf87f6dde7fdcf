"""Lines on standard error while something takes long: how far it is, and when it will have ended."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from common.terminal.standard_streams import write_error

__all__ = ["LINE_S", "time_left", "with_progress"]

T = TypeVar("T")
LINE_S = 10.0


def with_progress(things: Iterable[T], count: int, what: str, position: Callable[[], int] | None = None) -> Iterator[T]:
    """Pass things on. Where they take long, say how many of `count` there were, and when all will have been.

    `position` tells how far this is, where that is not the number of things.
    """
    began_s = said_s = time.monotonic()
    for number, thing in enumerate(things):
        now_s = time.monotonic()
        if number and now_s - said_s >= LINE_S:
            said_s = now_s
            done = number if position is None else position()
            write_error(f"mrclab: {done} of {count} {what}{time_left(now_s - began_s, done, count)}")
        yield thing


def time_left(took_s: float, done: float, count: float) -> str:
    """The rest of a work, by the time that a part of it took, as the end of a line; "" where no part is done."""
    left_s = took_s / done * max(0.0, count - done) if done else 0.0
    if not left_s:
        return ""
    return f", about {left_s / 60:.0f} min left" if left_s >= 90 else f", about {max(1, round(left_s))} s left"
