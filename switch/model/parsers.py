"""Parsers and deparsers."""

from __future__ import annotations

from dataclasses import dataclass

from switch.model.actions import Primitive
from switch.model.expressions import Expression, FieldRef, LastField
from switch.model.headers import Field, Header, Stack, UnionStack

# --- operations of a state ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lookahead:
    """Bits that are not consumed. Too few of them left is PacketTooShort."""

    offset_bits: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class StackNext:
    """The next free element of a stack (StackOutOfBounds when it is full)."""

    stack: Stack


@dataclass(frozen=True, slots=True)
class UnionStackNext:
    stack: UnionStack
    member_index: int


@dataclass(frozen=True, slots=True)
class Extract:
    """`varbit_width`, in bits, is given for headers with a varbit field only; it must be a multiple of 8."""

    into: Header | StackNext | UnionStackNext
    varbit_width: Expression | None = None


@dataclass(frozen=True, slots=True)
class Set:
    target: FieldRef
    value: Expression | Lookahead


@dataclass(frozen=True, slots=True)
class Verify:
    condition: Expression
    error: Expression  # a value of Program.errors


@dataclass(frozen=True, slots=True)
class Advance:
    """Skip `bits`, a multiple of 8."""

    bits: Expression


@dataclass(frozen=True, slots=True)
class Call:
    primitive: Primitive


Operation = Extract | Set | Verify | Advance | Call

# --- transitions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LastUnionField:
    """A field of a member of the last union of a union stack."""

    stack: UnionStack
    member_index: int
    field: Field


@dataclass(frozen=True, slots=True)
class KeyPart:
    source: FieldRef | LastField | LastUnionField | Lookahead
    width_bits: int


@dataclass(frozen=True, slots=True)
class Transition:
    """Taken when every part of the key, masked, equals its value. No values: the default, which always matches."""

    values: tuple[int, ...] | None  # one a part of the state's key; already masked
    masks: tuple[int, ...] | None  # likewise; None for a default
    next_state: str | None  # None: accept


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Transitions are tried in order, then `default` (None: accept)."""

    name: str
    index: int
    operations: tuple[Operation, ...]
    key: tuple[KeyPart, ...]
    transitions: tuple[Transition, ...]
    default: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Parser:
    name: str
    init_state: str | None
    states: tuple[State, ...]

    def state(self, name: str) -> State:
        return next(s for s in self.states if s.name == name)


@dataclass(frozen=True, slots=True, eq=False)
class Deparser:
    """Emits the valid headers of `order`, then the payload."""

    name: str
    order: tuple[Header, ...]
    primitives: tuple[Primitive, ...] = ()  # run after checksums, before the headers are written
