"""The syntax tree: one class to a construct of the P4_16 grammar, as the parser reads it.

Expressions carry three attributes that the checker fills in: `type`, `value` (when known at compile time) and, for
names and calls, `target` (what is meant). Everything else is as written.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from common.records import Mutable
from p4c.frontend.diagnostics import SourceSpan


class Node(Mutable):
    span: SourceSpan


class Annotation(Node):
    """`@name(body)`: `body` holds the tokens' texts, `expressions` the comma-separated constants where it has such."""

    name: str
    body: list[str] = field(default_factory=list)
    expressions: list[Expression] = field(default_factory=list)
    structured: bool = False
    source: str = ""


# --- types as written ----------------------------------------------------------------------------------------------


class TypeRef(Node):
    pass


class NamedTypeRef(TypeRef):
    name: str
    arguments: list[TypeRef] = field(default_factory=list)


class BaseTypeRef(TypeRef):
    """bit, int, varbit (with `width`), bool, error, string, void, match_kind, or `_`."""

    name: str
    width: Expression | None = None


class TupleTypeRef(TypeRef):
    items: list[TypeRef]


class StackTypeRef(TypeRef):
    element: TypeRef
    size: Expression


# --- expressions ---------------------------------------------------------------------------------------------------


class Expression(Node):
    type: Any = field(default=None, init=False, repr=False)
    value: Any = field(default=None, init=False, repr=False)
    target: Any = field(default=None, init=False, repr=False)


class Name(Expression):
    name: str
    absolute: bool = False


class Number(Expression):
    number: int
    width: int | None
    signed: bool
    text: str


class Boolean(Expression):
    truth: bool


class String(Expression):
    text: str


class UnaryExpression(Expression):
    op: str
    operand: Expression


class BinaryExpression(Expression):
    """Operators, `&&&` (mask) and `..` (range) included."""

    op: str
    left: Expression
    right: Expression


class ConditionalExpression(Expression):
    condition: Expression
    then: Expression
    otherwise: Expression


class CastExpression(Expression):
    to: TypeRef
    operand: Expression


class MemberExpression(Expression):
    base: Expression
    name: str


class IndexExpression(Expression):
    base: Expression
    index: Expression


class SliceExpression(Expression):
    base: Expression
    high: Expression
    low: Expression


class Argument(Node):
    name: str | None
    expression: Expression


class CallExpression(Expression):
    callee: Expression
    type_arguments: list[TypeRef]
    arguments: list[Argument]


class InvalidHeader(Expression):
    """`{#}`."""


class ListExpression(Expression):
    items: list[Expression]


class StructExpression(Expression):
    items: list[tuple[str, Expression]]


class TypeExpression(Expression):
    """A type where a value is read: `error.X`, `Enum.X`, or a constructor's name."""

    ref: TypeRef


class Default(Expression):
    """`default` or `_` in a key set."""


# --- statements ----------------------------------------------------------------------------------------------------


class Statement(Node):
    pass


class AssignmentStatement(Statement):
    """The checker makes the value of `a op= b` the BinaryExpression `a op b`.

    The op stays, since `a` is evaluated once.
    """

    target: Expression
    op: str  # "=" or "+=", "|+|=", …
    value: Expression


class CallStatement(Statement):
    call: CallExpression


class IfStatement(Statement):
    condition: Expression
    then: Statement
    otherwise: Statement | None


class BlockStatement(Statement):
    statements: list[Statement]
    annotations: list[Annotation] = field(default_factory=list)


class LoopStatement(Statement):
    """The checker's findings about a loop: whether one of its statements is `continue`, and the symbols of variables
    that only the loop's own clauses write while it runs."""

    body: Statement
    continues: bool = field(default=False, init=False, repr=False)
    fixed: list[Any] = field(default_factory=list, init=False, repr=False)


class ForStatement(LoopStatement):
    """`for (initial; condition; updates) body`."""

    initial: list[Statement]
    condition: Expression
    updates: list[Statement]


class ForInStatement(LoopStatement):
    """`for (type variable in first..last) body`, or over the values of a list (`last` is None)."""

    variable: Variable
    first: Expression
    last: Expression | None


class BreakStatement(Statement):
    pass


class ContinueStatement(Statement):
    pass


class EmptyStatement(Statement):
    pass


class ReturnStatement(Statement):
    value: Expression | None


class ExitStatement(Statement):
    pass


