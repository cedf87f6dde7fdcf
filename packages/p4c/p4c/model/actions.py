"""Actions and the primitives they are made of."""

from common.records import Frozen
from p4c.model.expressions import Expression
from p4c.model.externs import Calculation, Counter, FieldList, LearnList, Meter
from p4c.model.registers import Register
from p4c.model.source import SourceInfo


class Text(Frozen):
    """The format of a log_msg."""

    value: str
    notation = "{0.value!r}"


class Vector(Frozen):
    """The arguments of a log_msg."""

    items: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


Argument = Expression | Calculation | Counter | Meter | Register | FieldList | LearnList | Text | Vector


class Primitive(Frozen):
    """One step of an action: `op` is a key of `p4c.model.primitives.SIGNATURES`, which gives the arguments."""

    op: str
    args: tuple[Argument, ...]
    source: SourceInfo | None = None

    def __str__(self) -> str:
        if self.op == "assign":
            return f"{self.args[0]} = {self.args[1]}"
        return f"{self.op}({', '.join(map(str, self.args))})"


class ActionParameter(Frozen):
    name: str
    width_bits: int


class Action(Frozen, eq=False):
    """Names repeat (a compiler may copy an action for each table); ids do not."""

    name: str
    id: int
    parameters: tuple[ActionParameter, ...]
    primitives: tuple[Primitive, ...]
