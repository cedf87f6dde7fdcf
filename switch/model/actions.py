"""Actions and the primitives they are made of."""

from __future__ import annotations

from switch.model.expressions import Expression
from switch.model.externs import Calculation, Counter, FieldList, Meter
from switch.model.registers import Register
from switch.records import Frozen


class SourceInfo(Frozen):
    filename: str
    line: int
    column: int
    fragment: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


class Text(Frozen):
    """The format of a log_msg."""

    value: str


class Vector(Frozen):
    """The arguments of a log_msg."""

    items: tuple[Expression, ...]


Argument = Expression | Calculation | Counter | Meter | Register | FieldList | Text | Vector


class Primitive(Frozen):
    """One step of an action: `op` is a key of `switch.model.primitives.SIGNATURES`, which gives the arguments."""

    op: str
    args: tuple[Argument, ...]
    source: SourceInfo | None = None


class Parameter(Frozen):
    name: str
    width_bits: int


class Action(Frozen, eq=False):
    """Names repeat (a compiler may copy an action for each table); ids do not."""

    name: str
    id: int
    parameters: tuple[Parameter, ...]
    primitives: tuple[Primitive, ...]
