"""What every part of the parser shares: the token cursor, errors, type references and annotations."""

from __future__ import annotations

from .ast import Annotation, BaseType, Expression, NamedType, StackType, TupleType, TypeRef
from .diagnostics import Diagnostics, Span
from .lexer import Token

# Reserved words (specification, section 6.3.3): never names. The other keywords only mean something in their place.
_RESERVED = """
    abstract action apply bit bool const control default else enum error exit extern false for header
    header_union if in inout int list match_kind out package parser return select state string struct
    switch table this transition true tuple typedef type value_set varbit void
"""
RESERVED = frozenset(_RESERVED.split())
# Reserved, yet used as names by grammar productions that allow it (nonTypeName, nonTableKwName).
SOFT = frozenset(["apply", "state", "type", "list", "default"])
BASE_TYPES = frozenset(["bit", "int", "varbit", "bool", "error", "string", "void", "match_kind", "_"])


class SyntaxFailureError(Exception):
    """Unwinds to the nearest place where parsing can go on; the complaint has been recorded."""


class BacktrackError(Exception):
    """A guess did not work out; nothing was recorded."""


class ParserBase:
    """A cursor over tokens. `guessing` counts open guesses, in which a syntax error is only a BacktrackError."""

    def __init__(self, tokens: list[Token], diagnostics: Diagnostics) -> None:
        self.tokens = tokens
        self.at = 0
        self.diagnostics = diagnostics
        self.guessing = 0
        self._levels: list[int] = []
        level = 0
        for token in tokens:
            self._levels.append(level)
            level += (token.text == "{") - (token.text == "}")

    # --- the cursor ------------------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def peek(self, distance: int = 1) -> Token:
        return self.tokens[min(self.at + distance, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def on(self, *texts: str) -> bool:
        token = self.tokens[self.at]
        return token.text in texts and token.kind in ("op", "id")

    def accept(self, text: str) -> Token | None:
        return self.take() if self.on(text) else None

    def expect(self, text: str, where: str = "") -> Token:
        if self.on(text):
            return self.take()
        raise self.fail(f"expected {text!r}{' ' + where if where else ''}, found {self._shown()}")

    def name(self, what: str = "a name") -> Token:
        token = self.token
        if token.kind == "id" and (token.text not in RESERVED or token.text in SOFT):
            return self.take()
        if token.kind == "id":
            raise self.fail(f"expected {what}, found the reserved word {token.text!r}")
        raise self.fail(f"expected {what}, found {self._shown()}")

    def _shown(self) -> str:
        return "the end of the file" if self.token.kind == "end" else repr(self.token.text)

    def fail(self, message: str, span: Span | None = None) -> Exception:
        """The exception to raise at a syntax error."""
        if self.guessing:
            return BacktrackError()
        self.diagnostics.error("parse", message, span or self.token.span)
        return SyntaxFailureError()

    # --- recovery --------------------------------------------------------------------------------------------------

    @property
    def level(self) -> int:
        """How many braces are open here."""
        return self._levels[self.at]

    def recover(self, level: int) -> None:
        """After an error in something that began at `level`: skip to just behind its `;` or `}`.

        The brace that closes the block around it is left to that block.
        """
        while self.token.kind != "end":
            here, text = self.level, self.token.text
            if here < level or (here == level and text == "}"):
                return
            self.take()
            if (here == level and text == ";") or (here == level + 1 and text == "}"):
                return

    # --- types -----------------------------------------------------------------------------------------------------

    def expression(self) -> Expression:
        raise NotImplementedError

    def shift_free_expression(self) -> Expression:
        """An expression in angle brackets, where `>` closes."""
        raise NotImplementedError

    def type_ref(self) -> TypeRef:
        token = self.token
        if token.kind != "id" and token.text != ".":
            raise self.fail(f"expected a type, found {self._shown()}")
        ref: TypeRef
        if token.text in BASE_TYPES:
            self.take()
            width: Expression | None = None
            if token.text in ("bit", "int", "varbit") and self.accept("<"):
                width = self._width()
                self.expect(">", "after the width")
            ref = BaseType(token.span, token.text, width)
        elif token.text in ("tuple", "list"):
            self.take()
            ref = TupleType(token.span, self.type_arguments())
        else:
            self.accept(".")
            word = self.name("a type")
            arguments = self.type_arguments() if self.on("<") else []
            ref = NamedType(word.span, word.text, arguments)
        while self.on("[") and self.peek().text != "]":
            self.take()
            size = self.expression()
            self.expect("]", "after the size of a header stack")
            ref = StackType(token.span, ref, size)
        return ref

    def _width(self) -> Expression:
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            return inner
        return self.shift_free_expression()

    def type_arguments(self) -> list[TypeRef]:
        self.expect("<")
        items = [self.type_ref()]
        while self.accept(","):
            items.append(self.type_ref())
        self.expect(">", "after type arguments")
        return items

    def type_parameters(self) -> list[str]:
        if not self.accept("<"):
            return []
        names = [self.name("a type parameter").text]
        while self.accept(","):
            names.append(self.name("a type parameter").text)
        self.expect(">", "after type parameters")
        return names

    # --- annotations -----------------------------------------------------------------------------------------------

    def annotations(self) -> list[Annotation]:
        found = []
        while self.on("@"):
            at = self.take()
            word = self.take()
            annotation = Annotation(at.span, word.text)
            if self.on("(", "["):
                annotation.structured = self.token.text == "["
                self._annotation_body(annotation)
            found.append(annotation)
        return found

    def _annotation_body(self, annotation: Annotation) -> None:
        opening = self.take()
        start, depth = self.at, 1
        while depth and self.token.kind != "end":
            text = self.take().text
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if depth:
            raise self.fail(f"the body of @{annotation.name} is not closed", opening.span)
        end = self.at
        body = self.tokens[start : end - 1]
        annotation.body = [t.text for t in body]
        annotation.source = " ".join(annotation.body)
        # Constants are read as such; bodies that are not lists of expressions stay text.
        self.at = start
        self.guessing += 1
        try:
            while self.at < end - 1:
                annotation.expressions.append(self.expression())
                if self.at < end - 1:
                    self.expect(",")
        except BacktrackError:
            annotation.expressions = []
        finally:
            self.guessing -= 1
            self.at = end
