"""The context that is handed on while a program is lowered: program, frame, diagnostics, output."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from p4c.frontend.check.context import CheckContext as Checked
from p4c.frontend.check.scope import Symbol
from p4c.frontend.check.types import BOOL, ERROR, Bits, EnumValue, ErrorValue, Type, strip
from p4c.frontend.diagnostics import Diagnostics, SourceSpan, brief
from p4c.frontend.draft import Draft, DraftPipeline, DraftState
from p4c.frontend.flow import Flow, Step
from p4c.frontend.lower.values import Bindings, BlockValue, ExternValue, Literal, Value
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar, constant
from p4c.model.actions import Argument

SCALARS = "scalars"
BLOCKS = {
    "parser": "the parser",
    "verify": "the checksum verification",
    "ingress": "ingress",
    "egress": "egress",
    "compute": "the checksum computation",
    "deparser": "the deparser",
}
_INLINE_DEPTH_MAX = 64
_INLINE_COUNT_MAX = 4096
# Statements, operations and fields that a program becomes, with calls put in place. Copies of structs are the dearest
# of them that were found: 1.3 kB each in all phases, so 260 MB.
PARTS_MAX = 200_000
_LARGEST_SHOWN = 5

# How each kind of expression and statement is lowered. The tables are arguments of the context, so that no handler
# imports another and every handler can lower the parts of its node.
Expressions = dict[type[ast.Expression], Callable[["LowerContext", Any], Value]]
Statements = dict[type[ast.Statement], Callable[["LowerContext", Any], None]]
# Extern functions by name: the controls in which BMv2 has the primitive, and the function that lowers the call.
Functions = dict[
    str, tuple[tuple[str, ...], Callable[["LowerContext", ast.CallExpression, list[ast.Expression]], None]]
]
Methods = dict[str, Callable[["LowerContext", ast.CallExpression, list[ast.Expression], ExternValue], None]]


@dataclass(slots=True)
class Loop:
    """A loop being unrolled: one Region, and in it one per round if a statement goes on with the next (`continues`)."""

    continues: bool
    place: tuple[int, int]  # `depth` and `in_action` of its function
    rounds: int  # that it is unrolled to, at most; 1 if it is run
    broken: Scalar | None = None  # set by a break that leaves a round's Region before the loop's
    returned: Scalar | None = None  # set by a return


class RefusalError(Exception):
    """Valid P4 that this compiler or BMv2 cannot carry out. Caught at the nearest statement or declaration."""

    def __init__(self, message: str, span: SourceSpan, *notes: str) -> None:
        super().__init__(message)
        self.message, self.span, self.notes = message, span, notes


@dataclass(slots=True)
class LowerContext:
    """`out` takes the statements made; `frame` binds names; `block` is a key of BLOCKS, on which externs depend."""

    program: Draft
    checked: Checked
    diagnostics: Diagnostics
    expressions: Expressions
    statements: Statements
    globals: Bindings
    frame: Bindings
    out: list[Flow] = field(default_factory=list)
    block: str = ""
    result: Value | None = None  # the place of the enclosing function's return value
    depth: int = 0  # of nested calls
    calls: int = 0  # put in place so far
    parts: Counter[str] = field(default_factory=Counter)  # that were made so far, by the block or action around them
    parts_total: int = 0
    loops: list[Loop] = field(default_factory=list)  # around the present statement, in its function
    in_action: int = 0  # > 0 inside an action's body
    pipeline: DraftPipeline | None = None
    conditions: list[Scalar] = field(default_factory=list)  # around a checksum
    direct_blocks: dict[tuple[int, int, SourceSpan], BlockValue] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)  # the last number behind each name
    claimed: dict[tuple[str, str], SourceSpan] = field(default_factory=dict)
    states: dict[str, DraftState] = field(default_factory=dict)
    state_counts: dict[str, int] = field(default_factory=dict)
    known: dict[tuple[object, ...], Any] = field(default_factory=dict)  # calculations and digests so far
    no_match: str = ""  # the state behind selects that fit no case, once there is one
    state: DraftState = field(default_factory=lambda: DraftState(""))

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Turn a RefusalError into a diagnostic, and go on behind the block."""
        try:
            yield
        except RefusalError as refusal:
            self.refuse(refusal)

    def refuse(self, r: RefusalError) -> None:
        self.diagnostics.error("target", r.message, r.span, *r.notes)

    def deeper(self, span: SourceSpan) -> None:
        """Enter a call; the caller leaves it by lowering `depth`."""
        self.depth += 1
        self.calls += 1
        if self.calls > _INLINE_COUNT_MAX:
            raise RefusalError(f"a program must make at most {_INLINE_COUNT_MAX} calls, all put in place", span)
        if self.depth > _INLINE_DEPTH_MAX:
            raise RefusalError(f"calls nest deeper than {_INLINE_DEPTH_MAX}: P4 has no recursion", span)

    def count_parts(self, parts: int, span: SourceSpan) -> None:
        """Count parts of what the program becomes. Raises CompileError beyond the total."""
        self.parts[self.frame.prefix] += parts
        self.parts_total += parts
        if self.parts_total > PARTS_MAX:
            largest = ", ".join(f"{name or 'the program'} {n}" for name, n in self.parts.most_common(_LARGEST_SHOWN))
            message = (
                f"a program must become at most {PARTS_MAX} statements, operations and fields of structs,"
                f" with all calls put in place (the largest parts so far: {largest})"
            )
            self.diagnostics.last("target", message, span)

    @property
    def in_loop(self) -> bool:
        """Whether a loop of the present function is around."""
        return bool(self.loops) and self.loops[-1].place == (self.depth, self.in_action)

    def symbol_of(self, d: ast.Declaration) -> Symbol:
        return self.checked.declared[id(d)]

    def block_symbol(self, d: ast.Applicable) -> Symbol:
        return self.checked.blocks[id(d)]

    def unique(self, name: str) -> str:
        """`name`, with a number behind it if the name is taken."""
        candidate, count = name, self.counts.get(name, 0)
        while candidate in self.names:
            count += 1
            candidate = f"{name}_{count}"
        self.names.add(candidate)
        self.counts[name] = count
        return candidate

    def claim(self, kind: str, name: str, span: SourceSpan) -> None:
        """Control-plane names are unique within a kind; `@name` can break that."""
        key = (kind, name)
        first = self.claimed.get(key)
        # Instances of one control may share an action under an absolute name: both are the same action.
        if first is not None and not (kind == "action" and first is span):
            self.diagnostics.error("names", f"two {kind}s have the name {name} (first at {first})", span)
        self.claimed.setdefault(key, span)

    def value_of(self, e: ast.Expression) -> Value:
        """The value of `e`; statements that the evaluation needs are emitted first."""
        if e.value is not None and isinstance(e.type, Type):
            return self._constant(e.value, e.type, e.span)
        self.count_parts(1, e.span)
        handler = self.expressions.get(type(e))
        if handler is None:
            raise RefusalError("this expression cannot be used here", e.span)
        return handler(self, e)

    def _constant(self, value: object, t: Type, span: SourceSpan) -> Value:
        """A compile-time value as an expression."""
        plain = strip(t)
        if isinstance(value, bool):
            return constant(int(value), BOOL) if plain == BOOL else constant(int(value), plain)
        if isinstance(value, int):
            return constant(value, plain if isinstance(plain, Bits) else t)
        if isinstance(value, EnumValue):
            if value.type.underlying is not None:
                return constant(value.number, plain if isinstance(plain, Bits) else value.type.underlying)
            return Literal(value, t)
        if isinstance(value, ErrorValue):
            return constant(self.checked.errors[value.member], ERROR)
        if isinstance(value, str):
            return Literal(value, t)
        raise RefusalError(f"a constant of type {t} cannot be used here", span)

    def scalar_of(self, e: ast.Expression) -> Scalar:
        return as_expression(self.value_of(e), e.span)

    def number_of(self, e: ast.Expression) -> int:
        """A number that the checker has found to be known at compile time."""
        number = self.scalar_of(e).number
        assert number is not None
        return number

    def isolated(self, e: ast.Expression) -> tuple[Scalar, list[Flow]]:
        """`e`, and apart from it the statements that `e` needs: for expressions that only a condition evaluates."""
        with self.apart() as made:
            return self.scalar_of(e), made

    @contextmanager
    def apart(self, frame: Bindings | None = None) -> Iterator[list[Flow]]:
        """Collect the statements emitted meanwhile, with the names of `frame` if given, in a separate list."""
        outer = self.frame, self.out
        made: list[Flow] = []
        self.frame, self.out = frame or self.frame, made
        try:
            yield made
        finally:
            self.frame, self.out = outer

    def statement(self, s: ast.Statement) -> None:
        self.count_parts(1, s.span)
        before = self.frame, self.out, self.result, self.depth, self.in_action
        try:
            self.statements[type(s)](self, s)
        except RefusalError as refusal:
            self.refuse(refusal)
            self.frame, self.out, self.result, self.depth, self.in_action = before

    def body(self, s: ast.Statement | None) -> list[Flow]:
        """The statements of a branch."""
        with self.apart() as made:
            if s is not None:
                self.statement(s)
        return made

    def emit(self, op: str, *args: Scalar | Argument, span: SourceSpan) -> None:
        self.count_parts(1, span)
        self.out.append(Step(op, tuple(a.data if isinstance(a, Scalar) else a for a in args), span))


def as_expression(value: Value, span: SourceSpan) -> Scalar:
    """`value` as a scalar."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, Literal) and isinstance(value.value, EnumValue):
        return constant(value.value.number, Bits(32))
    raise RefusalError("a single number or bool is needed here", span)


def range_of(cx: LowerContext, e: ast.BinaryExpression, bits: int) -> tuple[int, int]:
    """The bounds of `low..high` for a key of `bits` bits."""
    full = (1 << bits) - 1
    low, high = cx.number_of(e.left) & full, cx.number_of(e.right) & full
    if low > high:
        raise RefusalError(f"the range {brief(low)}..{brief(high)} is empty", e.span)
    return low, high


def control_plane_name(d: ast.Declaration, prefix: str) -> str:
    """The full name: the instance path and `@name`, which may be absolute with a leading dot."""
    given = d.annotation("name")
    word = d.name
    if given is not None and given.expressions and isinstance(given.expressions[0], ast.String):
        word = given.expressions[0].text
    if word.startswith("."):
        return word[1:]
    return f"{prefix}.{word}" if prefix else word
