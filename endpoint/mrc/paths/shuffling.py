"""Shuffling and choosing with a generator's own bits, for compiled code; draws what `random.Random` draws."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def shuffle(items: list[T], getrandbits: Callable[[int], int]) -> None:
    """Put the items into a random order in place (Fisher and Yates, from the last place on).

    A number below n is drawn as n's bits, again until it is below n; all n of as many bits come in one loop.
    """
    top = len(items)
    while top > 1:
        bits = top.bit_length()
        least = 1 << bits - 1
        for at in range(top - 1, least - 2, -1):
            other = getrandbits(bits)
            while other > at:
                other = getrandbits(bits)
            items[at], items[other] = items[other], items[at]
        top = least - 1


def choose(items: list[T], getrandbits: Callable[[int], int]) -> T:
    """One of the items, of which there is at least one."""
    count = len(items)
    bits = count.bit_length()
    at = getrandbits(bits)
    while at >= count:
        at = getrandbits(bits)
    return items[at]
