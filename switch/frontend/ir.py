"""The lowered program: BMv2's own notions (header instances, fields, actions, tables, parser states), control flow
still structured. `lower/` makes the program, `emit/` turns its control flow into next nodes and writes both down.

Expressions keep their P4 types; `emit/` adds the masks that BMv2's arithmetic without limits needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from switch.frontend.check.types import BOOL, Bits, Composite, Type
from switch.frontend.diagnostics import NOWHERE, Span
from switch.frontend.parse.ast import Annotation


class Expr:
    __slots__ = ()
    type: Type


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """A number, or with type bool 0 or 1."""

    value: int
    type: Type

    def __str__(self) -> str:
        return ("false", "true")[self.value] if self.type == BOOL else f"{self.value:#x}"


@dataclass(frozen=True, slots=True)
class FieldRef(Expr):
    """A field of a header instance, metadata and scalars included."""

    header: str
    field: str
    type: Type

    def __str__(self) -> str:
        return f"{self.header}.{self.field}"


@dataclass(frozen=True, slots=True)
class LastField(Expr):
    """A field of the last valid element of a stack, in a parser."""

    stack: str
    field: str
    type: Type
    member: str = ""  # of the last union, in a stack of unions

    def __str__(self) -> str:
        return f"{self.stack}.last.{self.member + '.' if self.member else ''}{self.field}"


@dataclass(frozen=True, slots=True)
class ElementField(Expr):
    """A field of a stack element whose index is known at run time only."""

    stack: str
    index: Expr
    position: int
    field: str
    type: Type

    def __str__(self) -> str:
        return f"{self.stack}[{self.index}].{self.field}"


@dataclass(frozen=True, slots=True)
class LastIndex(Expr):
    stack: str
    kind: str = "header_stack"
    type: Type = field(default_factory=lambda: Bits(32))

    def __str__(self) -> str:
        return f"{self.stack}.lastIndex"


@dataclass(frozen=True, slots=True)
class Lookahead(Expr):
    """Bits ahead of the parser's cursor."""

    offset: int
    width: int
    type: Type

    def __str__(self) -> str:
        return f"lookahead({self.offset}, {self.width})"


@dataclass(frozen=True, slots=True)
class ActionData(Expr):
    """A parameter of the enclosing action."""

    index: int
    name: str
    type: Type

    def __str__(self) -> str:
        return f"${self.name}"


@dataclass(frozen=True, slots=True)
class Valid(Expr):
    """Whether a header (or, where `union`, one of a union's headers) is valid."""

    header: str
    union: bool = False
    type: Type = BOOL

    def __str__(self) -> str:
        return f"{self.header}.isValid()"


@dataclass(frozen=True, slots=True)
class HeadersEqual(Expr):
    left: str
    right: str
    type: Type = BOOL

    def __str__(self) -> str:
        return f"({self.left} == {self.right})"


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class SliceOf(Expr):
    base: Expr
    high: int
    low: int
    type: Type

    def __str__(self) -> str:
        return f"{self.base}[{self.high}:{self.low}]"


@dataclass(frozen=True, slots=True)
class Object(Expr):
    """A named thing of BMv2: header, header_stack, header_union, register_array, counter_array, meter_array, …"""

    kind: str
    name: str
    member: str = ""  # of the union, where a union of a stack is extracted
    type: Type = BOOL

    def __str__(self) -> str:
        return f"{self.name}.{self.member}" if self.member else self.name


@dataclass(frozen=True, slots=True)
class ElementHeader(Expr):
    """A stack element whose index is known at run time only."""

    stack: str
    index: Expr
    type: Type = BOOL

    def __str__(self) -> str:
        return f"{self.stack}[{self.index}]"


@dataclass(frozen=True, slots=True)
class Text(Expr):
    text: str
    type: Type = BOOL

    def __str__(self) -> str:
        return repr(self.text)


@dataclass(frozen=True, slots=True)
class Vector(Expr):
    items: tuple[Expr, ...]
    type: Type = BOOL

    def __str__(self) -> str:
        return "[" + ", ".join(map(str, self.items)) + "]"


class Stmt:
    __slots__ = ()


@dataclass(eq=False, slots=True)
class Primitive(Stmt):
    """One of BMv2's primitives, as `op(parameters)`."""

    op: str
    parameters: tuple[Expr, ...]
    span: Span = NOWHERE


@dataclass(eq=False, slots=True)
class Branch(Stmt):
    condition: Expr
    then: list[Stmt]
    otherwise: list[Stmt]
    span: Span = NOWHERE


@dataclass(eq=False, slots=True)
class Apply(Stmt):
    """Apply a table; then `hit` or `miss`, or the case of the action that ran (None: `default`)."""

    table: TableDef
    hit: list[Stmt] | None = None
    miss: list[Stmt] | None = None
    cases: dict[str, list[Stmt]] = field(default_factory=dict)
    default: list[Stmt] | None = None
    span: Span = NOWHERE


