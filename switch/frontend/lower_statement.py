"""Statements to IR, and the inlining of functions, actions and nested controls."""

from __future__ import annotations

from . import ast, ir
from .diagnostics import Span
from .lower_base import RefusalError
from .lower_expression import ExpressionLowerer
from .scope import Callee, Symbol
from .types import BOOL, Bits, Type
from .values import (
    HeaderValue,
    StackValue,
    Value,
    leaves,
)


class StatementLowerer(ExpressionLowerer):
    result: Value | None = None  # where the enclosing function's return value goes

    depth = 0  # of calls in one another
    in_action = 0  # > 0 inside an action's body

    def statement(self, s: ast.Statement) -> None:
        before = self.frame, self.out, self.result, self.depth, self.in_action
        try:
            getattr(self, "_do_" + type(s).__name__.lower())(s)
        except RefusalError as refusal:
            self.refuse(refusal)
            self.frame, self.out, self.result, self.depth, self.in_action = before

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
            headers = leaf.headers if isinstance(leaf, StackValue) else [leaf] if isinstance(leaf, HeaderValue) else []
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
                self.emit(op, ir.Object(stack.kind, stack.name), count, span=e.span)
            case "table":
                self.apply_table(e)
            case "action":
                self.call_action(e, callee)
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

    def call_action(self, e: ast.Call, callee: Callee) -> None:
        raise NotImplementedError

    def _header_method(self, e: ast.Call, callee: Callee) -> None:
        assert callee.base is not None
        header = self.header_object(self.value_of(callee.base), e.span)
        if callee.name == "isValid":
            return
        self.emit("add_header" if callee.name == "setValid" else "remove_header", header, span=e.span)


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
