"""Texts from a student's code: JSON has a form for lone surrogates, files and pages in UTF-8 have none."""

from typing import Any


def writable(value: Any) -> Any:
    """A value of JSON, with a question mark for each lone surrogate in its texts. RecursionError for deep nesting."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {writable(name): writable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [writable(item) for item in value]
    return value