@dataclass(eq=False, slots=True)
class Region(Stmt):
    """Statements that a Leave inside ends early. `whole`: to be carried out as one action, hence atomically."""

    body: list[Stmt]
    whole: bool = False
    span: Span = NOWHERE


@dataclass(eq=False, slots=True)
class Leave(Stmt):
    """Go on after the innermost Region."""


@dataclass(eq=False, slots=True)
class Quit(Stmt):
    """P4's exit: the end of the pipeline."""


@dataclass(eq=False, slots=True)
class ParserOp:
    """`op` is extract, extract_VL, set, verify, advance or primitive (then `inner`)."""

    op: str
    parameters: tuple[Expr, ...]
    inner: Primitive | None = None


@dataclass(eq=False, slots=True)
class ParserTransition:
    """`kind` is default, hexstr or parse_vset. `target` None is accept."""

    kind: str
    value: int | str | None
    mask: int | None
    width_bytes: int
    target: str | None


@dataclass(eq=False, slots=True)
class ParserState:
    name: str
    ops: list[ParserOp] = field(default_factory=list)
    key: list[Expr] = field(default_factory=list)
    transitions: list[ParserTransition] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class HeaderType:
    """Fields as (name, bits, signed); bits None is the varbit field, of at most `varbit_max`."""

    name: str
    fields: list[tuple[str, int | None, bool]]
    varbit_max: int = 0


@dataclass(eq=False, slots=True)
class HeaderInstance:
    name: str
    type: str
    metadata: bool


@dataclass(eq=False, slots=True)
class StackInstance:
    name: str
    type: str
    headers: list[str]
    union: bool = False


@dataclass(eq=False, slots=True)
class UnionInstance:
    name: str
    type: str
    headers: list[str]


@dataclass(eq=False, slots=True, kw_only=True)
class Declared:
    """A thing that the program declares: its place, and the annotations that P4Info repeats."""

    annotations: list[Annotation] = field(default_factory=list)
    span: Span = NOWHERE


@dataclass(eq=False, slots=True)
class ActionDef(Declared):
    """`name` is the control-plane name; `body` may branch. `hidden`: made by the compiler."""

    name: str
    parameters: list[tuple[str, Type, list[Annotation]]]
    body: list[Stmt]
    hidden: bool = False


@dataclass(eq=False, slots=True)
class Key:
    target: Expr
    match: str
    name: str
    mask: int | None
    type: Type  # as declared, for P4Info
    annotations: list[Annotation] = field(default_factory=list)
    all_annotations: list[Annotation] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class KeyValue:
    """One key of an entry: (value, mask), (value, prefix length) or (low, high) by match kind."""

    match: str
    first: int
    second: int


@dataclass(eq=False, slots=True)
class TableEntry(Declared):
    keys: list[KeyValue]
    action: ActionDef
    arguments: list[int]
    priority: int  # the smallest wins


@dataclass(eq=False, slots=True)
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


@dataclass(eq=False, slots=True)
class ActionProfile(Declared):
    name: str
    size: int
    algorithm: str | None  # of a selector
    inputs: list[Expr]
    tables: list[TableDef] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Counter(Declared):
    """`size` None and a table: direct."""

    name: str
    unit: str
    size: int | None
    table: TableDef | None = None
    index_type: Type | None = None


@dataclass(eq=False, slots=True)
class Meter(Declared):
    name: str
    unit: str
    size: int | None
    table: TableDef | None = None
    result: FieldRef | None = None
    index_type: Type | None = None


@dataclass(eq=False, slots=True)
class Register(Declared):
    name: str
    size: int
    type: Type
    index_type: Type | None = None


@dataclass(eq=False, slots=True)
class Calculation:
    """`inputs` may hold Object("payload", …)."""

    name: str
    algorithm: str
    inputs: list[Expr]
    span: Span = NOWHERE


@dataclass(eq=False, slots=True)
class Checksum:
    target: FieldRef
    calculation: str
    condition: Expr
    verify: bool
    span: Span = NOWHERE


@dataclass(eq=False, slots=True)
class FieldList:
    """A field list (clone, resubmit, recirculate) or a learn list (digest)."""

    id: int
    name: str
    items: list[Expr]
    type: Type | None = None


@dataclass(eq=False, slots=True)
class ValueSetDef:
    name: str
    size: int
    type: Type
    annotations: list[Annotation] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Pipeline:
    name: str
    body: list[Stmt]
    tables: list[TableDef] = field(default_factory=list)
    profiles: list[ActionProfile] = field(default_factory=list)
    span: Span = NOWHERE


@dataclass(eq=False, slots=True)
class Program:
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
