"""Statements (specification, chapter 12) and parser states (chapter 13)."""

from __future__ import annotations

from .ast import (
    Assignment,
    Block,
    Call,
    CallStatement,
    Constant,
    Declare,
    Default,
    Empty,
    Exit,
    Expression,
    If,
    Instance,
    Return,
    SelectCase,
    State,
    Statement,
    Switch,
    SwitchCase,
    Transition,
    Variable,
)
from .parse_base import RESERVED, SOFT, BacktrackError, SyntaxFailureError
from .parse_expression import ExpressionParser

_ASSIGNMENTS = frozenset(["=", "+=", "-=", "*=", "&=", "|=", "^="])


class StatementParser(ExpressionParser):
    """Adds statements and states."""

    def block(self) -> Block:
        annotations = self.annotations()
        opening = self.expect("{")
        statements: list[Statement] = []
        while not self.on("}") and self.token.kind != "end":
            level = self.level
            try:
                statements.append(self.statement())
            except SyntaxFailureError:
                self.recover(level)
        self.expect("}", "at the end of a block")
        return Block(opening.span, statements, annotations)

    def statement(self) -> Statement:
        token = self.token
        if self.on("@"):
            start = self.at
            self.annotations()
            if self.on("{"):
                self.at = start
                return self.block()
            # Annotations of local declarations tell nothing that is used here.
        if self.on("{"):
            return self.block()
        if self.accept(";"):
            return Empty(token.span)
        if self.on("if"):
            return self._if()
        if self.on("return"):
            self.take()
            value = None if self.on(";") else self.expression()
            self.expect(";", "after return")
            return Return(token.span, value)
        if self.on("exit"):
            self.take()
            self.expect(";", "after exit")
            return Exit(token.span)
        if self.on("switch"):
            return self._switch()
        if self.on("const"):
            return Declare(token.span, self.constant())
        if self.on("for", "break", "continue") and self.peek().text in ("(", ";"):
            raise self.fail("loops are not supported: BMv2 has none; unroll this one by hand")
        declaration = self.local_declaration()
        if declaration is not None:
            return Declare(token.span, declaration)
        return self._assignment_or_call()

    def _if(self) -> Statement:
        token = self.expect("if")
        self.expect("(", "after if")
        condition = self.expression()
        self.expect(")", "after the condition")
        then = self.statement()
        otherwise = self.statement() if self.accept("else") else None
        return If(token.span, condition, then, otherwise)

    def _switch(self) -> Statement:
        token = self.expect("switch")
        self.expect("(", "after switch")
        subject = self.expression()
        self.expect(")")
        self.expect("{")
        cases: list[SwitchCase] = []
        while not self.on("}"):
            at = self.token
            label: Expression = Default(self.take().span) if self.on("default") else self.expression()
            self.expect(":", "after a switch label")
            body = self.block() if self.on("{") else None
            cases.append(SwitchCase(at.span, [label], body))
        self.expect("}")
        return Switch(token.span, subject, cases)

    def _assignment_or_call(self) -> Statement:
        token = self.token
        # `|+|=`, `|-|=` and the shifts are two tokens.
        target = self._postfix(self._primary())
        if isinstance(target, Call) and self.accept(";"):
            return CallStatement(token.span, target)
        op = self.token
        if op.text in _ASSIGNMENTS:
            self.take()
            value = self.expression()
            self.expect(";", "after an assignment")
            return Assignment(op.span, target, op.text, value)
        if op.text in ("|+|", "|-|", "<<") and self.peek().text == "=":
            self.take()
            self.take()
            value = self.expression()
            self.expect(";", "after an assignment")
            return Assignment(op.span, target, op.text + "=", value)
        if isinstance(target, Call):
            raise self.fail(f"expected ';' after a call, found {self._shown()}")
        raise self.fail(f"expected '=' or a call, found {self._shown()}")

    # --- declarations among statements -----------------------------------------------------------------------------

    def constant(self) -> Constant:
        self.expect("const")
        ref = self.type_ref()
        word = self.name("the constant's name")
        self.expect("=", "after the constant's name")
        value = self.expression()
        self.expect(";", "after a constant")
        return Constant(word.span, word.text, ref, value)

    def local_declaration(self) -> Variable | Instance | None:
        """`type name;`, `type name = value;` or `type(arguments) name;`; None if this is something else."""
        if self.token.kind != "id" or (self.token.text in RESERVED and self.token.text not in _TYPE_STARTS):
            return None
        start = self.at
        self.guessing += 1
        arguments = None
        try:
            ref = self.type_ref()
            if self.on("("):
                arguments = self.arguments()
            if self.token.kind != "id" or (self.token.text in RESERVED and self.token.text not in SOFT):
                raise BacktrackError
            word = self.take()
            if not self.on(";", "=", "{"):
                raise BacktrackError
        except BacktrackError:
            self.at = start
            return None
        finally:
            self.guessing -= 1
        if arguments is not None:
            if self.on("=", "{"):
                raise self.fail("instances with a body are not supported")
            self.expect(";", "after an instance")
            return Instance(word.span, word.text, ref, arguments)
        initial = self.expression() if self.accept("=") else None
        self.expect(";", "after a variable")
        return Variable(word.span, word.text, ref, initial)

    # --- parser states ---------------------------------------------------------------------------------------------

    def state(self) -> State:
        self.expect("state")
        word = self.name("the state's name")
        self.expect("{")
        statements: list[Statement] = []
        transition = None
        while not self.on("}") and self.token.kind != "end":
            level = self.level
            try:
                if self.on("transition"):
                    transition = self._transition()
                    break
                statements.append(self.statement())
            except SyntaxFailureError:
                self.recover(level)
        self.expect("}", "at the end of a state: nothing may follow its transition")
        return State(word.span, word.text, statements, transition)

    def _transition(self) -> Transition:
        token = self.expect("transition")
        if not self.on("select"):
            word = self.name("a state")
            self.expect(";", "after a transition")
            return Transition(word.span, word.text)
        self.take()
        self.expect("(", "after select")
        keys = [self.expression()]
        while self.accept(","):
            keys.append(self.expression())
        self.expect(")", "after the select's keys")
        self.expect("{")
        cases = []
        while not self.on("}"):
            at = self.token
            sets = self.key_sets()
            self.expect(":", "after a select label")
            word = self.name("a state")
            self.expect(";", "after a select case")
            cases.append(SelectCase(at.span, sets, word.text))
        self.expect("}")
        self.accept(";")
        return Transition(token.span, None, keys, cases)


_TYPE_STARTS = frozenset(["bit", "int", "varbit", "bool", "error", "string", "tuple", "list"]) | SOFT
