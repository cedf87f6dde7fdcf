"""Controls and their instances: a block's declarations, and controls applied in place."""

from p4c.frontend.check.scope import Callee, Symbol
from p4c.frontend.check.types import ApplicableType, Extern, Type
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.flow import Region
from p4c.frontend.lower import values
from p4c.frontend.lower.assignment import assign, reset_headers
from p4c.frontend.lower.binding import bind_block
from p4c.frontend.lower.context import LowerContext, RefusalError, control_plane_name
from p4c.frontend.lower.inline import copy_back
from p4c.frontend.lower.object import extern_object
from p4c.frontend.lower.storage import allocate
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar

_KNOWN = (values.Literal, values.ExternValue, values.BlockValue)  # what a constructor may be given besides constants


def instance(cx: LowerContext, d: ast.Instance, symbol: Symbol, frame: values.Bindings) -> None:
    """An extern object, or an instance of a control or parser."""
    t, callee = symbol.type, symbol.value
    assert isinstance(callee, Callee)
    name = control_plane_name(d, frame.prefix)
    if isinstance(t, Extern):
        frame.bind(symbol, extern_object(cx, d, t, callee, name))
    elif isinstance(t, ApplicableType) and t.kind in ("control", "parser"):
        frame.bind(symbol, block_value(cx, t, callee, name, d.span))


def block_value(cx: LowerContext, t: ApplicableType, callee: Callee, name: str, span: SourceSpan) -> values.BlockValue:
    declaration = t.declaration
    assert isinstance(declaration, ast.ControlDecl | ast.ParserDecl)
    body = declaration.states if isinstance(declaration, ast.ParserDecl) else declaration.body
    if body is None:
        raise RefusalError(f"{t} has no body and cannot be used", span)
    symbol = cx.block_symbol(declaration)
    block = values.BlockValue(symbol, declaration, name, values.Bindings(cx.globals, name))
    for parameter, argument in zip(symbol.overloads, callee.arguments, strict=True):
        assert argument is not None
        value = cx.value_of(argument)
        known = value.number is not None if isinstance(value, Scalar) else isinstance(value, _KNOWN)
        if not known:
            raise RefusalError(f"the constructor argument for {parameter.name} is not known at compile time", span)
        block.frame.bind(parameter, value)
    return block


def make_locals(cx: LowerContext, block: values.BlockValue) -> None:
    """Bring a block's declarations into its frame: objects and tables once, variables anew at each apply."""
    first = not block.locals_made
    block.locals_made = True
    for d in block.declaration.locals:
        cx.count_parts(1, d.span)
        symbol = cx.symbol_of(d)
        with cx.refusals():
            if isinstance(d, ast.Variable):
                variable(cx, d)
            elif isinstance(d, ast.Instance) and first:
                instance(cx, d, symbol, block.frame)
            elif isinstance(d, ast.TableDecl) and first:
                name = control_plane_name(d, block.name)
                block.frame.bind(symbol, values.TableValue(d, name, block.frame))
            elif isinstance(d, ast.ActionDecl) and first:
                name = control_plane_name(d, block.name)
                cx.claim("action", name, d.span)
                block.frame.bind(symbol, values.ActionValue(symbol, d, name, block.frame))
                cx.program.action_names.append(name)


def control_body(cx: LowerContext, block: values.BlockValue) -> None:
    assert isinstance(block.declaration, ast.ControlDecl)
    assert block.declaration.body is not None
    make_locals(cx, block)
    cx.statement(block.declaration.body)


def apply_control(cx: LowerContext, e: ast.CallExpression, callee: Callee) -> None:
    assert callee.base is not None
    base = callee.base
    instance = cx.frame.lookup(base.target) if isinstance(base, ast.Name) and base.target is not None else None
    block = instance if isinstance(instance, values.BlockValue) else _direct(cx, callee, e.span)
    back = bind_block(cx, block, e, callee)
    cx.deeper(e.span)
    with cx.apart(block.frame) as made:
        control_body(cx, block)
    cx.depth -= 1
    cx.out.append(Region(made, span=e.span))
    copy_back(cx, back, made, e.span)


def _direct(cx: LowerContext, callee: Callee, span: SourceSpan) -> values.BlockValue:
    """`Control.apply(…)`: an unnamed instance takes the control's name."""
    assert callee.symbol is not None
    t = callee.symbol.type
    assert isinstance(t, ApplicableType)
    key = (id(cx.frame), id(t.declaration), span)
    if key not in cx.direct_blocks:
        prefix = cx.frame.prefix
        name = control_plane_name(t.declaration, prefix)
        cx.direct_blocks[key] = block_value(cx, t, Callee("constructor", t.name), name, span)
    return cx.direct_blocks[key]


def variable(cx: LowerContext, d: ast.Variable) -> None:
    symbol = cx.symbol_of(d)
    name = f"{cx.frame.prefix}.{d.name}" if cx.frame.prefix else d.name
    assert isinstance(symbol.type, Type)
    storage = cx.frame.bindings.get(id(symbol)) if cx.loops else None  # of an earlier round
    if storage is None:
        storage = allocate(cx, name, symbol.type, d.span)
        cx.frame.bind(symbol, storage)
        cx.program.named |= {
            leaf.header.index for leaf in values.leaves(storage) if isinstance(leaf, values.HeaderValue)
        }
    if d.initial is not None:
        assign(cx, storage, cx.value_of(d.initial), d.span)
    else:
        reset_headers(cx, storage, d.span)
