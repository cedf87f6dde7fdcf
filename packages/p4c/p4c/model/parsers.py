"""Parsers and deparsers."""

from common.records import Frozen
from p4c.model.actions import Primitive
from p4c.model.expressions import Expression, FieldRef, Kind, LastField
from p4c.model.headers import Field, Header, Stack, UnionStack

__all__ = [
    "Advance", "Call", "Extract", "KeyPart", "LastUnionField", "Lookahead", "Operation", "Set", "StackNext", "State",
    "UnionStackNext", "Verify",
]  # fmt: skip

# --- operations of a state ------------------------------------------------------------------------------------


class Lookahead(Frozen):
    """Bits that are not consumed. Too few of them left is PacketTooShort."""

    offset_bits: int
    width_bits: int


class StackNext(Frozen):
    """The next free element of a stack (StackOutOfBounds when it is full)."""

    stack: Stack


class UnionStackNext(Frozen):
    """The next element of a stack of unions, as the target of an extraction."""

    stack: UnionStack
    member_index: int


class Extract(Frozen):
    """`varbit_width`, in bits, is given for headers with a varbit field only; it must be a multiple of 8."""

    into: Header | StackNext | UnionStackNext
    varbit_width: Expression | None = None


class Set(Frozen):
    """An assignment in a parser state."""

    target: FieldRef
    value: Expression | Lookahead


class Verify(Frozen):
    """Ends parsing with an error unless the condition holds."""

    condition: Expression
    error: Expression  # a value of Program.errors


class Advance(Frozen):
    """Skip `bits`, a multiple of 8."""

    bits: Expression


class Call(Frozen):
    """A primitive that a parser state calls."""

    primitive: Primitive


Operation = Extract | Set | Verify | Advance | Call

# --- transitions ------------------------------------------------------------------------------------------------


class LastUnionField(Expression):
    """A field of a member of the last union of a union stack. BMv2 reads it as a part of a key only."""

    stack: UnionStack
    member_index: int
    field: Field
    kind = Kind.DATA

    def __str__(self) -> str:
        return f"{self.stack.name}.last.{self.stack.unions[0].members[self.member_index]}.{self.field.name}"


KeySource = FieldRef | LastField | LastUnionField | Lookahead


class KeyPart(Frozen):
    """One part of the key that a parser state selects on."""

    source: KeySource
    width_bits: int


class Transition(Frozen):
    """Taken when every part of the key, masked, equals its value."""

    values: tuple[int, ...]  # one per part of the state's key; already masked
    masks: tuple[int, ...]  # likewise
    next_state: str | None  # None: accept
    value_set: str | None = None  # instead of values: taken when one of its members equals the key


class State(Frozen, eq=False):
    """Transitions are tried in order, then `default` (None: accept)."""

    name: str
    index: int
    operations: tuple[Operation, ...]
    key: tuple[KeyPart, ...]
    transitions: tuple[Transition, ...]
    default: str | None


class Parser(Frozen, eq=False):
    name: str
    init_state: str | None
    states: tuple[State, ...]

    def state(self, name: str) -> State:
        return next(s for s in self.states if s.name == name)


class Deparser(Frozen, eq=False):
    """Emits the valid headers of `order`, then the payload."""

    name: str
    order: tuple[Header, ...]
    primitives: tuple[Primitive, ...] = ()  # run after checksums, before the headers are written
