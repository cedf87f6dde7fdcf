"""NAME=VALUE words of a command line."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["json_or_text", "parse_pair"]


def parse_pair(text: str, option: str, example: str) -> tuple[str, str]:
    """ValueError, with an example, for a word that is no pair."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"{option} must be NAME=VALUE, such as {example} (got {text!r})")
    return key, value


def json_or_text(text: str) -> Any:
    """A value as JSON where it is some, else as it stands."""
    try:
        return json.loads(text)
    except ValueError:
        return text
