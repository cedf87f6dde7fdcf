"""Controls, parsers and the actions, tables and value sets in them (specification, chapters 13 and 14)."""

from __future__ import annotations

from p4c.frontend.parse import ast
from p4c.frontend.parse.annotation import read_annotations
from p4c.frontend.parse.cursor import Cursor
from p4c.frontend.parse.expression import read_expression, read_type, read_type_arguments, read_type_parameters
from p4c.frontend.parse.state import read_state
from p4c.frontend.parse.statement import read_block, read_constant, read_local_declaration
from p4c.frontend.parse.table import read_table


def _opened(p: Cursor, found: ast.Applicable) -> bool:
    """Read up to the opening brace; False for a type, which has no body."""
    if p.accept(";"):
        return False
    if p.on("("):
        found.constructor = read_parameters(p)
    p.expect("{")
    return True


def read_control(p: Cursor) -> ast.ControlDecl:
    p.take()
    word = p.name("the control's name")
    found = ast.ControlDecl(word.span, word.text, read_type_parameters(p), read_parameters(p))
    if not _opened(p, found):
        return found
    p.each(lambda: found.locals.append(_local(p)), "apply", "}")
    p.expect("apply", f"in control {word.text}")
    found.body = read_block(p)
    p.expect("}", f"at the end of control {word.text}: its apply block comes last")
    return found


def read_parser(p: Cursor) -> ast.ParserDecl:
    p.take()
    word = p.name("the parser's name")
    found = ast.ParserDecl(word.span, word.text, read_type_parameters(p), read_parameters(p))
    if not _opened(p, found):
        return found
    states: list[ast.StateDecl] = []

    def part() -> None:
        annotations = read_annotations(p)
        if p.on("state"):
            states.append(read_state(p))
            states[-1].annotations = annotations
        else:
            found.locals.append(_local(p))
            found.locals[-1].annotations = annotations

    p.each(part, "}")
    p.expect("}", f"at the end of parser {word.text}")
    found.states = states
    return found


def _local(p: Cursor) -> ast.Declaration:
    annotations = read_annotations(p)
    found: ast.Declaration
    if p.on("action"):
        found = read_action(p)
    elif p.on("table"):
        found = read_table(p)
    elif p.on("const"):
        found = read_constant(p)
    elif p.on("value_set"):
        found = _value_set(p)
    else:
        local = read_local_declaration(p)
        if local is None:
            raise p.fail(f"expected an action, a table, a constant, a variable or an instance, found {p.shown()}")
        found = local
    found.annotations = annotations
    return found


def _value_set(p: Cursor) -> ast.ValueSetDecl:
    token = p.take()
    arguments = read_type_arguments(p)
    p.expect("(")
    size = read_expression(p)
    p.expect(")")
    word = p.name("the value set's name")
    p.expect(";", "after a value set")
    if len(arguments) != 1:
        raise p.fail("value_set takes one type argument", token.span)
    return ast.ValueSetDecl(word.span, word.text, arguments[0], size)


def read_action(p: Cursor) -> ast.ActionDecl:
    p.take()
    word = p.name("the action's name")
    return ast.ActionDecl(word.span, word.text, read_parameters(p), read_block(p))


def read_parameters(p: Cursor) -> list[ast.ParameterDecl]:
    p.expect("(")
    return p.listed(lambda: _parameter(p), ")", "after parameters")


def _parameter(p: Cursor) -> ast.ParameterDecl:
    annotations = read_annotations(p)
    direction = p.take().text if p.on("in", "out", "inout") else ""
    ref = read_type(p)
    word = p.name("a parameter")
    default = read_expression(p) if p.accept("=") else None
    return ast.ParameterDecl(word.span, word.text, direction, ref, default, annotations=annotations)
