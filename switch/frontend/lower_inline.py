"""Inlining: functions, actions called by name, nested controls and parsers, with their parameters."""

from __future__ import annotations

from . import ast, ir
from .diagnostics import Span
from .lower_base import RefusalError
from .lower_statement import StatementLowerer
from .scope import Callee, ParameterInfo, Symbol
from .types import VOID, strip
from .values import (
    ActionValue,
    BlockValue,
    ElementValue,
    ExternValue,
    Frame,
    LastValue,
    Literal,
    NextValue,
    Record,
    Value,
    leaves,
    storage_names,
)

_INLINE_DEPTH_MAX = 64


class InlineLowerer(StatementLowerer):
    def copied(self, e: ast.Expression | None, info: ParameterInfo, name: str) -> tuple[Value, Value | None]:
        """A parameter's own storage, filled from the argument; and the argument's place if it is written back."""
        if e is None:
            raise RefusalError(f"an argument for {info.name} is missing", info.declaration.span)
        if info.direction == "":
            value = self.value_of(e)
            if isinstance(value, ir.Const | Literal | ExternValue | ir.Text | ir.ActionData):
                return value, None
            return self._stored(value, info, name, e.span), None
        if info.direction == "in":
            value = self.value_of(e)
            if isinstance(value, ir.Const | ir.ActionData | Literal | ExternValue):
                return value, None
            return self._stored(value, info, name, e.span), None
        storage = self.allocate(name, info.type, e.span)
        if isinstance(e, ast.Default):
            return storage, None
        place = self.pinned(self.value_of(e), e.span)
        if info.direction == "inout":
            self.assign(storage, place, e.span)
        else:
            self.reset_headers(storage, e.span)
        return storage, place

    def _stored(self, value: Value, info: ParameterInfo, name: str, span: Span) -> Value:
        storage = self.allocate(name, info.type, span)
        self.assign(storage, value, span)
        return storage

    def call_action(self, e: ast.Call, callee: Callee) -> None:
        """An action called by name: its body in place, as one action."""
        assert callee.symbol is not None
        action = self.find_action(callee.symbol)
        self._deeper(e.span)
        if not self.in_action:
            self._name_called(action)
        outer_frame, outer_out = self.frame, self.out
        self.out = []
        frame = Frame(action.frame, action.name)
        back: list[tuple[Value, Value]] = []
        for info, argument in zip(callee.symbol.parameters, callee.arguments, strict=True):
            storage, place = self.copied(argument, info, f"{action.name}.{info.name}")
            frame.bind(info.symbol, storage)
            if place is not None:
                back.append((place, storage))
        self.frame = frame
        self.inlined(action.declaration.body, back, e.span)
        made, self.out = self.out, outer_out
        self.frame = outer_frame
        self.depth -= 1
        self.out.append(ir.Region(made, whole=True, span=e.span))

    def inlined(self, body: ast.Block, back: list[tuple[Value, Value]], span: Span) -> None:
        """An action's body in place, then its parameters copied back, which happens at an exit as well."""
        before, self.out = self.out, []
        self.in_action += 1
        self.statement(body)
        self.in_action -= 1
        made, self.out = self.out, before
        self.out.append(ir.Region(made, span=span))
        self.copy_back(back, made, span)

    def copy_back(self, back: list[tuple[Value, Value]], body: list[ir.Stmt], span: Span) -> None:
        if not back:
            return
        outer, self.out = self.out, []
        for place, storage in back:
            self.assign(place, storage, span)
        copies, self.out = self.out, outer
        _before_quits(body, copies, span)
        self.out.extend(copies)

    def _name_called(self, action: ActionValue) -> None:
        """P4Info also lists the actions that a control calls, without parameters, which are bound."""
        if all(a.name != action.name for a in self.program.called):
            d = action.declaration
            self.program.called.append(ir.ActionDef(action.name, [], [], d.annotations, d.span))

    def _deeper(self, span: Span) -> None:
        self.depth += 1
        if self.depth > _INLINE_DEPTH_MAX:
            raise RefusalError(f"calls nest deeper than {_INLINE_DEPTH_MAX}: P4 has no recursion", span)

    def find_action(self, symbol: Symbol) -> ActionValue:
        """The action in this instance of its control, or the global one."""
        found = self.frame.lookup(symbol)
        if isinstance(found, ActionValue):
            return found
        declaration = symbol.declaration
        assert isinstance(declaration, ast.Action)
        made = ActionValue(symbol, declaration, self.control_plane_name(declaration, ""), self.globals)
        self.globals.bind(symbol, made)
        self.program.declared_actions.insert(0, made.name)
        return made

    globals: Frame

    def call_function(self, e: ast.Call, callee: Callee) -> Value:
        assert callee.symbol is not None
        declaration = callee.symbol.declaration
        assert isinstance(declaration, ast.Function)
        self._deeper(e.span)
        frame = Frame(self.globals, declaration.name)
        back: list[tuple[Value, Value]] = []
        for info, argument in zip(callee.symbol.parameters, callee.arguments, strict=True):
            storage, place = self.copied(argument, info, f"{declaration.name}.{info.name}")
            frame.bind(info.symbol, storage)
            if place is not None:
                back.append((place, storage))
        returns = callee.symbol.type
        result: Value = Literal(None, VOID)
        outer = self.frame, self.out, self.result
        if returns != VOID:
            result = self.allocate(f"{declaration.name}.return", strip(returns), e.span)
            self.result = result
        self.frame, self.out = frame, []
        self.statement(declaration.body)
        made = self.out
        self.frame, self.out, self.result = outer
        self.out.append(ir.Region(made, span=e.span))
        self.copy_back(back, made, e.span)
        self.depth -= 1
        return result

    def bind_block(self, block: BlockValue, e: ast.Call, callee: Callee) -> list[tuple[Value, Value]]:
        """Bind the arguments of a control or parser; returns what is to be copied back afterwards.

        Arguments are passed by reference where no two of them overlap, which cannot be told from copying then.
        """
        infos = block.symbol.parameters
        given = [a for a in callee.arguments if a is not None and not isinstance(a, ast.Default)]
        writes = {id(a) for a, i in zip(callee.arguments, infos, strict=True) if i.direction in ("out", "inout")}
        evaluated = iter(self.evaluated(*((a, id(a) in writes) for a in given)))
        values: list[Value | None] = []
        for argument in callee.arguments:
            values.append(None if argument is None or isinstance(argument, ast.Default) else next(evaluated))
        back: list[tuple[Value, Value]] = []
        bound: list[Value] = []
        for index, (value, info) in enumerate(zip(values, infos, strict=True)):
            span = e.span
            by_reference = value is not None and self._referable(value) and not self._overlaps(index, values, infos)
            if value is not None and by_reference:
                bound.append(value)
                if info.direction == "out":
                    self.reset_headers(value, span)
                continue
            if index not in block.storage:
                block.storage[index] = self.allocate(f"{block.name}.{info.name}", info.type, span)
            storage = block.storage[index]
            if value is not None and info.direction != "out":
                self.assign(storage, value, span)
            elif info.direction == "out":
                self.reset_headers(storage, span)
            if value is not None and info.direction in ("out", "inout"):
                back.append((self.pinned(value, span), storage))
            bound.append(storage)
        has_tables = any(isinstance(d, ast.Table) for d in block.declaration.locals)
        if block.bound is not None and has_tables and not _alike(block.bound, bound):
            raise RefusalError(f"{block.name} is applied twice with other arguments: make two instances", e.span)
        block.bound = bound
        for info, value in zip(infos, bound, strict=True):
            block.frame.bind(info.symbol, value)
        return back

    @staticmethod
    def _referable(value: Value) -> bool:
        if isinstance(value, ExternValue | Literal | ir.Const | ir.Text):
            return True
        if isinstance(value, Record):
            return all(not isinstance(leaf, ir.Expr) or isinstance(leaf, ir.FieldRef) for leaf in leaves(value))
        if isinstance(value, ElementValue | NextValue | LastValue):
            return False
        return not isinstance(value, ir.Expr) or isinstance(value, ir.FieldRef)

    @staticmethod
    def _overlaps(index: int, values: list[Value | None], infos: list[ParameterInfo]) -> bool:
        mine = values[index]
        if mine is None:
            return False
        writes = infos[index].direction in ("out", "inout")
        names = storage_names(mine)
        for other, (value, info) in enumerate(zip(values, infos, strict=True)):
            if other == index or value is None or not (writes or info.direction in ("out", "inout")):
                continue
            if names & storage_names(value):
                return True
        return False


