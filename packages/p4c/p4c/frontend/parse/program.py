"""Tokens to a program; after a syntax error reading goes on with the next declaration."""

from collections.abc import Callable

from p4c.frontend.diagnostics import Diagnostics, SourceSpan
from p4c.frontend.parse import ast
from p4c.frontend.parse.annotation import read_annotations
from p4c.frontend.parse.block import read_action, read_control, read_parameters, read_parser
from p4c.frontend.parse.cursor import Cursor, SyntaxFailureError
from p4c.frontend.parse.expression import read_expression, read_type, read_type_parameters
from p4c.frontend.parse.statement import read_block, read_constant, read_local_declaration
from p4c.frontend.parse.tokens import Tokens


# Top-level declarations (specification, chapters 7, 10 and 11).
def read_declaration(p: Cursor) -> ast.Declaration:
    annotations = read_annotations(p)
    declaration = _declaration(p)
    declaration.annotations = annotations + declaration.annotations
    return declaration


def _declaration(p: Cursor) -> ast.Declaration:
    text = p.token.text
    if text in _KEYWORDS:
        return _KEYWORDS[text](p)
    if text == "error" and p.peek().text == "{":
        return ast.ErrorDecl(p.take().span, "error", _identifiers(p))
    if text == "match_kind" and p.peek().text == "{":
        return ast.MatchKindDecl(p.take().span, "match_kind", _identifiers(p))
    if p.token.kind == "id":
        instance = read_local_declaration(p)
        if instance is not None:
            return instance
        return _function(p)
    raise p.fail(f"expected a declaration, found {p.next_text()}")


def _package(p: Cursor) -> ast.Package:
    p.take()
    word = p.name("the package's name")
    generics = read_type_parameters(p)
    parameters = read_parameters(p)
    p.expect(";", "after a package")
    return ast.Package(word.span, word.text, generics, parameters)


def _composite(p: Cursor) -> ast.Composite:
    kind = p.take().text
    word = p.name(f"the {kind}'s name")
    generics = read_type_parameters(p)
    p.expect("{")
    fields = []

    def field() -> None:
        annotations = read_annotations(p)
        ref = read_type(p)
        name = p.name("a field")
        p.expect(";", "after a field")
        fields.append(ast.FieldDecl(name.span, name.text, ref, annotations=annotations))

    p.each(field, "}")
    p.expect("}", f"at the end of {kind} {word.text}")
    return ast.Composite(word.span, word.text, kind, fields, generics)


def _typedef(p: Cursor) -> ast.Typedef:
    fresh = p.take().text == "type"
    ref = read_type(p)
    word = p.name("the type's name")
    p.expect(";", "after a type declaration")
    return ast.Typedef(word.span, word.text, ref, fresh)


def _enum(p: Cursor) -> ast.EnumDecl:
    p.take()
    underlying = None if p.peek().text == "{" else read_type(p)
    word = p.name("the enum's name")
    p.expect("{")
    return ast.EnumDecl(word.span, word.text, underlying, p.listed(lambda: _member(p), "}"))


def _member(p: Cursor) -> tuple[str, ast.Expression | None, SourceSpan]:
    read_annotations(p)
    member = p.name("an enum member")
    return member.text, read_expression(p) if p.accept("=") else None, member.span


def _identifiers(p: Cursor) -> list[tuple[str, SourceSpan]]:
    p.expect("{")
    return [(word.text, word.span) for word in p.listed(p.name, "}")]


def _extern(p: Cursor) -> ast.Declaration:
    p.take()
    if p.token.kind == "id" and p.peek().text in ("{", "<") and not _prototype_follows(p):
        word = p.name("the extern's name")
        generics = read_type_parameters(p)
        p.expect("{")
        methods = []
        while not p.on("}"):
            annotations = read_annotations(p)
            if p.token.text == word.text and p.peek().text == "(":
                constructor = p.take()
                methods.append(ast.Prototype(constructor.span, word.text, None, [], read_parameters(p)))
            else:
                methods.append(_prototype(p))
            methods[-1].annotations = annotations
            p.expect(";", "after a method")
        p.expect("}")
        return ast.ExternDecl(word.span, word.text, generics, methods)
    prototype = _prototype(p)
    p.expect(";", "after an extern function")
    return prototype


def _prototype_follows(p: Cursor) -> bool:
    """Whether `extern X<…` begins a function that returns X rather than an extern object."""
    if p.peek().text == "{":
        return False
    depth, index = 0, p.at + 1
    while index < len(p.tokens):
        text = p.tokens[index].text
        depth += (text == "<") - (text == ">")
        index += 1
        if depth == 0:
            return p.tokens[index].text != "{"
    return False


def _prototype(p: Cursor) -> ast.Prototype:
    returns = read_type(p)
    word = p.name("a method")
    generics = read_type_parameters(p)
    return ast.Prototype(word.span, word.text, returns, generics, read_parameters(p))


def _function(p: Cursor) -> ast.Function:
    returns = read_type(p)
    word = p.name("the function's name")
    generics = read_type_parameters(p)
    parameters = read_parameters(p)
    return ast.Function(word.span, word.text, returns, generics, parameters, read_block(p))


_KEYWORDS: dict[str, Callable[[Cursor], ast.Declaration]] = {
    **dict.fromkeys(("struct", "header", "header_union"), _composite),
    **dict.fromkeys(("typedef", "type"), _typedef),
    "const": read_constant,
    "enum": _enum,
    "extern": _extern,
    "action": read_action,
    "control": read_control,
    "parser": read_parser,
    "package": _package,
}


def parse(tokens: Tokens, diagnostics: Diagnostics) -> ast.P4Program:
    """The whole program. Syntax errors are collected; the declarations around them are returned."""
    p = Cursor(tokens, diagnostics)
    declarations: list[ast.Declaration] = []
    while p.token.kind != "end":
        before = p.at
        level = p.level
        try:
            if not p.accept(";"):
                declarations.append(read_declaration(p))
        except SyntaxFailureError:
            p.recover(level)
            if p.on("}"):
                p.take()
            if p.at == before:
                p.take()
    return ast.P4Program(p.token.span, declarations)
