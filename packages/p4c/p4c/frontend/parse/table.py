"""Tables: keys, actions, entries and other properties (specification, section 14.2)."""

from __future__ import annotations

from p4c.frontend.parse import ast
from p4c.frontend.parse.annotation import read_annotations
from p4c.frontend.parse.cursor import Cursor
from p4c.frontend.parse.expression import read_arguments, read_expression, read_key_sets


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
        raise p.fail(f"expected a table property, found {p.shown()}")
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