class SwitchCase(Node):
    """`body` is None where the label falls through to the next one."""

    labels: list[Expression]
    body: BlockStatement | None


class SwitchStatement(Statement):
    subject: Expression
    cases: list[SwitchCase]


class DeclarationStatement(Statement):
    """A declaration among statements."""

    declaration: Declaration


class TransitionStatement(Statement):
    """The end of a parser state: `state`, or a select."""

    state: str | None
    select: list[Expression] = field(default_factory=list)
    cases: list[SelectCase] = field(default_factory=list)


class SelectCase(Node):
    keys: list[Expression]
    state: str


# --- declarations --------------------------------------------------------------------------------------------------


class Declaration(Node):
    name: str
    annotations: list[Annotation] = field(default_factory=list, kw_only=True)

    def annotation(self, name: str) -> Annotation | None:
        return next((a for a in self.annotations if a.name == name), None)


class ParameterDecl(Declaration):
    direction: str  # "", "in", "out", "inout"
    type: TypeRef
    default: Expression | None = None


class Variable(Declaration):
    type: TypeRef
    initial: Expression | None


class Constant(Declaration):
    type: TypeRef
    initial: Expression


class Instance(Declaration):
    type: TypeRef
    arguments: list[Argument]


class Typedef(Declaration):
    """`typedef` or, where `fresh`, `type`."""

    type: TypeRef
    fresh: bool


class FieldDecl(Declaration):
    type: TypeRef


class Composite(Declaration):
    """struct, header or header_union."""

    kind: str
    fields: list[FieldDecl]
    type_parameters: list[str] = field(default_factory=list)


class EnumDecl(Declaration):
    underlying: TypeRef | None
    members: list[tuple[str, Expression | None, SourceSpan]]


class ErrorDecl(Declaration):
    members: list[tuple[str, SourceSpan]]


class MatchKindDecl(Declaration):
    members: list[tuple[str, SourceSpan]]


class Prototype(Declaration):
    """An extern function or method, or a constructor where `returns` is None."""

    returns: TypeRef | None
    type_parameters: list[str]
    parameters: list[ParameterDecl]


class ExternDecl(Declaration):
    type_parameters: list[str]
    methods: list[Prototype]


class Function(Declaration):
    returns: TypeRef
    type_parameters: list[str]
    parameters: list[ParameterDecl]
    body: BlockStatement


class ActionDecl(Declaration):
    parameters: list[ParameterDecl]
    body: BlockStatement


class KeyElement(Node):
    expression: Expression
    match_kind: str
    annotations: list[Annotation]


class ActionRef(Node):
    """`name` or `name(arguments)` in an action list, a default action or an entry."""

    name: str
    arguments: list[Argument]
    annotations: list[Annotation] = field(default_factory=list)
    bound: list[Expression | None] = field(default_factory=list, repr=False)  # by parameter, once checked
    target: Any = field(default=None, repr=False)


class EntryElement(Node):
    keys: list[Expression]
    action: ActionRef
    const: bool
    priority: Expression | None
    annotations: list[Annotation] = field(default_factory=list)


class Property(Node):
    name: str
    const: bool
    value: Expression
    annotations: list[Annotation] = field(default_factory=list)


class TableDecl(Declaration):
    keys: list[KeyElement] = field(default_factory=list)
    actions: list[ActionRef] = field(default_factory=list)
    default: ActionRef | None = None
    default_const: bool = False
    entries: list[EntryElement] | None = None
    entries_const: bool = False
    properties: dict[str, Property] = field(default_factory=dict)


class Applicable(Declaration):
    """The base of a control and a parser."""

    type_parameters: list[str]
    parameters: list[ParameterDecl]
    constructor: list[ParameterDecl] = field(default_factory=list)
    locals: list[Declaration] = field(default_factory=list)


class ControlDecl(Applicable):
    """A control, or its type where `body` is None."""

    body: BlockStatement | None = None


class StateDecl(Declaration):
    statements: list[Statement]
    transition: TransitionStatement | None


class ValueSetDecl(Declaration):
    type: TypeRef
    size: Expression


class ParserDecl(Applicable):
    """A parser, or its type where `states` is None."""

    states: list[StateDecl] | None = None


class Package(Declaration):
    type_parameters: list[str]
    parameters: list[ParameterDecl]


class P4Program(Node):
    declarations: list[Declaration]
