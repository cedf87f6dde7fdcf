"""Inlining: functions and actions called by name, in place, with their parameters."""

from p4c.frontend.check.scope import Callee, ParameterInfo, Symbol
from p4c.frontend.check.types import VOID, strip
from p4c.frontend.declared import DeclaredAction
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.flow import Apply, Flow, Quit, Region, bodies
from p4c.frontend.lower.assignment import assign, pinned, reset_headers
from p4c.frontend.lower.context import LowerContext, RefusalError, control_plane_name
from p4c.frontend.lower.storage import allocate
from p4c.frontend.lower.values import ActionValue, Bindings, ExternValue, Literal, Value
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar
from p4c.model.expressions import Const, Local


def call_action(cx: LowerContext, e: ast.CallExpression, callee: Callee) -> None:
    """An action called by name: its body in place, as one action."""
    assert callee.symbol is not None
    action = find_action(cx, callee.symbol)
    cx.deeper(e.span)
    if not cx.in_action:
        _name_called(cx, action)
    frame = Bindings(action.frame, action.name)
    with cx.apart() as made:
        back = _bind(cx, callee, frame)
        inlined(cx, action.declaration.body, frame, back, e.span)
    cx.depth -= 1
    cx.out.append(Region(made, whole=True, span=e.span))


def call_function(cx: LowerContext, e: ast.CallExpression, callee: Callee) -> Value:
    assert callee.symbol is not None
    declaration = callee.symbol.declaration
    assert isinstance(declaration, ast.Function)
    cx.deeper(e.span)
    frame = Bindings(cx.globals, declaration.name)
    back = _bind(cx, callee, frame)
    returns = callee.symbol.type
    result: Value = Literal(None, VOID)
    outer = cx.result
    if returns != VOID:
        cx.result = result = allocate(cx, f"{declaration.name}.return", strip(returns), e.span)
    with cx.apart(frame) as made:
        cx.statement(declaration.body)
    cx.result = outer
    cx.out.append(Region(made, span=e.span))
    copy_back(cx, back, made, e.span)
    cx.depth -= 1
    return result


def _bind(cx: LowerContext, callee: Callee, frame: Bindings) -> list[tuple[Value, Value]]:
    """Bind a call's arguments in `frame`; returns places with the storage to copy back to each."""
    assert callee.symbol is not None
    back: list[tuple[Value, Value]] = []
    for info, argument in zip(callee.symbol.parameters, callee.arguments, strict=True):
        storage, place = copied(cx, argument, info, f"{frame.prefix}.{info.name}")
        frame.bind(info.symbol, storage)
        if place is not None:
            back.append((place, storage))
    return back


def inlined(
    cx: LowerContext, body: ast.BlockStatement, frame: Bindings, back: list[tuple[Value, Value]], span: SourceSpan
) -> None:
    """An action's body in place, then its parameters copied back, which happens at an exit as well."""
    with cx.apart(frame) as made:
        cx.in_action += 1
        cx.statement(body)
        cx.in_action -= 1
    cx.out.append(Region(made, span=span))
    copy_back(cx, back, made, span)


def copied(cx: LowerContext, e: ast.Expression | None, info: ParameterInfo, name: str) -> tuple[Value, Value | None]:
    """A parameter's own storage, filled from the argument; and the place to write back to, if there is one."""
    if e is None:
        raise RefusalError(f"an argument for {info.name} is missing", info.declaration.span)
    if info.direction in ("", "in"):
        value = cx.value_of(e)
        if isinstance(value, Literal | ExternValue):
            return value, None
        if isinstance(value, Scalar) and isinstance(value.of, Const | Local):
            return value, None
        storage = allocate(cx, name, info.type, e.span)
        assign(cx, storage, value, e.span)
        return storage, None
    storage = allocate(cx, name, info.type, e.span)
    if isinstance(e, ast.Default):
        return storage, None
    place = pinned(cx, cx.value_of(e), e.span)
    if info.direction == "inout":
        assign(cx, storage, place, e.span)
    else:
        reset_headers(cx, storage, e.span)
    return storage, place


def copy_back(cx: LowerContext, back: list[tuple[Value, Value]], body: list[Flow], span: SourceSpan) -> None:
    if not back:
        return
    with cx.apart() as copies:
        for place, storage in back:
            assign(cx, place, storage, span)
    _before_quits(cx, body, copies, span)
    cx.out.extend(copies)


def _name_called(cx: LowerContext, action: ActionValue) -> None:
    """P4Info also lists the actions that a control calls, without parameters, which are bound."""
    if all(a.name != action.name for a in cx.program.called):
        d = action.declaration
        cx.program.called.append(DeclaredAction(action.name, annotations=d.annotations, span=d.span))


def find_action(cx: LowerContext, symbol: Symbol) -> ActionValue:
    """The action in this instance of its control, or the global one."""
    value = cx.frame.lookup(symbol)
    if isinstance(value, ActionValue):
        return value
    declaration = symbol.declaration
    assert isinstance(declaration, ast.ActionDecl)
    made = ActionValue(symbol, declaration, control_plane_name(declaration, ""), cx.globals)
    cx.globals.bind(symbol, made)
    cx.program.action_names.insert(0, made.name)
    return made


def _exits(a: DeclaredAction) -> bool:
    return a.action is not None and any(p.op == "exit" for p in a.action.primitives)


def _before_quits(cx: LowerContext, body: list[Flow], copies: list[Flow], span: SourceSpan) -> None:
    """Put `copies` in front of every exit in `body`."""
    position = 0
    while position < len(body):
        s = body[position]
        if isinstance(s, Quit):
            cx.count_parts(len(copies), span)
            body[position:position] = copies
            position += len(copies)
        for inner in bodies(s):
            _before_quits(cx, inner, copies, span)
        if isinstance(s, Apply) and any(_exits(a) for a, _ in s.table.actions):
            message = f"an action of table {s.table.name} exits a control whose parameters are copied back"
            raise RefusalError(message, span, "pass arguments that do not overlap")
        position += 1
