"""Actions and the primitives they are made of."""

from __future__ import annotations

from dataclasses import dataclass

from switch.model.expressions import Expression
from switch.model.externs import Calculation, Counter, FieldList, Meter
from switch.model.registers import Register


@dataclass(frozen=True, slots=True)
class SourceInfo:
    filename: str
    line: int
    column: int
    fragment: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


@dataclass(frozen=True, slots=True)
class Text:
    """The format of a log_msg."""

    value: str


@dataclass(frozen=True, slots=True)
class Vector:
    """The arguments of a log_msg."""

    items: tuple[Expression, ...]


Argument = Expression | Calculation | Counter | Meter | Register | FieldList | Text | Vector


@dataclass(frozen=True, slots=True)
class Primitive:
    """One step of an action: `op` is a key of `switch.model.primitives.SIGNATURES`, which gives the arguments."""

    op: str
    args: tuple[Argument, ...]
    source: SourceInfo | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    width_bits: int


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """Names repeat (a compiler may copy an action for each table); ids do not."""

    name: str
    id: int
    parameters: tuple[Parameter, ...]
    primitives: tuple[Primitive, ...]
