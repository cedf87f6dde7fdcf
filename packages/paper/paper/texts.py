"""The TOML files of this package. Strings in some of them may be wrapped, and may have fields such as `{NAME}`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

__all__ = ["filled", "load", "read"]

NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


def read(path: Path) -> dict[str, Any]:
    """The content of a file."""
    return tomllib.loads(path.read_text())


def load(path: Path, fields: Mapping[str, Any] = NO_FIELDS) -> dict[str, Any]:
    """The content of a file, filled. KeyError for a field that has no value."""
    content: dict[str, Any] = filled(read(path), fields)
    return content


def filled(value: Any, fields: Mapping[str, Any]) -> Any:
    """The value with each of its strings, keys too, on one line and with its fields filled in."""
    if isinstance(value, str):
        return " ".join(value.split()).format_map(fields)
    if isinstance(value, list):
        return [filled(item, fields) for item in value]
    if isinstance(value, dict):
        return {filled(key, fields): filled(item, fields) for key, item in value.items()}
    return value
