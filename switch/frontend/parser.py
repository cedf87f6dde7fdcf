"""Top-level declarations, controls, parsers and tables (specification, chapters 7, 13 and 14): tokens to a Program."""

from __future__ import annotations

from .ast import (
    Action,
    ActionRef,
    Annotation,
    Composite,
    Control,
    Declaration,
    Entry,
    EnumDecl,
    ErrorDecl,
    Expression,
    ExternDecl,
    FieldDecl,
    Function,
    KeyElement,
    MatchKindDecl,
    Package,
    Parameter,
    Parser,
    Program,
    Property,
    Prototype,
    State,
    Table,
    Typedef,
    ValueSet,
)
from .diagnostics import Diagnostics, Span
from .lexer import Token
from .parse_base import SyntaxFailureError
from .parse_statement import StatementParser


def parse(tokens: list[Token], diagnostics: Diagnostics) -> Program:
    """The whole program. Syntax errors are collected; what was read around them is returned."""
    return ProgramParser(tokens, diagnostics).program()


class ProgramParser(StatementParser):
    def program(self) -> Program:
        declarations: list[Declaration] = []
        while self.token.kind != "end":
            before = self.at
            level = self.level
            try:
                if not self.accept(";"):
                    declarations.append(self.declaration())
            except SyntaxFailureError:
                self.recover(level)
                if self.on("}"):
                    self.take()
                if self.at == before:
                    self.take()
        return Program(self.token.span, declarations)

    def declaration(self) -> Declaration:
        annotations = self.annotations()
        found = self._declaration()
        found.annotations = annotations + found.annotations
        return found

    def _declaration(self) -> Declaration:
        text = self.token.text
        if text in ("struct", "header", "header_union"):
            return self._composite()
        if text == "const":
            return self.constant()
        if text in ("typedef", "type"):
            return self._typedef()
        if text == "enum":
            return self._enum()
        if text == "error" and self.peek().text == "{":
            return ErrorDecl(self.take().span, "error", self._identifiers())
        if text == "match_kind" and self.peek().text == "{":
            return MatchKindDecl(self.take().span, "match_kind", self._identifiers())
        if text == "extern":
            return self._extern()
        if text == "action":
            return self._action()
        if text == "control":
            return self._control()
        if text == "parser":
            return self._parser()
        if text == "package":
            self.take()
            word = self.name("the package's name")
            generics = self.type_parameters()
            parameters = self.parameters()
            self.expect(";", "after a package")
            return Package(word.span, word.text, generics, parameters)
        if self.token.kind == "id":
            instance = self.local_declaration()
            if instance is not None:
                return instance
            return self._function()
        raise self.fail(f"expected a declaration, found {self._shown()}")

    # --- types -----------------------------------------------------------------------------------------------------

    def _composite(self) -> Composite:
        kind = self.take().text
        word = self.name(f"the {kind}'s name")
        generics = self.type_parameters()
        self.expect("{")
        fields = []
        while not self.on("}") and self.token.kind != "end":
            level = self.level
            try:
                annotations = self.annotations()
                ref = self.type_ref()
                field = self.name("a field")
                self.expect(";", "after a field")
                fields.append(FieldDecl(field.span, field.text, ref, annotations=annotations))
            except SyntaxFailureError:
                self.recover(level)
        self.expect("}", f"at the end of {kind} {word.text}")
        return Composite(word.span, word.text, kind, fields, generics)

    def _typedef(self) -> Typedef:
        fresh = self.take().text == "type"
        ref = self.type_ref()
        word = self.name("the type's name")
        self.expect(";", "after a type declaration")
        return Typedef(word.span, word.text, ref, fresh)

    def _enum(self) -> EnumDecl:
        self.take()
        underlying = None if self.peek().text == "{" else self.type_ref()
        word = self.name("the enum's name")
        self.expect("{")
        members: list[tuple[str, Expression | None, Span]] = []
        while not self.on("}"):
            self.annotations()
            member = self.name("an enum member")
            value = self.expression() if self.accept("=") else None
            members.append((member.text, value, member.span))
            if not self.accept(","):
                break
        self.expect("}")
        return EnumDecl(word.span, word.text, underlying, members)

    def _identifiers(self) -> list[tuple[str, Span]]:
        self.expect("{")
        names = []
        while not self.on("}"):
            word = self.name()
            names.append((word.text, word.span))
            if not self.accept(","):
                break
        self.expect("}")
        return names

    # --- callables -------------------------------------------------------------------------------------------------

    def parameters(self) -> list[Parameter]:
        self.expect("(")
        items: list[Parameter] = []
        while not self.on(")"):
            annotations = self.annotations()
            direction = self.take().text if self.on("in", "out", "inout") else ""
            ref = self.type_ref()
            word = self.name("a parameter")
            default = self.expression() if self.accept("=") else None
            items.append(Parameter(word.span, word.text, direction, ref, default, annotations=annotations))
            if not self.accept(","):
                break
        self.expect(")", "after parameters")
        return items

    def _extern(self) -> Declaration:
        self.take()
        if self.token.kind == "id" and self.peek().text in ("{", "<") and not self._prototype_follows():
            word = self.name("the extern's name")
            generics = self.type_parameters()
            self.expect("{")
            methods = []
            while not self.on("}"):
                annotations = self.annotations()
                if self.token.text == word.text and self.peek().text == "(":
                    constructor = self.take()
                    methods.append(Prototype(constructor.span, word.text, None, [], self.parameters()))
                else:
                    methods.append(self._prototype())
                methods[-1].annotations = annotations
                self.expect(";", "after a method")
            self.expect("}")
            return ExternDecl(word.span, word.text, generics, methods)
        prototype = self._prototype()
        self.expect(";", "after an extern function")
        return prototype

    def _prototype_follows(self) -> bool:
        """Whether `extern X<…` begins a function that returns X rather than an extern object."""
        if self.peek().text == "{":
            return False
        depth, index = 0, self.at + 1
        while index < len(self.tokens):
            text = self.tokens[index].text
            depth += (text == "<") - (text == ">")
            index += 1
            if depth == 0:
                return self.tokens[index].text != "{"
        return False

    def _prototype(self) -> Prototype:
        returns = self.type_ref()
        word = self.name("a method")
        generics = self.type_parameters()
        return Prototype(word.span, word.text, returns, generics, self.parameters())

    def _function(self) -> Function:
        returns = self.type_ref()
        word = self.name("the function's name")
        generics = self.type_parameters()
        parameters = self.parameters()
        return Function(word.span, word.text, returns, generics, parameters, self.block())

    def _action(self) -> Action:
        self.take()
        word = self.name("the action's name")
        return Action(word.span, word.text, self.parameters(), self.block())

    # --- controls and parsers --------------------------------------------------------------------------------------

    def _control(self) -> Control:
        self.take()
        word = self.name("the control's name")
        found = Control(word.span, word.text, self.type_parameters(), self.parameters())
        if self.accept(";"):
            return found
        if self.on("("):
            found.constructor = self.parameters()
        self.expect("{")
        while not self.on("apply") and not self.on("}") and self.token.kind != "end":
            level = self.level
            try:
                found.locals.append(self._local())
            except SyntaxFailureError:
                self.recover(level)
        self.expect("apply", f"in control {word.text}")
        found.body = self.block()
        self.expect("}", f"at the end of control {word.text}: its apply block comes last")
        return found

    def _local(self) -> Declaration:
        annotations = self.annotations()
        found: Declaration
        if self.on("action"):
            found = self._action()
        elif self.on("table"):
            found = self._table()
        elif self.on("const"):
            found = self.constant()
        elif self.on("value_set"):
            found = self._value_set()
        else:
            local = self.local_declaration()
            if local is None:
                raise self.fail(
                    f"expected an action, a table, a constant, a variable or an instance, found {self._shown()}"
                )
            found = local
        found.annotations = annotations
        return found

    def _value_set(self) -> ValueSet:
        token = self.take()
        arguments = self.type_arguments()
        self.expect("(")
        size = self.expression()
        self.expect(")")
        word = self.name("the value set's name")
        self.expect(";", "after a value set")
        if len(arguments) != 1:
            raise self.fail("value_set takes one type argument", token.span)
        return ValueSet(word.span, word.text, arguments[0], size)

    def _parser(self) -> Parser:
        self.take()
        word = self.name("the parser's name")
        found = Parser(word.span, word.text, self.type_parameters(), self.parameters())
        if self.accept(";"):
            return found
        if self.on("("):
            found.constructor = self.parameters()
        self.expect("{")
        states: list[State] = []
        while not self.on("}") and self.token.kind != "end":
            level = self.level
            try:
                annotations = self.annotations()
                if self.on("state"):
                    states.append(self.state())
                    states[-1].annotations = annotations
                else:
                    found.locals.append(self._local())
                    found.locals[-1].annotations = annotations
            except SyntaxFailureError:
                self.recover(level)
        self.expect("}", f"at the end of parser {word.text}")
        found.states = states
        return found

    # --- tables ----------------------------------------------------------------------------------------------------

    def _table(self) -> Table:
        self.take()
        word = self.name("the table's name")
        table = Table(word.span, word.text)
        self.expect("{")
        while not self.on("}") and self.token.kind != "end":
            level = self.level
            try:
                self._property(table)
            except SyntaxFailureError:
                self.recover(level)
        self.expect("}", f"at the end of table {word.text}")
        return table

    def _property(self, table: Table) -> None:
        annotations = self.annotations()
        const = self.accept("const") is not None
        word = self.token
        if word.kind != "id":
            raise self.fail(f"expected a table property, found {self._shown()}")
        self.take()
        self.expect("=", f"after the property {word.text}")
        if word.text == "key":
            self.expect("{")
            while not self.on("}"):
                at = self.token
                expression = self.expression()
                self.expect(":", "between a key and its match kind")
                kind = self.name("a match kind")
                annotations = self.annotations()
                self.expect(";", "after a key element")
                table.keys.append(KeyElement(at.span, expression, kind.text, annotations))
            self.expect("}")
        elif word.text == "actions":
            self.expect("{")
            while not self.on("}"):
                annotations = self.annotations()
                table.actions.append(self._action_ref(annotations))
                self.expect(";", "after an action")
            self.expect("}")
        elif word.text == "entries":
            table.entries_const = const
            table.entries = self._entries()
        elif word.text == "default_action":
            table.default, table.default_const = self._action_ref([]), const
            self.expect(";", "after the default action")
        else:
            if word.text in table.properties:
                raise self.fail(f"the property {word.text} is set twice", word.span)
            table.properties[word.text] = Property(word.span, word.text, const, self.expression(), annotations)
            self.expect(";", f"after the property {word.text}")
            return
        self.accept(";")

    def _action_ref(self, annotations: list[Annotation]) -> ActionRef:
        self.accept(".")
        word = self.name("an action")
        arguments = self.arguments() if self.on("(") else []
        return ActionRef(word.span, word.text, arguments, annotations)

    def _entries(self) -> list[Entry]:
        self.expect("{")
        entries = []
        while not self.on("}"):
            at = self.token
            const = self.accept("const") is not None
            priority = None
            if self.on("priority") and self.peek().text == "=":
                self.take()
                self.take()
                priority = self.expression()
                self.expect(":", "after an entry's priority")
            keys = self.key_sets()
            self.expect(":", "between an entry's keys and its action")
            action = self._action_ref([])
            annotations = self.annotations()
            self.expect(";", "after an entry")
            entries.append(Entry(at.span, keys, action, const, priority, annotations))
        self.expect("}")
        return entries
