"""The lowered program: BMv2's own notions (header instances, fields, actions, tables, parser states), control flow
still structured. `lower/` makes the program, `emit/` turns its control flow into next nodes and writes both down.

Expressions keep their P4 types; `emit/` adds the masks that BMv2's arithmetic without limits needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, dataclass_transform

from switch.frontend.check.types import BOOL, Bits, Composite, Type
from switch.frontend.diagnostics import NOWHERE, Span
from switch.frontend.parse.ast import Annotation
from switch.records import Mutable


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Expr:
    """A value: subclasses are immutable dataclasses, equal to what has the same content."""

    type: Type
    notation: ClassVar[str]  # the format that makes `str()` of the value

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    def __str__(self) -> str:
        return self.notation.format(self)


class Const(Expr):
    """A number, or with type bool 0 or 1."""

    value: int
    type: Type

    def __str__(self) -> str:
        return ("false", "true")[self.value] if self.type == BOOL else f"{self.value:#x}"


class FieldRef(Expr):
    """A field of a header instance, metadata and scalars included."""

    header: str
    field: str
    type: Type
    notation = "{0.header}.{0.field}"


class LastField(Expr):
    """A field of the last valid element of a stack, in a parser."""

    stack: str
    field: str
    type: Type
    member: str = ""  # of the last union, in a stack of unions

    def __str__(self) -> str:
        return f"{self.stack}.last.{self.member + '.' if self.member else ''}{self.field}"


class ElementField(Expr):
    """A field of a stack element whose index is known at run time only."""

    stack: str
    index: Expr
    position: int
    field: str
    type: Type
    notation = "{0.stack}[{0.index}].{0.field}"


class LastIndex(Expr):
    stack: str
    kind: str = "header_stack"
    type: Type = field(default_factory=lambda: Bits(32))
    notation = "{0.stack}.lastIndex"


class Lookahead(Expr):
    """Bits ahead of the parser's cursor."""

    offset: int
    width: int
    type: Type
    notation = "lookahead({0.offset}, {0.width})"


class ActionData(Expr):
    """A parameter of the enclosing action."""

    index: int
    name: str
    type: Type
    notation = "${0.name}"


class Valid(Expr):
    """Whether a header (or, where `union`, one of a union's headers) is valid."""

    header: str
    union: bool = False
    type: Type = BOOL
    notation = "{0.header}.isValid()"


class HeadersEqual(Expr):
    left: str
    right: str
    type: Type = BOOL
    notation = "({0.left} == {0.right})"


class Operation(Expr):
    """A P4 operator; unary ones have one operand, `?` has three, `cast` one."""

    op: str
    operands: tuple[Expr, ...]
    type: Type

    def __str__(self) -> str:
        if self.op == "?":
            return "({} ? {} : {})".format(*self.operands)
        if self.op == "cast":
            return f"({self.type}){self.operands[0]}"
        if len(self.operands) == 1:
            return f"{self.op}{self.operands[0]}"
        return f"({self.operands[0]} {self.op} {self.operands[1]})"


class SliceOf(Expr):
    base: Expr
    high: int
    low: int
    type: Type
    notation = "{0.base}[{0.high}:{0.low}]"


class Object(Expr):
    """A named thing of BMv2: header, header_stack, header_union, register_array, counter_array, meter_array, …"""

    kind: str
    name: str
    member: str = ""  # of the union, where a union of a stack is extracted
    type: Type = BOOL

    def __str__(self) -> str:
        return f"{self.name}.{self.member}" if self.member else self.name


class ElementHeader(Expr):
    """A stack element whose index is known at run time only."""

    stack: str
    index: Expr
    type: Type = BOOL
    notation = "{0.stack}[{0.index}]"


class Text(Expr):
    text: str
    type: Type = BOOL
    notation = "{0.text!r}"


class Vector(Expr):
    items: tuple[Expr, ...]
    type: Type = BOOL

    def __str__(self) -> str:
        return "[" + ", ".join(map(str, self.items)) + "]"


class Stmt(Mutable):
    pass


class Primitive(Stmt):
    """One of BMv2's primitives, as `op(parameters)`."""

    op: str
    parameters: tuple[Expr, ...]
    span: Span = NOWHERE


class Branch(Stmt):
    condition: Expr
    then: list[Stmt]
    otherwise: list[Stmt]
    span: Span = NOWHERE


class Apply(Stmt):
    """Apply a table; then `hit` or `miss`, or the case of the action that ran (None: `default`)."""

    table: TableDef
    hit: list[Stmt] | None = None
    miss: list[Stmt] | None = None
    cases: dict[str, list[Stmt]] = field(default_factory=dict)
    default: list[Stmt] | None = None
    span: Span = NOWHERE


class Region(Stmt):
    """Statements that a Leave inside ends early. `whole`: to be carried out as one action, hence atomically."""

    body: list[Stmt]
    whole: bool = False
    span: Span = NOWHERE


class Leave(Stmt):
    """Go on after the innermost Region."""


class Quit(Stmt):
    """P4's exit: the end of the pipeline."""


class ParserOp(Mutable):
    """`op` is extract, extract_VL, set, verify, advance or primitive (then `inner`)."""

    op: str
    parameters: tuple[Expr, ...]
    inner: Primitive | None = None


