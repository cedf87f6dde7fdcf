"""A place in the JSON, which knows its path: every complaint names where and what.

`common.fields` checks objects by key. BMv2's JSON is mostly arrays that are read by position, and a place is named
after the objects around it; both would share four checks of single values, and no code would go away.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from p4c.model.errors import ModelError, UnsupportedError
from p4c.model.source import SourceInfo

_HEX = re.compile(r"-?(0[xX])?[0-9a-fA-F]+")
_SHOWN = 60  # characters of an offending value


T = TypeVar("T")


class JsonCursor:
    __slots__ = ("path", "value")

    def __init__(self, value: Any, path: str) -> None:
        self.value = value
        self.path = path

    # --- complaints ---

    def fail(self, message: str) -> NoReturn:
        raise ModelError(f"{self.path}: {message}")

    def unsupported(self, message: str) -> NoReturn:
        raise UnsupportedError(f"{self.path}: {message}")

    def _wrong(self, expected: str) -> NoReturn:
        shown = repr(self.value)
        self.fail(f"expected {expected}, found {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}")

    # --- going down ---

    def _object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            self._wrong("an object")
        return self.value

    def get(self, key: str) -> JsonCursor:
        """The member `key`, which must be there (it may be null)."""
        members = self._object()
        if key not in members:
            self.fail(f"the attribute {key!r} is missing")
        return JsonCursor(members[key], f"{self.path}.{key}")

    def find(self, key: str) -> JsonCursor | None:
        """The member `key`, or None when it is missing or null."""
        value = self._object().get(key)
        return None if value is None else JsonCursor(value, f"{self.path}.{key}")

    def get_or(self, key: str, read: Callable[[JsonCursor], T], default: T) -> T:
        """The member `key` as `read` takes it, or `default` when it is missing or null."""
        member = self.find(key)
        return default if member is None else read(member)

    def members(self) -> list[tuple[str, JsonCursor]]:
        return [(k, JsonCursor(v, f"{self.path}.{k}")) for k, v in self._object().items()]

    def items(self, size: int | None = None) -> list[JsonCursor]:
        """The items of an array, of exactly `size` when given."""
        if not isinstance(self.value, list):
            self._wrong("an array")
        if size is not None and len(self.value) != size:
            self.fail(f"expected an array of {size} items, found {len(self.value)}")
        return [JsonCursor(v, f"{self.path}[{i}]{_name_of(v)}") for i, v in enumerate(self.value)]

    def list_of(self, key: str) -> list[JsonCursor]:
        """The items of the array `key`; none when it is missing or null."""
        array = self.find(key)
        return [] if array is None else array.items()

    def source(self) -> SourceInfo | None:
        """The object's `source_info`, if it has one."""
        info = self.find("source_info")
        if info is None:
            return None
        line, column = (info.get_or(key, JsonCursor.integer, 0) for key in ("line", "column"))
        filename, fragment = (info.get_or(key, JsonCursor.text, "") for key in ("filename", "source_fragment"))
        return SourceInfo(filename, line, column, fragment)

    # --- leaves ---

    def text(self) -> str:
        if not isinstance(self.value, str):
            self._wrong("a string")
        return self.value

    def integer(self, minimum: int = 0, maximum: int | None = None) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self._wrong("an integer")
        if self.value < minimum or (maximum is not None and self.value > maximum):
            limit = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
            self.fail(f"{self.value} is out of range: {limit}")
        return self.value

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            self._wrong("true or false")
        return self.value

    def hexstr(self) -> int:
        """A hexadecimal string, with or without 0x, possibly negative."""
        if not isinstance(self.value, str) or not _HEX.fullmatch(self.value):
            self._wrong('a hexadecimal string such as "0x1f"')
        return int(self.value, 16)

    def hexbits(self, width_bits: int) -> int:
        """A hexadecimal string of a value that fits `width_bits`."""
        value = self.hexstr()
        if not 0 <= value < 1 << width_bits:
            self.fail(f"{self.value} does not fit {width_bits} bits")
        return value


def _name_of(value: Any) -> str:
    name = value.get("name") if isinstance(value, dict) else None
    return f" ({name})" if isinstance(name, str) else ""
