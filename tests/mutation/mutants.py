"""Single-point mutants of a Python module: each differs from the module in one place of the syntax tree.

Changed are comparisons, arithmetic, `and`, `or` and `not`, numbers, conditions, and statements whose effect is to
change something. Text, annotations, decorators and what only type checkers read stay, because no test of behaviour
should fail for them.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A module with one place changed. Offsets count bytes of the module's UTF-8 text."""

    path: str  # below the root
    line: int
    begin: int
    end: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """The mutant's name in tables and files of results; the same as long as the module does not change."""
        return f"{self.path}:{self.line}: {self.before} -> {self.after}"

    def applied(self, source: bytes) -> bytes:
        """The text of the whole module with this change."""
        return source[: self.begin] + self.after.encode() + source[self.end :]


def _with(node: ast.AST, **changes: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _of_expression(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in an expression's place."""
    match node:
        case ast.Compare(ops=[operator, *rest]):
            for other in COMPARISONS[type(operator)]:
                yield _with(node, ops=[other(), *rest])
        case ast.BinOp(left=left, op=operator, right=right):
            if type(operator) in ARITHMETIC and not _is_text(left) and not _is_text(right):
                yield _with(node, op=ARITHMETIC[type(operator)]())
        case ast.BoolOp(op=operator):
            yield _with(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield _with(node, value=not value)
        case ast.Constant(value=int() as value):
            yield _with(node, value=value + 1)
        case ast.Constant(value=float() as value):
            yield _with(node, value=value * 2 if value else 1.0)
        case ast.IfExp(test=test):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))


def _of_statement(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in a statement's place: nothing, where its only use is what it changes."""
    match node:
        case ast.Expr(value=ast.Call()) | ast.Delete():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.AugAssign(op=operator, value=value):
            yield ast.Pass()
            if type(operator) in ARITHMETIC and not _is_text(value):
                yield _with(node, op=ARITHMETIC[type(operator)]())
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()


def _left_alone(node: ast.AST, parent: ast.AST, field: str) -> bool:
    """Whether nothing below a node is changed: its positions are not the text's, or no behaviour depends on it."""
    if field in ("annotation", "returns", "decorator_list", "bases", "slice") and not isinstance(parent, ast.Subscript):
        return True
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
        return True
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    # A name for a type: `Wire = Frame | None`.
    return (
        isinstance(parent, ast.Assign | ast.AnnAssign)
        and isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitOr)
    )


def _changes(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Each node that can be changed, with what stands in its place; depth first, in the order of the text."""
    for field, value in ast.iter_fields(tree):
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or _left_alone(node, tree, field):
                continue
            if isinstance(node, ast.expr):
                yield from ((node, other) for other in _of_expression(node))
            elif isinstance(node, ast.stmt):
                yield from ((node, other) for other in _of_statement(node))
            if field == "test" and isinstance(tree, ast.If | ast.While) and isinstance(node, ast.expr):
                yield node, ast.UnaryOp(ast.Not(), node)
            yield from _changes(node)


def mutants_of(path: Path, root: Path) -> Iterator[Mutant]:
    """All mutants of a module, each of which can be parsed and differs from the module."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, other in _changes(ast.parse(source)):
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        after = ast.unparse(other)
        # What was one operand of an expression stays one.
        after = f"({after})" if isinstance(other, ast.expr) and not isinstance(other, ast.Constant) else after
        before = " ".join(source[begin:end].decode().split())
        yield Mutant(str(path.relative_to(root)), node.lineno, begin, end, before, after)
