"""parsers and deparsers."""

from functools import partial

from p4c.model import parsers
from p4c.model.expressions import Const, Kind, LastField
from p4c.model.headers import Header, HeaderType, UnionStack
from p4c.model.limits import BITS_MAX
from p4c.model.loading.actions import read_primitives
from p4c.model.loading.cursor import JsonCursor
from p4c.model.loading.expressions import kinded
from p4c.model.loading.scope import LoadScope, declare, field_of, named, packet_header
from p4c.model.program import ValueSet


def read_parser(root: JsonCursor, scope: LoadScope) -> parsers.Parser:
    for at_set in root.list_of("parse_vsets"):
        declare(scope.value_sets, at_set, "value set", partial(_value_set, at_set))
    at = _only(root, "parsers", "parser")
    state_list = at.get("parse_states").items()
    names = {s.get("name").text() for s in state_list}
    if len(names) != len(state_list):
        at.fail("two parser states have the same name")
    states = tuple(_state(i, s, names, scope) for i, s in enumerate(state_list))
    return parsers.Parser(at.get("name").text(), _next(at.get("init_state"), names), states)


def _value_set(at: JsonCursor, name: str) -> ValueSet:
    return ValueSet(name, at.get("compressed_bitwidth").integer(), at.get("max_size").integer())


def read_deparser(root: JsonCursor, scope: LoadScope) -> parsers.Deparser:
    at = _only(root, "deparsers", "deparser")
    order = tuple(packet_header(scope.headers, h) for h in at.get("order").items())
    return parsers.Deparser(at.get("name").text(), order, read_primitives(at.list_of("primitives"), scope))


def _only(root: JsonCursor, key: str, name: str) -> JsonCursor:
    matches = [at for at in root.list_of(key) if at.get("name").text() == name]
    if len(matches) != 1:
        root.fail(f"{key} must hold exactly one called {name!r}, as simple_switch expects")
    return matches[0]


def _next(at: JsonCursor, names: set[str]) -> str | None:
    if at.value is None:
        return None
    name = at.text()
    if name not in names:
        at.fail(f"no parser state is called {name!r}")
    return name


def _state(index: int, at: JsonCursor, names: set[str], scope: LoadScope) -> parsers.State:
    operations = tuple(_operation(op, scope) for op in at.get("parser_ops").items())
    key = tuple(_key_part(part, scope) for part in at.get("transition_key").items())
    transitions: list[parsers.Transition] = []
    default: str | None = None
    for transition_at in at.get("transitions").items():
        next_state = _next(transition_at.get("next_state"), names)
        kind = transition_at.find("type")
        if (kind is not None and kind.text() == "default") or transition_at.get("value").value == "default":
            default = next_state
        elif kind is None or kind.text() == "hexstr":
            transitions.append(_transition(transition_at, key, next_state))
        elif kind.text() == "parse_vset":
            chosen = named(scope.value_sets, transition_at.get("value"), "value set")
            if chosen.width_bits != sum(part.width_bits for part in key) or not key:
                transition_at.fail(f"value set {chosen.name!r} has {chosen.width_bits} bits, unlike the key")
            transitions.append(parsers.Transition((), (), next_state, chosen.name))
        else:
            transition_at.unsupported(f"a transition of type {kind.text()!r}")
    return parsers.State(at.get("name").text(), index, operations, key, tuple(transitions), default)


def _transition(at: JsonCursor, key: tuple[parsers.KeyPart, ...], next_state: str | None) -> parsers.Transition:
    if not key:
        at.fail("a transition on a value, in a state without a transition key")
    masks = tuple((1 << part.width_bits) - 1 for part in key)
    mask = at.find("mask")
    if mask is not None:
        masks = tuple(m & full for m, full in zip(_split(mask, key), masks, strict=True))
    values = tuple(v & m for v, m in zip(_split(at.get("value"), key), masks, strict=True))
    return parsers.Transition(values, masks, next_state)