class ParserTransition(Mutable):
    """`kind` is default, hexstr or parse_vset. `target` None is accept."""

    kind: str
    value: int | str | None
    mask: int | None
    width_bytes: int
    target: str | None


class ParserState(Mutable):
    name: str
    ops: list[ParserOp] = field(default_factory=list)
    key: list[Expr] = field(default_factory=list)
    transitions: list[ParserTransition] = field(default_factory=list)


class HeaderType(Mutable):
    """Fields as (name, bits, signed); bits None is the varbit field, of at most `varbit_max`."""

    name: str
    fields: list[tuple[str, int | None, bool]]
    varbit_max: int = 0


class HeaderInstance(Mutable):
    name: str
    type: str
    metadata: bool


class StackInstance(Mutable):
    name: str
    type: str
    headers: list[str]
    union: bool = False


class UnionInstance(Mutable):
    name: str
    type: str
    headers: list[str]


class Declared(Mutable, kw_only=True):
    """A thing that the program declares: its place, and the annotations that P4Info repeats."""

    annotations: list[Annotation] = field(default_factory=list)
    span: Span = NOWHERE


class ActionDef(Declared):
    """`name` is the control-plane name; `body` may branch. `hidden`: made by the compiler."""

    name: str
    parameters: list[tuple[str, Type, list[Annotation]]]
    body: list[Stmt]
    hidden: bool = False


class Key(Mutable):
    target: Expr
    match: str
    name: str
    mask: int | None
    type: Type  # as declared, for P4Info
    annotations: list[Annotation] = field(default_factory=list)
    all_annotations: list[Annotation] = field(default_factory=list)


class KeyValue(Mutable):
    """One key of an entry: (value, mask), (value, prefix length) or (low, high) by match kind."""

    match: str
    first: int
    second: int


class TableEntry(Declared):
    keys: list[KeyValue]
    action: ActionDef
    arguments: list[int]
    priority: int  # the smallest wins


class TableDef(Declared):
    name: str
    keys: list[Key]
    actions: list[tuple[ActionDef, list[Annotation]]]
    default: ActionDef
    default_arguments: list[int]
    default_const: bool
    entries: list[TableEntry] | None
    entries_const: bool
    size: int  # 0: not given
    profile: ActionProfile | None = None
    counter: Counter | None = None
    meter: Meter | None = None
    support_timeout: bool = False
    hidden: bool = False
    all_keys: list[Key] = field(default_factory=list)  # selector keys included: they count when ids are given


class ActionProfile(Declared):
    name: str
    size: int
    algorithm: str | None  # of a selector
    inputs: list[Expr]
    tables: list[TableDef] = field(default_factory=list)


class Counter(Declared):
    """`size` None and a table: direct."""

    name: str
    unit: str
    size: int | None
    table: TableDef | None = None
    index_type: Type | None = None


class Meter(Declared):
    name: str
    unit: str
    size: int | None
    table: TableDef | None = None
    result: FieldRef | None = None
    index_type: Type | None = None


class Register(Declared):
    name: str
    size: int
    type: Type
    index_type: Type | None = None


class Calculation(Mutable):
    """`inputs` may hold Object("payload", …)."""

    name: str
    algorithm: str
    inputs: list[Expr]
    span: Span = NOWHERE


class Checksum(Mutable):
    target: FieldRef
    calculation: str
    condition: Expr
    verify: bool
    span: Span = NOWHERE


class FieldList(Mutable):
    """A field list (clone, resubmit, recirculate) or a learn list (digest)."""

    id: int
    name: str
    items: list[Expr]
    type: Type | None = None


class ValueSetDef(Mutable):
    name: str
    size: int
    type: Type
    annotations: list[Annotation] = field(default_factory=list)


class Pipeline(Mutable):
    name: str
    body: list[Stmt]
    tables: list[TableDef] = field(default_factory=list)
    profiles: list[ActionProfile] = field(default_factory=list)
    span: Span = NOWHERE


class Program(Mutable):
    """All that goes into the JSON and the P4Info, in the order of declaration."""

    file: str = ""
    header_types: dict[str, HeaderType] = field(default_factory=dict)
    headers: dict[str, HeaderInstance] = field(default_factory=dict)
    stacks: dict[str, StackInstance] = field(default_factory=dict)
    unions: dict[str, UnionInstance] = field(default_factory=dict)
    union_types: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    aliases: list[tuple[str, str, str]] = field(default_factory=list)
    states: list[ParserState] = field(default_factory=list)
    value_sets: list[ValueSetDef] = field(default_factory=list)
    pipelines: list[Pipeline] = field(default_factory=list)
    deparser: list[str] = field(default_factory=list)
    actions: list[ActionDef] = field(default_factory=list)
    called: list[ActionDef] = field(default_factory=list)  # called by controls: P4Info names them, the JSON does not
    declared_actions: list[str] = field(default_factory=list)  # names in the order of P4Info
    calls_externs: bool = False  # a control calls an extern function
    counters: list[Counter] = field(default_factory=list)
    meters: list[Meter] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    calculations: list[Calculation] = field(default_factory=list)
    checksums: list[Checksum] = field(default_factory=list)
    field_lists: list[FieldList] = field(default_factory=list)
    learn_lists: list[FieldList] = field(default_factory=list)
    controller_headers: list[Composite] = field(default_factory=list)
    package_annotations: list[Annotation] = field(default_factory=list)
