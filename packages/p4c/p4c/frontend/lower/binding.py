"""Arguments of nested controls and parsers: by reference where a copy would behave the same."""

from p4c.frontend.check.scope import Callee, ParameterInfo
from p4c.frontend.lower.assignment import assign, evaluated, pinned, reset_headers
from p4c.frontend.lower.context import LowerContext, RefusalError
from p4c.frontend.lower.storage import allocate
from p4c.frontend.lower.values import (
    Aggregate,
    BlockValue,
    ElementValue,
    ExternValue,
    LastValue,
    Literal,
    NextValue,
    Value,
    leaves,
    storage_names,
)
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar
from p4c.model.expressions import Const, FieldRef


def bind_block(cx: LowerContext, block: BlockValue, e: ast.CallExpression, callee: Callee) -> list[tuple[Value, Value]]:
    """Bind the arguments of a control or parser; returns the places to copy back to, with the storage.

    Arguments are passed by reference where no two of them overlap, since a copy would then behave the same.
    """
    infos = block.symbol.parameters
    given = [a for a in callee.arguments if a is not None and not isinstance(a, ast.Default)]
    writes = {id(a) for a, i in zip(callee.arguments, infos, strict=True) if i.direction in ("out", "inout")}
    evaluations = evaluated(cx, *((a, id(a) in writes) for a in given))
    cx.count_parts(sum(1 for value in evaluations for _ in leaves(value)), e.span)  # each is looked at
    places = iter(evaluations)
    values: list[Value | None] = []
    for argument in callee.arguments:
        values.append(None if argument is None or isinstance(argument, ast.Default) else next(places))
    names = [set() if value is None else storage_names(value) for value in values]
    back: list[tuple[Value, Value]] = []
    bound: list[Value] = []
    for index, (value, info) in enumerate(zip(values, infos, strict=True)):
        span = e.span
        by_reference = value is not None and _referable(value) and not _overlaps(index, names, infos)
        if value is not None and by_reference:
            bound.append(value)
            if info.direction == "out":
                reset_headers(cx, value, span)
            continue
        if index not in block.storage:
            block.storage[index] = allocate(cx, f"{block.name}.{info.name}", info.type, span)
        storage = block.storage[index]
        if value is not None and info.direction != "out":
            assign(cx, storage, value, span)
        elif info.direction == "out":
            reset_headers(cx, storage, span)
        if value is not None and info.direction in ("out", "inout"):
            back.append((pinned(cx, value, span), storage))
        bound.append(storage)
    has_tables = any(isinstance(d, ast.TableDecl) for d in block.declaration.locals)
    if block.bound is not None and has_tables and not _alike(block.bound, bound):
        raise RefusalError(f"{block.name} is applied twice with other arguments: make two instances", e.span)
    block.bound = bound
    for info, value in zip(infos, bound, strict=True):
        block.frame.bind(info.symbol, value)
    return back


def _referable(value: Value) -> bool:
    if isinstance(value, ExternValue | Literal):
        return True
    if isinstance(value, Aggregate):
        return all(not isinstance(leaf, Scalar) or isinstance(leaf.of, FieldRef) for leaf in leaves(value))
    if isinstance(value, ElementValue | NextValue | LastValue):
        return False
    return not isinstance(value, Scalar) or isinstance(value.of, FieldRef | Const)


def _overlaps(index: int, names: list[set[str]], infos: list[ParameterInfo]) -> bool:
    """Whether the argument shares storage, by its `names`, with another, and one of the two is written."""
    writes = infos[index].direction in ("out", "inout")
    return any(
        names[index] & other
        for place, (other, info) in enumerate(zip(names, infos, strict=True))
        if place != index and (writes or info.direction in ("out", "inout"))
    )


def _alike(a: list[Value], b: list[Value]) -> bool:
    for x, y in zip(a, b, strict=True):
        if isinstance(x, Scalar) and isinstance(y, Scalar):
            if x != y:
                return False
        elif isinstance(x, Aggregate) and isinstance(y, Aggregate):
            if not _alike(list(x.members.values()), list(y.members.values())):
                return False
        elif x is not y and not (isinstance(x, Literal) and isinstance(y, Literal) and x.value == y.value):
            return False
    return True
