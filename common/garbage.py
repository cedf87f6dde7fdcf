"""The collector of garbage, while many objects are made that all stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["not_collected"]


@contextmanager
def not_collected() -> Iterator[None]:
    """Make objects without the collector, which would look at all of them again and again: half of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
