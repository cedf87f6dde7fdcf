"""A wrong solution: the reference with one change, and a word of the cause that the first failure must name."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """`change` makes the wrong text from the reference's and a seed; `cause` is a regular expression."""

    name: str
    change: Callable[[str, int], str]
    cause: str


def instead(old: str, new: str) -> Callable[[str, int], str]:
    """The reference with a piece of text replaced, which must be there."""

    def change(text: str, seed: int) -> str:
        assert old in text, f"the reference lacks {old!r}"
        return text.replace(old, new)

    return change


def whole(text: str) -> Callable[[str, int], str]:
    """Another file altogether."""
    return lambda reference, seed: text
