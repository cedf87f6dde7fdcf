"""Checked fields of a JSON or TOML object: every complaint names the place, the value, the rule and the choices."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from common import plain_file

__all__ = ["OWN", "TOML_BYTES_MAX", "Fields", "document", "excerpt", "parse_toml", "read", "read_json"]

REQUIRED: Any = object()
"""The default of a field that must be there."""
_SHOWN = 80  # characters of an offending value
_OBJECT = "an object (in TOML: a table)"
_KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "a string", tuple: "a list"}

OWN: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {}
"""Kinds with separate documents: the functions that write and read one."""

TOML_BYTES_MAX = 512 << 10
"""A plan has 1 kB, and the parser takes up to 400 bytes per byte: `[a.b.c.d]`."""
DOTS_MAX = 16
"""In a line, beside those of numbers and IPv4 addresses: the parser's memory grows with the square of a key's parts."""
_NUMBER = re.compile(r"(?<![\w.-])\d+(\.\d+){1,3}(?![\w.-])")
_DIGITS = re.compile(r"[0-9_]+")
_LONG_NUMBER = re.compile(r"\b0[xob][0-9a-fA-F_]{4300}")

T = TypeVar("T")
S = TypeVar("S", bound=str)


class Fields:
    """An object found at `name` of its document. A broken rule raises `error`, the reader's own class."""

    __slots__ = ("error", "name", "values")

    def __init__(self, name: str, values: object, error: type[Exception], keys: Collection[str] | None = None) -> None:
        """`keys` are the valid keys; without them, every key is valid."""
        self.name = name
        self.error = error
        if not isinstance(values, Mapping):
            raise error(f"{name or 'the document'} is {excerpt(values)}; it must be {_OBJECT}")
        self.values: Mapping[str, Any] = values
        for key in values:
            if keys is not None and key not in keys:
                raise error(f"{self.place(key)} is no key here; valid: {', '.join(keys) or 'none'}")

    def place(self, key: str) -> str:
        """The field's name in the whole document, for complaints."""
        return f"{self.name}.{key}" if self.name else key

    def has(self, key: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(key) is not None

    def fail(self, key: str, rule: str) -> NoReturn:
        """Complain about a field that is there."""
        raise self.error(f"{self.place(key)} is {excerpt(self.values[key])}; it must be {rule}")

    def get(self, key: str, default: Any = REQUIRED, rule: str = "given") -> Any:
        """The field's value, unchecked; the default when the field is missing."""
        if key in self.values:
            return self.values[key]
        if default is REQUIRED:
            present = ", ".join(map(str, self.values)) or "nothing"
            raise self.error(f"{self.place(key)} is missing; present: {present}; it must be {rule}")
        return default

    def integer(self, key: str, low: int | None = None, high: int | None = None, default: int = REQUIRED) -> int:
        return int(self._checked(key, int, default, low, high))

    def number(self, key: str, low: float, high: float, default: float = REQUIRED) -> float:
        value: float = self._checked(key, float, default, low, high)
        return value

    def boolean(self, key: str, default: bool = REQUIRED) -> bool:
        return bool(self._checked(key, bool, default))

    def like(self, key: str, example: T, low: float | None = None, high: float | None = None) -> T:
        """A required field of the same type as `example`."""
        hint = "" if isinstance(example, bool) else f", such as {example!r}"
        value: T = self._checked(key, type(example), REQUIRED, low, high, hint)
        return value

    def string(self, key: str, default: str = REQUIRED) -> str:
        """A string that is not empty; the default may be."""
        value = self.get(key, default, "a non-empty string")
        if not isinstance(value, str) or (not value and value != default):
            self.fail(key, "a non-empty string")
        return value

    def choice(self, key: str, choices: Sequence[S], default: S = REQUIRED) -> S:
        rule = f"one of {', '.join(map(repr, choices))}"
        value = self.get(key, default, rule)
        matches = [choice for choice in choices if choice == value]
        return matches[0] if matches else self.fail(key, rule)

    def converted(self, key: str, convert: Callable[[str], T], default: str = REQUIRED) -> T:
        """A string, converted; the ValueError of `convert` says what is wrong with the string."""
        text = self.string(key, default)
        try:
            return convert(text)
        except ValueError as error:
            raise self.error(f"{self.place(key)} is {excerpt(text)}: {error}") from error

    def fields(self, key: str, keys: Collection[str] | None = None, default: Mapping[str, Any] = REQUIRED) -> Fields:
        """An object inside this one."""
        return Fields(self.place(key), self.get(key, default, _OBJECT), self.error, keys)

    def items(self, key: str, default: Sequence[Any] = REQUIRED) -> Sequence[Any]:
        """A list of anything."""
        items: Sequence[Any] = self._checked(key, tuple, default)
        return items

    def rows(self, key: str, keys: Collection[str] | None = None, default: Sequence[Any] = REQUIRED) -> list[Fields]:
        """A list of objects."""
        items = self.items(key, default)
        return [Fields(f"{self.place(key)}[{index}]", item, self.error, keys) for index, item in enumerate(items)]

    def _checked(
        self, key: str, kind: type, default: Any, low: float | None = None, high: float | None = None, hint: str = ""
    ) -> Any:
        rule = _KINDS[kind] + _span(low, high) + hint
        value = self.get(key, default, rule)
        right = type(value) is kind or (type(value), kind) in ((int, float), (list, tuple))
        if not right or (low is not None and not value >= low) or (high is not None and not value <= high):
            self.fail(key, rule)
        return value


def read_json(path: Path, error: type[Exception]) -> Any:
    """A JSON document from a file. Raises `error` when the file cannot be read or is not JSON."""
    try:
        return plain_file.parse_json(plain_file.read_named(path))
    except OSError as why:
        raise error(f"{path}: cannot be read: {plain_file.why(why)}") from why
    except (ValueError, RecursionError) as why:
        raise error(f"{path}: is not JSON: {why}") from why


def parse_toml(text: str, source: str, error: type[Exception]) -> dict[str, Any]:
    """A TOML document from a user's text. Raises `error`, which begins with `source` and says what is wrong."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > DOTS_MAX and (dots := _NUMBER.sub("", line).count(".")) > DOTS_MAX:
            raise error(f"{source}: line {number} must have at most {DOTS_MAX} dots beside numbers (got {dots})")
        if _LONG_NUMBER.search(line):  # of a base that Python reads at any length, and cannot print
            raise error(f"{source}: line {number} must have no number of more than 4300 digits")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as why:
        raise error(f"{source}: must be TOML ({plain_file.text_fault(why)})") from why
    except ValueError as why:  # Python's own limit of digits, which names no place
        lines = enumerate(text.splitlines(), 1)
        number, _ = max(lines, key=lambda line: max(map(len, _DIGITS.findall(line[1])), default=0))
        raise error(f"{source}: line {number} must have no number of more than 4300 digits") from why


def excerpt(value: object) -> str:
    """A value as a complaint shows it, cut when it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _span(low: float | None, high: float | None) -> str:
    if high is not None:
        return f" from {low} to {high}"
    return "" if low is None else f" of at least {low}"


def document(value: Any) -> Any:
    """A value of dataclasses, mappings, lists, numbers and texts as JSON has it; `read` is the inverse."""
    if type(value) in OWN:
        return OWN[type(value)][0](value)
    if is_dataclass(value):
        return {field.name: document(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): document(item) for name, item in value.items()}
    return [document(item) for item in value] if isinstance(value, list | tuple) else value


def read(kind: Callable[..., T], values: object, error: type[Exception], place: str = "") -> T:
    """A dataclass from what `document` made of one. Keys with defaults may be missing; no other key is known."""
    hints = _hints(kind)
    own: tuple[Field[Any], ...] = fields(kind)  # type: ignore[arg-type]
    members = Fields(place, values, error, [field.name for field in own])
    given = {}
    for field in own:
        optional = field.default is not MISSING or field.default_factory is not MISSING
        if field.name in members.values or not optional:
            value = members.get(field.name, REQUIRED)
            given[field.name] = _read(hints[field.name], value, error, members.place(field.name))
    try:
        return kind(**given)
    except ValueError as why:  # a rule of the dataclass itself
        raise error(f"{place}: {why}" if place else str(why)) from None


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _read(hint: Any, value: Any, error: type[Exception], place: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        (hint,) = (kind for kind in inner if kind is not NoneType)
        return _read(hint, value, error, place)
    if origin is Literal:
        _check(value in inner, value, f"one of {', '.join(map(repr, inner))}", error, place)
        return value
    if origin is Mapping:
        _check(isinstance(value, Mapping), value, "an object", error, place)
        return {name: _read(inner[1], item, error, f"{place}.{name}") for name, item in value.items()}
    if origin in (tuple, Sequence):
        endless = origin is Sequence or inner[-1] is Ellipsis
        right = isinstance(value, list | tuple) and (endless or len(value) == len(inner))
        _check(right, value, "a list" if endless else f"a list of {len(inner)}", error, place)
        kinds = [inner[0]] * len(value) if endless else inner
        pairs = enumerate(zip(kinds, value, strict=True))
        return tuple(_read(kind, item, error, f"{place}[{index}]") for index, (kind, item) in pairs)
    if hint in OWN:
        try:
            return OWN[hint][1](value)
        except ValueError as why:
            raise error(f"{place}: {why}") from None
    if is_dataclass(hint):
        return read(hint, value, error, place)  # type: ignore[arg-type]
    if hint in _KINDS:
        right = type(value) is hint or (hint is float and type(value) is int)
        _check(right, value, _KINDS[hint], error, place)
    return value


def _check(right: bool, value: object, rule: str, error: type[Exception], place: str) -> None:
    if not right:
        raise error(f"{place} is {excerpt(value)}; it must be {rule}")
