"""NAME=VALUE words of a command line."""

import json
from collections.abc import Iterable
from typing import Any

__all__ = ["json_or_text", "parse_pairs"]


def parse_pairs(words: Iterable[str], option: str, example: str) -> dict[str, str]:
    """ValueError, with an example, for a word that is no pair, and for a name with two values."""
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise ValueError(f"{option} must be NAME=VALUE, such as {example} (got {word!r})")
        if key in pairs:
            raise ValueError(f"{option} must give each name once (got {f'{key}={pairs[key]}'!r} and {word!r})")
        pairs[key] = value
    return pairs


def json_or_text(text: str) -> Any:
    """A value as JSON where it is some, else as it stands."""
    try:
        return json.loads(text)
    except ValueError:
        return text
