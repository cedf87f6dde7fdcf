"""Controls, parsers and the actions, tables and value sets in them (specification, chapters 13 and 14)."""

from p4c.frontend.parse import ast
from p4c.frontend.parse.annotation import read_annotations
from p4c.frontend.parse.cursor import Cursor, SyntaxFailureError
from p4c.frontend.parse.expression import (
    read_arguments,
    read_expression,
    read_key_sets,
    read_type,
    read_type_arguments,
    read_type_parameters,
)
from p4c.frontend.parse.statement import read_block, read_constant, read_local_declaration, read_statement


# Tables: keys, actions, entries and other properties (specification, section 14.2).
def read_table(p: Cursor) -> ast.TableDecl:
    p.take()
    word = p.name("the table's name")
    table = ast.TableDecl(word.span, word.text)
    p.expect("{")
    p.each(lambda: _property(p, table), "}")
    p.expect("}", f"at the end of table {word.text}")
    return table


def _property(p: Cursor, table: ast.TableDecl) -> None:
    annotations = read_annotations(p)
    const = p.accept("const") is not None
    word = p.token
    if word.kind != "id":
        raise p.fail(f"expected a table property, found {p.next_text()}")
    p.take()
    p.expect("=", f"after the property {word.text}")
    if word.text == "key":
        p.expect("{")
        while not p.on("}"):
            at = p.token
            expression = read_expression(p)
            p.expect(":", "between a key and its match kind")
            kind = p.name("a match kind")
            annotations = read_annotations(p)
            p.expect(";", "after a key element")
            table.keys.append(ast.KeyElement(at.span, expression, kind.text, annotations))
        p.expect("}")
    elif word.text == "actions":
        p.expect("{")
        while not p.on("}"):
            annotations = read_annotations(p)
            table.actions.append(_action_ref(p, annotations))
            p.expect(";", "after an action")
        p.expect("}")
    elif word.text == "entries":
        table.entries_const = const
        table.entries = _entries(p)
    elif word.text == "default_action":
        table.default, table.default_const = _action_ref(p, []), const
        p.expect(";", "after the default action")
    else:
        if word.text in table.properties:
            raise p.fail(f"the property {word.text} is set twice", word.span)
        table.properties[word.text] = ast.Property(word.span, word.text, const, read_expression(p), annotations)
        p.expect(";", f"after the property {word.text}")
        return
    p.accept(";")


def _action_ref(p: Cursor, annotations: list[ast.Annotation]) -> ast.ActionRef:
    p.accept(".")
    word = p.name("an action")
    arguments = read_arguments(p) if p.on("(") else []
    return ast.ActionRef(word.span, word.text, arguments, annotations)


def _entries(p: Cursor) -> list[ast.EntryElement]:
    p.expect("{")
    entries = []
    while not p.on("}"):
        at = p.token
        const = p.accept("const") is not None
        priority = None
        if p.on("priority") and p.peek().text == "=":
            p.take()
            p.take()
            priority = read_expression(p)
            p.expect(":", "after an entry's priority")
        keys = read_key_sets(p)
        p.expect(":", "between an entry's keys and its action")
        action = _action_ref(p, [])
        annotations = read_annotations(p)
        p.expect(";", "after an entry")
        entries.append(ast.EntryElement(at.span, keys, action, const, priority, annotations))
    p.expect("}")
    return entries


# Parser states and their transitions (specification, chapter 13).
def read_state(p: Cursor) -> ast.StateDecl:
    p.expect("state")
    word = p.name("the state's name")
    p.expect("{")
    statements: list[ast.Statement] = []
    transition = None
    while not p.on("}") and p.token.kind != "end":
        level = p.level
        try:
            if p.on("transition"):
                transition = _transition(p)
                break
            statements.append(read_statement(p))
        except SyntaxFailureError:
            p.recover(level)
    p.expect("}", "at the end of a state: nothing may follow its transition")
    return ast.StateDecl(word.span, word.text, statements, transition)


def _transition(p: Cursor) -> ast.TransitionStatement:
    token = p.expect("transition")
    if not p.on("select"):
        word = p.name("a state")
        p.expect(";", "after a transition")
        return ast.TransitionStatement(word.span, word.text)
    p.take()
    p.expect("(", "after select")
    keys = [] if p.on(")") else [read_expression(p)]
    while p.accept(","):
        keys.append(read_expression(p))
    p.expect(")", "after the select's keys")
    p.expect("{")
    cases = []
    while not p.on("}"):
        at = p.token
        sets = read_key_sets(p)
        p.expect(":", "after a select label")
        word = p.name("a state")
        p.expect(";", "after a select case")
        cases.append(ast.SelectCase(at.span, sets, word.text))
    p.expect("}")
    p.accept(";")
    return ast.TransitionStatement(token.span, None, keys, cases)


def _opened(p: Cursor, block: ast.Applicable) -> bool:
    """Read up to the opening brace; False for a type, which has no body."""
    if p.accept(";"):
        return False
    if p.on("("):
        block.constructor = read_parameters(p)
    p.expect("{")
    return True


def read_control(p: Cursor) -> ast.ControlDecl:
    p.take()
    word = p.name("the control's name")
    control = ast.ControlDecl(word.span, word.text, read_type_parameters(p), read_parameters(p))
    if not _opened(p, control):
        return control
    p.each(lambda: control.locals.append(_local(p)), "apply", "}")
    p.expect("apply", f"in control {word.text}")
    control.body = read_block(p)
    p.expect("}", f"at the end of control {word.text}: its apply block comes last")
    return control


def read_parser(p: Cursor) -> ast.ParserDecl:
    p.take()
    word = p.name("the parser's name")
    parser = ast.ParserDecl(word.span, word.text, read_type_parameters(p), read_parameters(p))
    if not _opened(p, parser):
        return parser
    states: list[ast.StateDecl] = []

    def part() -> None:
        annotations = read_annotations(p)
        if p.on("state"):
            states.append(read_state(p))
            states[-1].annotations = annotations
        else:
            parser.locals.append(_local(p))
            parser.locals[-1].annotations = annotations

    p.each(part, "}")
    p.expect("}", f"at the end of parser {word.text}")
    parser.states = states
    return parser


def _local(p: Cursor) -> ast.Declaration:
    annotations = read_annotations(p)
    declaration: ast.Declaration
    if p.on("action"):
        declaration = read_action(p)
    elif p.on("table"):
        declaration = read_table(p)
    elif p.on("const"):
        declaration = read_constant(p)
    elif p.on("value_set"):
        declaration = _value_set(p)
    else:
        local = read_local_declaration(p)
        if local is None:
            raise p.fail(f"expected an action, a table, a constant, a variable or an instance, found {p.next_text()}")
        declaration = local
    declaration.annotations = annotations
    return declaration


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
