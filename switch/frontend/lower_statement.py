"""Statements to IR, and the inlining of functions, actions and nested controls."""

from __future__ import annotations

from . import ast, ir
from .diagnostics import Span
from .lower_base import RefusalError
from .lower_expression import ExpressionLowerer
from .scope import Callee, ParameterInfo, Symbol
from .types import BOOL, VOID, Bits, Type, strip
from .values import (
    ActionValue,
    BlockValue,
    ElementValue,
    ExternValue,
    Frame,
    HeaderValue,
    LastValue,
    Literal,
    NextValue,
    Record,
    StackValue,
    Value,
    leaves,
    storage_names,
)

_INLINE_DEPTH_MAX = 64


class StatementLowerer(ExpressionLowerer):
    result: Value | None = None  # where the enclosing function's return value goes
    depth = 0
    in_action = 0  # > 0 inside an action's body

    def statement(self, s: ast.Statement) -> None:
        try:
            getattr(self, "_do_" + type(s).__name__.lower())(s)
        except RefusalError as refusal:
            self.refuse(refusal)

    def body(self, s: ast.Statement | None) -> list[ir.Stmt]:
        """The statements of a branch."""
        outer, self.out = self.out, []
        if s is not None:
            self.statement(s)
        made, self.out = self.out, outer
        return made

    def _do_block(self, s: ast.Block) -> None:
        if any(a.name == "atomic" for a in s.annotations):
            outer, self.out = self.out, []
            for item in s.statements:
                self.statement(item)
            made, self.out = self.out, outer
            if _applies_table(made):
                message = "BMv2 is atomic within one action: this block, which applies a table, is not"
                self.diagnostics.warning("target", message, s.span)
                self.out.extend(made)
                return
            if _leaves(made):
                raise RefusalError("an @atomic block cannot return: BMv2 is atomic within one action only", s.span)
            self.out.append(ir.Region(made, whole=True, span=s.span))
            return
        for item in s.statements:
            self.statement(item)

    def _do_empty(self, _s: ast.Empty) -> None:
        pass

    def _do_exit(self, _s: ast.Exit) -> None:
        self.out.append(ir.Quit())

    def _do_return(self, s: ast.Return) -> None:
        if s.value is not None and self.result is not None:
            self.assign(self.result, self.value_of(s.value), s.span)
        self.out.append(ir.Leave())

    def _do_assignment(self, s: ast.Assignment) -> None:
        if s.op == "=" or not isinstance(s.value, ast.Binary):
            target, value = self.evaluated((s.target, True), (s.value, False))
        else:
            target, right = self.evaluated((s.target, True), (s.value.right, False))
            target = self.pinned(target, s.span)
            value = self.binary(s.value, target, right)
        self.assign(target, value, s.span)

    def _do_declare(self, s: ast.Declare) -> None:
        if isinstance(s.declaration, ast.Variable):
            self.variable(s.declaration)

    def variable(self, d: ast.Variable) -> None:
        symbol = self.symbol_of(d)
        name = f"{self.frame.prefix}.{d.name}" if self.frame.prefix else d.name
        assert isinstance(symbol.type, Type)
        storage = self.allocate(name, symbol.type, d.span)
        self.frame.bind(symbol, storage)
        if d.initial is not None:
            self.assign(storage, self.value_of(d.initial), d.span)
        else:
            self.reset_headers(storage, d.span)

    def symbol_of(self, d: ast.Declaration) -> Symbol:
        raise NotImplementedError

    def reset_headers(self, storage: Value, span: Span) -> None:
        """A header variable starts invalid (specification, section 8.17)."""
        for leaf in leaves(storage):
            headers = [leaf] if isinstance(leaf, HeaderValue) else leaf.elements if isinstance(leaf, StackValue) else []
            for header in headers:
                self.emit("remove_header", ir.Object("header", header.name), span=span)

    def _do_if(self, s: ast.If) -> None:
        if self._branch_on_table(s):
            return
        condition = self.scalar_of(s.condition)
        if isinstance(condition, ir.Const):
            taken = s.then if condition.value else s.otherwise
            if taken is not None:
                self.statement(taken)
            return
        then, otherwise = self.body(s.then), self.body(s.otherwise)
        self.out.append(ir.Branch(condition, then, otherwise, s.condition.span))

    def _branch_on_table(self, s: ast.If) -> bool:
        """`if (table.apply().hit)` and its kin become next tables by hit and miss."""
        condition, negated = s.condition, False
        while isinstance(condition, ast.Unary) and condition.op == "!":
            condition, negated = condition.operand, not negated
        if not isinstance(condition, ast.Member) or not isinstance(condition.base, ast.Call):
            return False
        callee = condition.base.target
        if not isinstance(callee, Callee) or callee.kind != "table":
            return False
        applied = self.apply_table(condition.base)
        then, otherwise = self.body(s.then), self.body(s.otherwise)
        if (condition.name == "hit") != negated:
            applied.hit, applied.miss = then, otherwise
        else:
            applied.hit, applied.miss = otherwise, then
        return True

    def _do_switch(self, s: ast.Switch) -> None:
        subject = s.subject
        if isinstance(subject, ast.Member) and subject.name == "action_run":
            self._switch_on_action(s, subject)
            return
        value = self.scalar_of(subject)
        if not isinstance(value, ir.Const | ir.FieldRef | ir.ActionData):
            kept = self.temporary(value.type)
            self.assign_scalar(kept, value, s.span)
            value = kept
        written = self._switch_chain(s, value)
        self.out.extend(written)

    def _switch_chain(self, s: ast.Switch, value: ir.Expr) -> list[ir.Stmt]:
        """Cases in order as a chain of branches, the default last wherever it stands."""
        cases: list[tuple[ir.Expr, list[ir.Stmt], Span]] = []
        default: list[ir.Stmt] = []
        pending: list[ir.Expr] = []
        falls_to_default = False
        for case in s.cases:
            label = case.labels[0]
            if isinstance(label, ast.Default):
                falls_to_default = True
            else:
                equal = self.operation("==", (value, self.scalar_of(label)), BOOL, label.span)
                pending.append(equal)
            if case.body is None:
                continue
            made = self.body(case.body)
            if falls_to_default:
                default = made
            elif pending:
                condition = pending[0]
                for other in pending[1:]:
                    condition = self.operation("||", (condition, other), BOOL, case.span)
                cases.append((condition, made, case.span))
            pending, falls_to_default = [], False
        result = default
        for condition, made, span in reversed(cases):
            result = [ir.Branch(condition, made, result, span)]
        return result

    def _switch_on_action(self, s: ast.Switch, subject: ast.Member) -> None:
        call = subject.base
        assert isinstance(call, ast.Call)
        applied = self.apply_table(call)
        pending: list[str] = []
        falls_to_default = False
        names = {definition.name for definition, _ in applied.table.actions}
        for case in s.cases:
            label = case.labels[0]
            if isinstance(label, ast.Default):
                falls_to_default = True
            else:
                assert isinstance(label, ast.Name)
                pending.append(self.action_name(applied.table, label, call))
            if case.body is None:
                continue
            for name in pending:
                applied.cases[name] = self.body(case.body)
            if falls_to_default:
                applied.default = self.body(case.body)
            pending, falls_to_default = [], False
        if set(applied.cases) >= names:
            applied.default = None

    def action_name(self, table: ir.Table, label: ast.Name, call: ast.Call) -> str:
        raise NotImplementedError

    # --- calls as statements ---------------------------------------------------------------------------------------

    def _do_callstatement(self, s: ast.CallStatement) -> None:
        e = s.call
        callee = e.target
        assert isinstance(callee, Callee)
        match callee.kind:
            case "header":
                self._header_method(e, callee)
            case "stack":
                assert callee.base is not None
                stack = self.value_of(callee.base)
                assert isinstance(stack, StackValue)
                count = ir.Const(e.arguments[0].expression.value, Bits(32))
                op = "push" if callee.name == "push_front" else "pop"
                self.emit(op, ir.Object("header_stack", stack.name), count, span=e.span)
            case "table":
                self.apply_table(e)
            case "action":
                self._call_action(e, callee)
            case "function":
                self.call_function(e, callee)
            case "control":
                self.apply_control(e, callee)
            case "parser":
                self.apply_parser(e, callee)
            case "extern_function" | "extern_method":
                self.call_extern(e, callee)
            case _:
                raise RefusalError(f"{callee.name} has no effect as a statement", e.span)

    def apply_control(self, e: ast.Call, callee: Callee) -> None:
        raise NotImplementedError

    def apply_parser(self, e: ast.Call, callee: Callee) -> None:
        raise NotImplementedError

    def call_extern(self, e: ast.Call, callee: Callee) -> None:
        raise NotImplementedError

    def _header_method(self, e: ast.Call, callee: Callee) -> None:
        assert callee.base is not None
        header = self.header_object(self.value_of(callee.base), e.span)
        if callee.name == "isValid":
            return
        self.emit("add_header" if callee.name == "setValid" else "remove_header", header, span=e.span)

    # --- inlining --------------------------------------------------------------------------------------------------

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

    def _call_action(self, e: ast.Call, callee: Callee) -> None:
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


def _leaves(statements: list[ir.Stmt]) -> bool:
    """Whether a Leave in `statements` would go beyond them."""
    for s in statements:
        if isinstance(s, ir.Leave) or (isinstance(s, ir.Branch) and (_leaves(s.then) or _leaves(s.otherwise))):
            return True
    return False


def _applies_table(statements: list[ir.Stmt]) -> bool:
    for s in statements:
        if isinstance(s, ir.Apply):
            return True
        if isinstance(s, ir.Branch) and (_applies_table(s.then) or _applies_table(s.otherwise)):
            return True
        if isinstance(s, ir.Region) and _applies_table(s.body):
            return True
    return False
