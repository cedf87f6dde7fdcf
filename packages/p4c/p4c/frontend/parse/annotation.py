"""Annotations: bodies kept as text, and as expressions where the body is a list of expressions."""

from p4c.frontend.parse import ast
from p4c.frontend.parse.cursor import Cursor
from p4c.frontend.parse.expression import read_expression
from p4c.frontend.parse.tokens import text_of

_FOR_P4INFO = frozenset(["id", "max_group_size", "p4runtime_translation"])
_NUMBER_MAX = (1 << 32) - 1
_NAME_MAX = 256  # characters of @name


def read_annotations(p: Cursor) -> list[ast.Annotation]:
    annotations = []
    while p.on("@"):
        at = p.take()
        word = p.take()
        annotation = ast.Annotation(at.span, word.text)
        if p.on("(", "["):
            annotation.structured = p.token.text == "["
            _annotation_body(p, annotation)
        annotations.append(annotation)
    return annotations


def _annotation_body(p: Cursor, annotation: ast.Annotation) -> None:
    opening = p.take()
    start, depth = p.at, 1
    while depth and p.token.kind != "end":
        text = p.take().text
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
    if depth:
        raise p.fail(f"the body of @{annotation.name} is not closed", opening.span)
    end = p.at
    annotation.body = [text_of(code, p.tokens.texts) for code in p.tokens.codes[start : end - 1]]
    annotation.source = " ".join(annotation.body)
    # Constants are read as such; bodies that are not lists of expressions stay text.
    p.go(start)
    annotation.expressions = p.attempt(_constants) or []
    for e in annotation.expressions:
        if annotation.name in _FOR_P4INFO and isinstance(e, ast.Number) and e.number > _NUMBER_MAX:
            p.diagnostics.error("parse", f"a number of @{annotation.name} must fit in 32 bits", e.span)
        if annotation.name == "name" and isinstance(e, ast.String) and len(e.text) > _NAME_MAX:
            p.diagnostics.error("parse", f"@name must have at most {_NAME_MAX} characters", e.span)
    p.go(end)


def _constants(p: Cursor) -> list[ast.Expression]:
    closing = ")" if p.tokens[p.at - 1].text == "(" else "]"
    return p.listed(lambda: read_expression(p), closing)
