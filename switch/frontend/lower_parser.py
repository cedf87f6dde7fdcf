"""Parsers: states with their operations and transitions, nested parsers and conditionals spread over more states."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from . import ast, ir
from .diagnostics import NOWHERE, Span
from .lower_base import RefusalError
from .lower_control import ControlLowerer
from .scope import Callee, Symbol
from .types import BOOL, ERROR, Applicable, Bits, Composite, Type, VarBits, strip, width
from .values import BlockValue, ExternValue, HeaderValue, LastValue, NextValue, Value

_OWN_OPS = frozenset(["extract", "extract_VL", "advance", "verify"])
_NO_MATCH = "noMatch"
_DEAD = "\0dead"


class ParserLowerer(ControlLowerer):
    state: ir.ParserState
    states: dict[str, ir.ParserState]

    def parser(self, block: BlockValue) -> None:
        """The whole top-level parser into `program.states`, reachable states only."""
        self.block = "parser"
        self.states = {}
        self.frame = block.frame
        self.state = self._new_state("start")
        self.make_locals(block)
        self._drain()
        # Variables set up by the parser itself are set once, also if the program comes back to its start state.
        separate = bool(self.state.ops)
        names = self._state_names(block, "" if not separate else None)
        if separate:
            self._go(names["start"])
        self._parser_states(block, names, None)
        self.program.states = self._reachable("start")

    # --- states ----------------------------------------------------------------------------------------------------

    def _new_state(self, name: str) -> ir.ParserState:
        unique, count = name, 0
        while unique in self.states:
            count += 1
            unique = f"{name}_{count}"
        made = ir.ParserState(unique)
        self.states[unique] = made
        return made

    def _state_names(self, block: BlockValue, prefix: str | None) -> dict[str, str]:
        """Names in the output for the states of one parser; `prefix` None keeps clear of what is there."""
        assert isinstance(block.declaration, ast.Parser)
        assert block.declaration.states is not None
        names = {}
        for s in block.declaration.states:
            wanted = f"{prefix}.{s.name}" if prefix else s.name
            if s.name == "start" and prefix == "":
                names[s.name] = "start"
            else:
                names[s.name] = self._new_state(wanted).name
        return names

    def _parser_states(self, block: BlockValue, names: dict[str, str], accept: str | None) -> None:
        assert isinstance(block.declaration, ast.Parser)
        targets: dict[str, str | None] = {**names, "accept": accept, "reject": None}
        for s in block.declaration.states or []:
            self.state = self.states[names[s.name]]
            for statement in s.statements:
                self.statement(statement)
                self._attempt(self._drain)
            self._attempt(partial(self._transition, s, targets))

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except RefusalError as refusal:
            self.refuse(refusal)

    def _reachable(self, first: str) -> list[ir.ParserState]:
        seen: dict[str, ir.ParserState] = {}
        waiting = [first]
        while waiting:
            name = waiting.pop(0)
            if name not in seen:
                seen[name] = self.states[name]
                waiting.extend(t.target for t in self.states[name].transitions if t.target is not None)
        return [s for n, s in self.states.items() if n in seen]

    def _go(self, target: str | None) -> None:
        """End the present state."""
        if not self.state.transitions:
            self.state.transitions.append(ir.ParserTransition("default", None, None, 0, target))

    # --- operations ------------------------------------------------------------------------------------------------

    def _drain(self) -> None:
        made, self.out = self.out, []
        self._place(made, None)

    def _place(self, statements: list[ir.Stmt], leave: str | None) -> None:
        """Append statements to the present state, opening new ones where control flow forks."""
        for s in statements:
            if isinstance(s, ir.Primitive):
                self._operation(s)
            elif isinstance(s, ir.Branch):
                self._fork(s, leave)
            elif isinstance(s, ir.Region):
                join = self._new_state(f"{self.state.name}_after")
                self._place(s.body, join.name)
                self._go(join.name)
                self.state = join
            elif isinstance(s, ir.Leave) and leave is not None:
                self._go(leave)
                self.state = ir.ParserState(_DEAD)
            else:
                raise RefusalError("this statement cannot be used in a parser", NOWHERE)

    def _fork(self, s: ir.Branch, leave: str | None) -> None:
        condition = self.temporary(BOOL)
        self._operation(ir.Primitive("assign", (condition, s.condition), s.span))
        base = self.state.name
        then, otherwise, join = (self._new_state(f"{base}_{w}") for w in ("true", "false", "join"))
        self.state.key = [condition]
        self.state.transitions = [
            ir.ParserTransition("hexstr", 1, None, 1, then.name),
            ir.ParserTransition("default", None, None, 0, otherwise.name),
        ]
        for state, body in ((then, s.then), (otherwise, s.otherwise)):
            self.state = state
            self._place(body, leave)
            self._go(join.name)
        self.state = join

    def _operation(self, p: ir.Primitive) -> None:
        for parameter in p.parameters:
            self._check_readable(parameter, p.span)
        if p.op in _OWN_OPS:
            self.state.ops.append(ir.ParserOp(p.op, p.parameters))
        elif p.op == "assign" and isinstance(p.parameters[0], ir.FieldRef) and len(p.parameters) == 2:
            self.state.ops.append(ir.ParserOp("set", p.parameters))
        else:
            self.state.ops.append(ir.ParserOp("primitive", (), p))

    def _check_readable(self, e: ir.Expr, span: Span) -> None:
        match e:
            case ir.LastField() if e.member:
                raise RefusalError(f"BMv2 reads {e} only as a whole key of a select", span)
            case ir.Operation(operands=parts) | ir.Vector(items=parts):
                for part in parts:
                    self._check_readable(part, span)
            case ir.SliceOf():
                self._check_readable(e.base, span)

    # --- the packet ------------------------------------------------------------------------------------------------

    def _packet_in_extract(self, e: ast.Call, c: Callee, _o: ExternValue) -> None:
        if self.block != "parser":
            raise RefusalError("extract can be called in the parser's states only", e.span)
        target = c.arguments[0]
        assert target is not None
        if isinstance(target, ast.Default):
            if not isinstance(target.type, Composite):
                raise RefusalError("extract needs a type argument to skip a header: extract<T>(_)", e.span)
            value: Value = self.header_instance(self.unique("skipped"), target.type)
        else:
            value = self.value_of(target)
        if isinstance(value, NextValue) and value.type.kind == "header":
            kind = "union_stack" if value.member else "stack"
            place: ir.Expr = ir.Object(kind, value.stack.name, value.member)
            t = value.type
        elif isinstance(value, HeaderValue):
            place, t = ir.Object("regular", value.name), value.type
        else:
            what = "the last element of a stack" if isinstance(value, LastValue) else "this"
            raise RefusalError(f"BMv2 extracts into headers and the next element of a stack, not into {what}", e.span)
        variable = any(isinstance(strip(f.type), VarBits) for f in t.fields.values())
        if variable != (len(c.arguments) == 2):
            need = "needs the length of its varbit field" if variable else "has no varbit field: leave out the length"
            raise RefusalError(f"extracting header {t.name} {need}", e.span)
        if variable:
            length = c.arguments[1]
            assert length is not None
            self.emit("extract_VL", place, self.scalar_of(length), span=e.span)
        else:
            bits = width(t)
            if bits is not None and bits % 8:
                raise RefusalError(f"header {t.name} is {bits} bits long: BMv2 extracts whole bytes", e.span)
            self.emit("extract", place, span=e.span)

    def _packet_in_advance(self, e: ast.Call, c: Callee, _o: ExternValue) -> None:
        assert c.arguments[0] is not None
        distance = self.scalar_of(c.arguments[0])
        if not isinstance(distance, ir.FieldRef | ir.Const):
            distance = self._kept(distance, e.span)  # BMv2 advances by fields and constants
        self.emit("advance", distance, span=e.span)

    def _packet_in_lookahead(self, e: ast.Call, c: Callee, _o: ExternValue) -> None:
        # Without use for the bits there still is an error if they are not there.
        bits = width(c.type_arguments[0])
        if bits is None:
            raise RefusalError(f"lookahead needs a type of fixed size, not {c.type_arguments[0]}", e.span)
        self.assign_scalar(self.temporary(Bits(bits)), ir.Lookahead(0, bits, Bits(bits)), e.span)

    def apply_parser(self, e: ast.Call, callee: Callee) -> None:
        """A nested parser: its states under its name, its accept the rest of this state."""
        assert callee.base is not None
        base = callee.base
        found = self.frame.lookup(base.target) if isinstance(base, ast.Name) and base.target is not None else None
        if isinstance(found, BlockValue):
            block = found
        else:
            assert callee.symbol is not None
            assert isinstance(callee.symbol.type, Applicable)
            name = f"{self.frame.prefix}.{callee.symbol.name}"
            block = self.block_value(callee.symbol.type, Callee("constructor", callee.name), name, e.span)
        back = self.bind_block(block, e, callee)
        self._deeper(e.span)
        outer, state = self.frame, self.state
        self._drain()
        self.frame = block.frame
        self.make_locals(block)
        self._drain()
        join = self._new_state(f"{state.name}_after")
        names = self._state_names(block, block.name)
        self._go(names["start"])
        self._parser_states(block, names, join.name)
        self.frame, self.state = outer, join
        self.depth -= 1
        for place, storage in back:
            self.assign(place, storage, e.span)
        self._drain()

    # --- transitions -----------------------------------------------------------------------------------------------

    def _transition(self, s: ast.State, targets: dict[str, str | None]) -> None:
        t = s.transition
        if self.state.name == _DEAD:
            return
        if t is None:
            self._warn_reject(s.span, f"state {s.name} has no transition, which means reject")
            self._go(None)
            return
        if t.state is not None:
            if t.state == "reject":
                self._warn_reject(t.span, "transition to reject")
            self._go(targets[t.state])
            return
        keys = []
        for e in t.select:
            key = self.scalar_of(e)
            self._drain()
            if not isinstance(key, ir.FieldRef | ir.LastField):
                kept = self.temporary(key.type)
                self._operation(ir.Primitive("assign", (kept, key), e.span))
                key = kept
            keys.append(key)
        widths = [self.bits(strip(e.type)) for e in t.select if isinstance(e.type, Type)]
        transitions: list[ir.ParserTransition] = []
        for case in t.cases:
            if case.state == "reject":
                self._warn_reject(case.span, "transition to reject")
            transitions.extend(self._case(case, widths, targets[case.state]))
            if transitions[-1].kind == "default":
                break
        if transitions and transitions[0].kind == "default":
            self._go(transitions[0].target)
            return
        if not transitions or transitions[-1].kind != "default":
            transitions.append(ir.ParserTransition("default", None, None, 0, self._no_match()))
        self.state.key = list(keys)
        self.state.transitions = transitions

    def _warn_reject(self, span: Span, what: str) -> None:
        self.diagnostics.warning("target", f"{what}: BMv2 ends parsing and goes on with the packet", span)

    def _no_match(self) -> str:
        """The state behind a select that fits no case (specification, section 13.6)."""
        if _NO_MATCH not in self.states:
            state = self._new_state(_NO_MATCH)
            error = ir.Const(self.errors["NoMatch"], ERROR)
            state.ops.append(ir.ParserOp("verify", (ir.Const(0, BOOL), error)))
            state.transitions.append(ir.ParserTransition("default", None, None, 0, None))
        return _NO_MATCH

    def _case(self, case: ast.SelectCase, widths: list[int], target: str | None) -> list[ir.ParserTransition]:
        keys = case.keys
        if len(keys) == 1 and isinstance(keys[0], ast.Name) and keys[0].target is not None:
            symbol = keys[0].target
            if symbol.kind == "value_set":
                name = self._value_set(symbol)
                total = sum((w + 7) // 8 for w in widths)
                return [ir.ParserTransition("parse_vset", name, None, total, target)]
        if len(keys) == 1 and isinstance(keys[0], ast.Default):
            return [ir.ParserTransition("default", None, None, 0, target)]
        choices: list[list[tuple[int, int]]] = [self._value_and_masks(k, w) for k, w in zip(keys, widths, strict=True)]
        made = []
        for combination in _product(choices):
            value = mask = exact = total = 0
            for (v, m), w in zip(combination, widths, strict=True):
                padded = (w + 7) // 8 * 8
                value, mask, exact = (
                    (value << padded) | (v & m),
                    (mask << padded) | m,
                    (exact << padded) | ((1 << w) - 1),
                )
                total += padded // 8
            if mask == 0:
                made.append(ir.ParserTransition("default", None, None, 0, target))
            else:
                made.append(ir.ParserTransition("hexstr", value, None if mask == exact else mask, total, target))
        return made

    def _value_set(self, symbol: Symbol) -> str:
        declaration = symbol.declaration
        assert isinstance(declaration, ast.ValueSet)
        name = self.control_plane_name(declaration, self.frame.prefix)
        if all(v.name != name for v in self.program.value_sets):
            self.program.value_sets.append(ir.ValueSetDef(name, symbol.value, symbol.type, declaration.annotations))
        return name

    def _value_and_masks(self, e: ast.Expression, bits: int) -> list[tuple[int, int]]:
        """A key set element as (value, mask) pairs: one, or for a range as many prefixes as it takes."""
        full = (1 << bits) - 1

        def number(x: ast.Expression) -> int:
            value = self.scalar_of(x)
            assert isinstance(value, ir.Const)
            return value.value & full

        if isinstance(e, ast.Default):
            return [(0, 0)]
        if isinstance(e, ast.Binary) and e.op == "&&&":
            return [(number(e.left), number(e.right))]
        if isinstance(e, ast.Binary) and e.op == "..":
            low, high = number(e.left), number(e.right)
            if low > high:
                raise RefusalError(f"the range {low}..{high} is empty", e.span)
            return _prefixes(low, high, bits)
        return [(number(e), full)]


def _prefixes(low: int, high: int, bits: int) -> list[tuple[int, int]]:
    """The least set of prefixes that covers low..high."""
    found = []
    while low <= high:
        size = low & -low if low else 1 << bits
        while low + size - 1 > high:
            size >>= 1
        found.append((low, ((1 << bits) - 1) & ~(size - 1)))
        low += size
    return found


def _product(choices: list[list[tuple[int, int]]]) -> list[list[tuple[int, int]]]:
    combined: list[list[tuple[int, int]]] = [[]]
    for options in choices:
        combined = [[*c, o] for c in combined for o in options]
    return combined
