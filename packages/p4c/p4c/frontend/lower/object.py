"""Extern objects: counters, meters, registers and profiles, made and used."""

from p4c.frontend.check.scope import Callee
from p4c.frontend.check.types import Bits, EnumValue, Extern, strip
from p4c.frontend.declared import Declared, DeclaredCounter, DeclaredMeter, DeclaredProfile, DeclaredRegister
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.lower.argument import algorithm, into, number
from p4c.frontend.lower.context import BLOCKS, LowerContext, Methods, RefusalError
from p4c.frontend.lower.values import ExternValue, Literal
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar
from p4c.model.expressions import FieldRef
from p4c.model.externs import Counter, Meter
from p4c.model.registers import Register


def extern_object(cx: LowerContext, d: ast.Instance, t: Extern, callee: Callee, name: str) -> ExternValue:
    made: Declared
    source = cx.diagnostics.source(d.span)
    cx.claim(t.name, name, d.span)
    index = t.arguments[-1] if t.arguments and t.name in ("counter", "meter") else None
    if t.name in ("counter", "direct_counter", "meter", "direct_meter"):
        direct, noun = t.name.startswith("direct_"), t.name.removeprefix("direct_")
        size = None if direct else _constant_argument(cx, callee, 0, f"the size of a {noun}")
        unit = _unit(cx, callee, 0 if direct else 1)
        if noun == "counter":
            counters = cx.program.counters
            counter = None if size is None else Counter(name, len(counters), size, source=source)
            made = DeclaredCounter(name, unit, size, index, counter=counter)
            counters.append(made)
        else:
            meters = cx.program.meters
            meter = None if size is None else Meter(name, len(meters), size, unit == "bytes", source=source)
            made = DeclaredMeter(name, unit, size, index, meter=meter)
            meters.append(made)
    elif t.name == "register":
        element = strip(t.arguments[0])
        if not isinstance(element, Bits):
            raise RefusalError(f"BMv2 registers hold bit<> or int<>, not {t.arguments[0]}", d.span)
        size = _constant_argument(cx, callee, 0, "the size of a register")
        index_type = t.arguments[1] if len(t.arguments) > 1 else None
        register = Register(name, len(cx.program.registers), size, element.width, source)
        made = DeclaredRegister(name, t.arguments[0], index_type, register)
        cx.program.registers.append(made)
    elif t.name == "action_profile":
        made = DeclaredProfile(name, _constant_argument(cx, callee, 0, "the size of an action profile"), None)
    elif t.name == "action_selector":
        size = _constant_argument(cx, callee, 1, "the size of an action selector")
        chosen = callee.arguments[0]
        assert chosen is not None
        made = DeclaredProfile(name, size, algorithm(cx, chosen))
    else:
        raise RefusalError(
            f"BMv2's simple_switch has no extern {t.name}",
            d.span,
            f"{t.name} is deprecated: use verify_checksum/update_checksum" if t.name == "Checksum16" else "",
            "externs: action_profile, action_selector, counter, direct_counter, direct_meter, meter, register",
        )
    made.annotations, made.span = d.annotations, d.span
    return ExternValue(t, name, made)


def _constant_argument(cx: LowerContext, callee: Callee, index: int, what: str) -> int:
    argument = callee.arguments[index]
    assert argument is not None
    value = cx.value_of(argument)
    if not isinstance(value, Scalar) or value.number is None:
        raise RefusalError(f"{what} must be known at compile time", argument.span)
    return value.number


def _unit(cx: LowerContext, callee: Callee, index: int) -> str:
    argument = callee.arguments[index]
    assert argument is not None
    value = cx.value_of(argument)
    assert isinstance(value, Literal)
    assert isinstance(value.value, EnumValue)
    return value.value.member


def _only_in_pipeline(cx: LowerContext, what: str, span: SourceSpan) -> None:
    if cx.block not in ("ingress", "egress"):
        raise RefusalError(f"{what} can be used in ingress and egress, not in {BLOCKS[cx.block]}", span)


def _register_read(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression], o: ExternValue) -> None:
    _only_in_pipeline(cx, "a register", e.span)
    into(cx, "register_read", a[0], e.span, o.object.register, number(cx, a[1]))


def _register_write(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression], o: ExternValue) -> None:
    _only_in_pipeline(cx, "a register", e.span)
    index, value = number(cx, a[0]), number(cx, a[1])
    cx.emit("register_write", o.object.register, index, value, span=e.span)


def _counter_count(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression], o: ExternValue) -> None:
    _only_in_pipeline(cx, "a counter", e.span)
    cx.emit("count", o.object.counter, number(cx, a[0]), span=e.span)


def _meter_execute_meter(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression], o: ExternValue) -> None:
    _only_in_pipeline(cx, "a meter", e.span)
    into(cx, "execute_meter", a[1], e.span, o.object.meter, number(cx, a[0]), last=True)


def _direct_counter_count(cx: LowerContext, _e: ast.CallExpression, _a: list[ast.Expression], _o: ExternValue) -> None:
    # BMv2 counts whenever an entry of the table is hit.
    pass


def _direct_meter_read(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression], o: ExternValue) -> None:
    # BMv2 executes the meter at each hit and puts the colour into one field, the same for all actions.
    place = cx.scalar_of(a[0]).of
    meter = o.object
    assert isinstance(meter, DeclaredMeter)
    if not isinstance(place, FieldRef):
        raise RefusalError("a direct meter is read into a whole field or variable", e.span)
    if meter.result is not None and meter.result != place:
        raise RefusalError(f"meter {o.name} is read into two places, {meter.result} and {place}", e.span)
    meter.result = place


METHODS: Methods = {
    "register.read": _register_read,
    "register.write": _register_write,
    "counter.count": _counter_count,
    "meter.execute_meter": _meter_execute_meter,
    "direct_counter.count": _direct_counter_count,
    "direct_meter.read": _direct_meter_read,
}
