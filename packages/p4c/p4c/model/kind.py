"""The base of all parts of an expression: the kind of the value, and how the part reads in messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum

from common.records import Frozen


class Kind(Enum):
    """The kind of value of an expression, by its name in BMv2 JSON."""

    DATA = "data"
    BOOL = "bool"
    HEADER = "header"
    STACK = "header_stack"
    UNION = "header_union"
    UNION_STACK = "header_union_stack"


class Expression(Frozen, eq=False):
    """Base of all. `str()` is short P4-like text, for messages."""

    @property
    def kind(self) -> Kind:
        raise NotImplementedError

    @property
    def parts(self) -> Iterator[Expression]:
        """The expressions of which this one consists."""
        values = (getattr(self, f.name) for f in fields(self))
        return (value for value in values if isinstance(value, Expression))
