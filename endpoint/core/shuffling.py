"""Shuffling with a generator's own bits, for compiled code; draws what `random.Random.shuffle` draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def shuffle(items: list[T], getrandbits: Callable[[int], int]) -> None:
    """Put the items into a random order in place (Fisher and Yates, from the last place on).

    A number below n is drawn as n's bits, again until it is below n.
    """
    for at in range(len(items) - 1, 0, -1):
        bits = (at + 1).bit_length()
        other = getrandbits(bits)
        while other > at:
            other = getrandbits(bits)
        items[at], items[other] = items[other], items[at]