def _split(at: JsonCursor, key: tuple[parsers.KeyPart, ...]) -> tuple[int, ...]:
    """The parts of a transition value: each key part is padded to whole bytes."""
    sizes = [(part.width_bits + 7) // 8 * 8 for part in key]
    rest = at.hexbits(sum(sizes))
    parts = []
    for size in reversed(sizes):
        parts.append(rest & ((1 << size) - 1))
        rest >>= size
    return tuple(reversed(parts))


def _lookahead(at: JsonCursor) -> parsers.Lookahead:
    offset, width = at.items(2)
    return parsers.Lookahead(offset.integer(maximum=BITS_MAX), width.integer(1, BITS_MAX))


def _union_member(stack: UnionStack, at: JsonCursor) -> int:
    members = stack.unions[0].members
    if at.text() not in members:
        at.fail(f"the union has no member {at.text()!r}; there are: {', '.join(members)}")
    return members.index(at.text())


def _key_part(at: JsonCursor, scope: LoadScope) -> parsers.KeyPart:
    kind, value = at.get("type").text(), at.get("value")
    if kind == "field":
        field = scope.stored_field(value)
        return parsers.KeyPart(field, field.field.width_bits)
    if kind == "stack_field":
        stack_at, field_at = value.items(2)
        stack = named(scope.stacks, stack_at, "header stack")
        last = LastField(stack, field_of(stack.type, field_at.text(), value))
        return parsers.KeyPart(last, last.field.width_bits)
    if kind == "union_stack_field":
        stack_at, member_at, field_at = value.items(3)
        union_stack = named(scope.union_stacks, stack_at, "header union stack")
        member = _union_member(union_stack, member_at)
        member_field = field_of(union_stack.unions[0].headers[member].type, field_at.text(), value)
        return parsers.KeyPart(parsers.LastUnionField(union_stack, member, member_field), member_field.width_bits)
    if kind == "lookahead":
        lookahead = _lookahead(value)
        return parsers.KeyPart(lookahead, lookahead.width_bits)
    return at.unsupported(f"a transition key of type {kind!r}")


def _operation(at: JsonCursor, scope: LoadScope) -> parsers.Operation:
    op, parameters = at.get("op").text(), at.get("parameters")
    if op in ("extract", "extract_VL"):
        return _extract(op, parameters, scope)
    if op == "set":
        target_at, value_at = parameters.items(2)
        if target_at.get("type").text() != "field":
            target_at.fail("a parser sets fields only")
        target = scope.stored_field(target_at.get("value"))
        if target.field.varbit:
            target_at.unsupported("setting a varbit field in a parser")
        if value_at.get("type").text() == "lookahead":
            return parsers.Set(target, _lookahead(value_at.get("value")))
        return parsers.Set(target, kinded(value_at, scope, Kind.DATA))
    if op == "verify":
        condition, error = parameters.items(2)
        if isinstance(error.value, int):
            return parsers.Verify(kinded(condition, scope, Kind.BOOL), Const(error.integer()))
        return parsers.Verify(kinded(condition, scope, Kind.BOOL), kinded(error, scope, Kind.DATA))
    if op == "shift":
        (amount,) = parameters.items(1)
        return parsers.Advance(Const(8 * amount.integer()))
    if op == "advance":
        (amount,) = parameters.items(1)
        return parsers.Advance(kinded(amount, scope, Kind.DATA))
    if op == "primitive":
        (call,) = parameters.items(1)
        primitive = read_primitives([call], scope)[0]
        if primitive.op.startswith("_jump"):
            call.unsupported(f"{primitive.op} in a parser")
        return parsers.Call(primitive)
    return at.unsupported(f"unknown parser operation {op!r}")


def _extract(op: str, parameters: JsonCursor, scope: LoadScope) -> parsers.Extract:
    items = parameters.items(1 if op == "extract" else 2)
    kind, value = items[0].get("type").text(), items[0].get("value")
    into: Header | parsers.StackNext | parsers.UnionStackNext
    if kind == "regular":
        into = packet_header(scope.headers, value)
        header_type: HeaderType = into.type
    elif kind == "stack":
        into = parsers.StackNext(named(scope.stacks, value, "header stack"))
        header_type = into.stack.type
    elif kind == "union_stack":
        stack_at, member_at = value.items(2)
        into = parsers.UnionStackNext(named(scope.union_stacks, stack_at, "header union stack"), 0)
        member = _union_member(into.stack, member_at)
        into = parsers.UnionStackNext(into.stack, member)
        header_type = into.stack.unions[0].headers[member].type
    else:
        items[0].unsupported(f"extraction into a {kind!r}; there are: regular, stack, union_stack")
    if (header_type.varbit is not None) != (op == "extract_VL"):
        need = "extract_VL" if header_type.varbit is not None else "extract"
        parameters.fail(f"header type {header_type.name!r} must be extracted with {need}")
    if op == "extract":
        return parsers.Extract(into)
    return parsers.Extract(into, kinded(items[1], scope, Kind.DATA))