def _before_quits(body: list[ir.Stmt], copies: list[ir.Stmt], span: Span) -> None:
    """Put `copies` in front of every exit in `body`."""
    position = 0
    while position < len(body):
        s = body[position]
        if isinstance(s, ir.Quit):
            body[position:position] = copies
            position += len(copies)
        elif isinstance(s, ir.Branch):
            _before_quits(s.then, copies, span)
            _before_quits(s.otherwise, copies, span)
        elif isinstance(s, ir.Region):
            _before_quits(s.body, copies, span)
        elif isinstance(s, ir.Apply):
            for inner in (s.hit, s.miss, s.default, *s.cases.values()):
                _before_quits(inner or [], copies, span)
            if any(_has_quit(action.body) for action, _ in s.table.actions):
                message = f"an action of table {s.table.name} exits a control whose parameters are copied back"
                raise RefusalError(message, span, "pass arguments that do not overlap")
        position += 1


def _has_quit(body: list[ir.Stmt]) -> bool:
    for s in body:
        if isinstance(s, ir.Quit):
            return True
        if isinstance(s, ir.Branch) and (_has_quit(s.then) or _has_quit(s.otherwise)):
            return True
        if isinstance(s, ir.Region) and _has_quit(s.body):
            return True
    return False


def _alike(a: list[Value], b: list[Value]) -> bool:
    for x, y in zip(a, b, strict=True):
        if isinstance(x, ir.Expr) and isinstance(y, ir.Expr):
            if x != y:
                return False
        elif isinstance(x, Record) and isinstance(y, Record):
            if not _alike(list(x.members.values()), list(y.members.values())):
                return False
        elif x is not y and not (isinstance(x, Literal) and isinstance(y, Literal) and x.value == y.value):
            return False
    return True
