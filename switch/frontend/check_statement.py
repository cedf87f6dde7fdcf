"""Statements and parser states (specification, chapters 12 and 13)."""

from __future__ import annotations

from . import ast
from .check_call import CallChecker
from .diagnostics import Span, choices
from .scope import Scope, Symbol
from .types import ACTION_RUN, ANY, BOOL, INT, VOID, Applicable, Composite, Enum, Extern, Meta, Stack, Type, strip


class StatementChecker(CallChecker):
    returns: Type = VOID

    def statements(self, items: list[ast.Statement]) -> None:
        for item in items:
            self.statement(item)

    def statement(self, s: ast.Statement) -> None:
        getattr(self, "_do_" + type(s).__name__.lower())(s)

    def _do_block(self, s: ast.Block) -> None:
        self.scope = Scope(self.scope)
        self.statements(s.statements)
        assert self.scope.parent is not None
        self.scope = self.scope.parent

    def _do_empty(self, _s: ast.Empty) -> None:
        pass

    def _do_exit(self, s: ast.Exit) -> None:
        if self.in_parser:
            self.type_error("exit has no meaning in a parser", s.span)

    def _do_return(self, s: ast.Return) -> None:
        if s.value is None:
            if self.returns != VOID:
                self.type_error(f"return needs a value of type {self.returns}", s.span)
        elif self.returns == VOID:
            self.type_error("only functions return a value", s.span)
        else:
            self.value_of(s.value, self.returns, "return")

    def _do_assignment(self, s: ast.Assignment) -> None:
        left = self.expression(s.target)
        self.need_left_value(s.target, "the left side of an assignment")
        if s.op != "=":
            s.value = ast.Binary(s.span, s.op[:-1], s.target, s.value)
        if isinstance(left, Extern | Applicable | Meta):
            self.type_error(f"{left} cannot be assigned", s.span)
            return
        self.value_of(s.value, left, "the assignment")

    def _do_callstatement(self, s: ast.CallStatement) -> None:
        self.expression(s.call)

    def _do_if(self, s: ast.If) -> None:
        t = self.expression(s.condition)
        if t not in (BOOL, ANY):
            self.type_error(f"the condition of an if must be a bool, not {t}", s.condition.span)
        for branch in (s.then, s.otherwise):
            if branch is not None:
                self._do_block(ast.Block(branch.span, [branch]))

    def _do_switch(self, s: ast.Switch) -> None:
        t = self.expression(s.subject)
        for case, following in zip(s.cases, s.cases[1:], strict=False):
            if any(isinstance(label, ast.Default) for label in case.labels):
                self.type_error("the default of a switch comes last", following.span)
        if t == ACTION_RUN:
            self._switch_on_action(s)
            return
        if self.in_parser:
            self.type_error("switch is not allowed in a parser: use select", s.span)
        if t == INT or isinstance(t, Composite | Stack):
            self.type_error(f"a switch needs a value with a width, not {t}", s.subject.span)
            t = ANY
        for case in s.cases:
            for label in case.labels:
                if not isinstance(label, ast.Default):
                    self.value_of(label, t, "the label")
                    if label.value is None and label.type != ANY:
                        self.type_error("a switch label must be known at compile time", label.span)
            if case.body is not None:
                self._do_block(case.body)

    def _switch_on_action(self, s: ast.Switch) -> None:
        member = s.subject
        assert isinstance(member, ast.Member)
        table = self._table_of(member.base)
        names = [a.name for a in table.actions] if table is not None else []
        seen: set[str] = set()
        for case in s.cases:
            for label in case.labels:
                if isinstance(label, ast.Default):
                    continue
                if not isinstance(label, ast.Name):
                    self.type_error("a label must be the name of one of the table's actions", label.span)
                elif table is not None and label.name not in names:
                    note = choices(label.name, names, "actions of the table")
                    self.type_error(f"table {table.name} has no action {label.name}", label.span, note)
                elif label.name in seen:
                    self.type_error(f"the label {label.name} stands here twice", label.span)
                else:
                    seen.add(label.name)
            if case.body is not None:
                self._do_block(case.body)

    @staticmethod
    def _table_of(call: ast.Expression) -> ast.Table | None:
        if isinstance(call, ast.Call) and call.target is not None and call.target.base is not None:
            t = call.target.base.type
            if isinstance(t, Applicable) and isinstance(t.declaration, ast.Table):
                return t.declaration
        return None

    def _do_declare(self, s: ast.Declare) -> None:
        d = s.declaration
        if isinstance(d, ast.Constant):
            self.constant(d)
        elif isinstance(d, ast.Variable):
            self.variable(d)
        else:
            self.type_error("instances stand before the apply block, not in it", d.span)

    def constant(self, d: ast.Constant) -> None:
        t = self.type_of(d.type)
        self.value_of(d.initial, t, f"constant {d.name}")
        if d.initial.type != ANY and not self._is_constant(d.initial):
            self.type_error(f"the value of constant {d.name} is not known at compile time", d.initial.span)
        symbol = self.declare(Symbol("const", d.name, d, t, d.initial.value), d.span)
        if t == INT and d.initial.value is None:
            symbol.type = ANY

    def _is_constant(self, e: ast.Expression) -> bool:
        if isinstance(e, ast.ListExpression):
            return all(self._is_constant(i) for i in e.items)
        if isinstance(e, ast.StructExpression):
            return all(self._is_constant(i) for _, i in e.items)
        return e.value is not None

    def variable(self, d: ast.Variable) -> None:
        t = self.type_of(d.type)
        if t in (INT, VOID) or isinstance(t, Extern | Applicable):
            self.type_error(f"a variable cannot be of type {t}", d.span)
            t = ANY
        if d.initial is not None:
            self.value_of(d.initial, t, f"variable {d.name}")
        self.declare(Symbol("variable", d.name, d, t), d.span)

    # --- parser states ---------------------------------------------------------------------------------------------

    def states(self, parser: ast.Parser) -> None:
        assert parser.states is not None
        names = [s.name for s in parser.states]
        for state in parser.states:
            if state.name in ("accept", "reject"):
                self.name_error(f"the state {state.name} is built in", state.span)
            else:
                self.declare(Symbol("state", state.name, state), state.span)
        if "start" not in names:
            self.name_error(f"parser {parser.name} has no state start", parser.span, choices("start", names, "states"))
        for state in parser.states:
            self.scope = Scope(self.scope)
            self.statements(state.statements)
            if state.transition is not None:
                self._transition(state.transition, [*names, "accept", "reject"])
            assert self.scope.parent is not None
            self.scope = self.scope.parent

    def _transition(self, t: ast.Transition, names: list[str]) -> None:
        if t.state is not None:
            self._target(t.state, t.span, names)
            return
        types = [self.expression(k) for k in t.select]
        for case in t.cases:
            self._target(case.state, case.span, names)
            if len(case.keys) == 1 and isinstance(case.keys[0], ast.Default):
                continue
            if len(case.keys) == 1 and isinstance(case.keys[0], ast.Name):
                symbol = self.scope.lookup(case.keys[0].name)
                if symbol is not None and symbol.kind == "value_set":
                    case.keys[0].target = symbol
                    continue
            if len(case.keys) != len(types):
                self.type_error(f"the select has {len(types)} keys, this case {len(case.keys)}", case.span)
                continue
            for key, wanted in zip(case.keys, types, strict=True):
                self.key_set_element(key, wanted)

    def _target(self, name: str, span: Span, names: list[str]) -> None:
        if name not in names:
            self.name_error(f"there is no state named {name}", span, choices(name, names, "states"))

    def key_set_element(self, key: ast.Expression, wanted: Type) -> None:
        """A value, mask, range or wildcard for a key of type `wanted`."""
        if isinstance(key, ast.Default):
            return
        if isinstance(key, ast.Binary) and key.op in ("&&&", ".."):
            # Masks and bounds are numbers, also where the key is an enum.
            wanted = strip(wanted) if isinstance(wanted, Enum) else wanted
            for side in (key.left, key.right):
                self.value_of(side, wanted, "the key")
                self._need_constant(side)
            key.type = wanted
            return
        self.value_of(key, wanted, "the key")
        self._need_constant(key)

    def _need_constant(self, e: ast.Expression) -> None:
        if e.value is None and e.type != ANY:
            self.type_error("a key must be known at compile time", e.span)
