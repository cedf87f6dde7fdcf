"""Classes that only hold data: a class under one of these bases is a dataclass, without a decorator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, dataclass_transform

__all__ = ["Frozen", "Mutable"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen:
    """Immutable, and equal to what has the same type and content; with `eq=False` equal only to itself.

    `str()` is `notation`, a format that is given the object, where a class has one.
    """

    notation: ClassVar[str] = ""

    def __str__(self) -> str:
        return self.notation.format(self) if self.notation else repr(self)

    def __init_subclass__(cls, **options: Any) -> None:
        dataclass(frozen=True, **options)(cls)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class Mutable:
    """Changeable, and equal only to itself."""

    def __init_subclass__(cls, **options: Any) -> None:
        dataclass(eq=False, **options)(cls)
