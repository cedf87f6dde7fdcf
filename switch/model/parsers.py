"""Parsers and deparsers."""

from __future__ import annotations

from switch.model.actions import Primitive
from switch.model.expressions import Expression, FieldRef, LastField
from switch.model.headers import Field, Header, Stack, UnionStack
from switch.records import Frozen

# --- operations of a state ------------------------------------------------------------------------------------


class Lookahead(Frozen):
    """Bits that are not consumed. Too few of them left is PacketTooShort."""

    offset_bits: int
    width_bits: int


class StackNext(Frozen):
    """The next free element of a stack (StackOutOfBounds when it is full)."""

    stack: Stack


class UnionStackNext(Frozen):
    stack: UnionStack
    member_index: int


class Extract(Frozen):
    """`varbit_width`, in bits, is given for headers with a varbit field only; it must be a multiple of 8."""

    into: Header | StackNext | UnionStackNext
    varbit_width: Expression | None = None


class Set(Frozen):
    target: FieldRef
    value: Expression | Lookahead


class Verify(Frozen):
    condition: Expression
    error: Expression  # a value of Program.errors


class Advance(Frozen):
    """Skip `bits`, a multiple of 8."""

    bits: Expression


class Call(Frozen):
    primitive: Primitive


Operation = Extract | Set | Verify | Advance | Call

# --- transitions ------------------------------------------------------------------------------------------------


class LastUnionField(Frozen):
    """A field of a member of the last union of a union stack."""

    stack: UnionStack
    member_index: int
    field: Field


class KeyPart(Frozen):
    source: FieldRef | LastField | LastUnionField | Lookahead
    width_bits: int


class Transition(Frozen):
    """Taken when every part of the key, masked, equals its value. No values: the default, which always matches."""

    values: tuple[int, ...] | None  # one a part of the state's key; already masked
    masks: tuple[int, ...] | None  # likewise; None for a default
    next_state: str | None  # None: accept


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
