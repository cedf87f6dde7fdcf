"""Expressions by precedence climbing (specification, chapter 8), and the types in them: each may contain the other."""

from p4c.frontend.parse import ast
from p4c.frontend.parse.cursor import BASE_TYPES, RESERVED, SOFT, Cursor
from p4c.frontend.parse.lexer import integer

# Unlike in C, the bitwise operators bind more tightly than comparisons.
_LEVELS = "||, &&, == !=, < > <= >=, |, ^, &, << >>, ++ + - |+| |-|, * / %"
_PRECEDENCE = {op: level for level, ops in enumerate(_LEVELS.split(", "), 1) for op in ops.split()}
_UNARY = frozenset(["!", "~", "-", "+"])


def read_expression(p: Cursor) -> ast.Expression:
    outer, p.angle = p.angle, 0
    try:
        return p.once(_ternary)
    finally:
        p.angle = outer


def _shift_free(p: Cursor) -> ast.Expression:
    outer, p.angle = p.angle, 1
    try:
        return _binary(p, 9)
    finally:
        p.angle = outer


def _key_set(p: Cursor) -> ast.Expression:
    """An element of a select case or a table entry: an expression, a mask, a range, or a wildcard."""
    token = p.token
    if token.text in ("default", "_"):
        p.take()
        return ast.Default(token.span)
    left = read_expression(p)
    if p.on("&&&", ".."):
        op = p.take()
        return ast.BinaryExpression(op.span, op.text, left, read_expression(p))
    return left


def read_key_sets(p: Cursor) -> list[ast.Expression]:
    """One key set, or several in parentheses or, as p4c takes them, in braces."""
    sets = (p.attempt(_key_sets) if p.on("(") else None) or [_key_set(p)]
    return sets[0].items if len(sets) == 1 and isinstance(sets[0], ast.ListExpression) else sets


def _key_sets(p: Cursor) -> list[ast.Expression] | None:
    p.take()
    items = p.listed(lambda: _key_set(p), ")")
    return items if p.on(":") else None


def _ternary(p: Cursor) -> ast.Expression:
    condition = _binary(p, 1)
    if not p.on("?"):
        return condition
    mark = p.take()
    then = _ternary(p)
    p.expect(":", "in a conditional expression")
    return ast.ConditionalExpression(mark.span, condition, then, _ternary(p))


def _operator(p: Cursor) -> str:
    token = p.token
    if token.kind != "op":
        return ""
    if token.text == ">":
        if p.angle:
            return ""
        following = p.peek()
        if following.text == ">" and following.glued:
            return ">>"
    return token.text


def _binary(p: Cursor, level: int) -> ast.Expression:
    left = _unary(p)
    while True:
        op = _operator(p)
        precedence = _PRECEDENCE.get(op, 0)
        if precedence < level:
            return left
        token = p.take()
        if op == ">>":
            p.take()
        right = _binary(p, precedence + 1)
        left = ast.BinaryExpression(token.span, op, left, right)


def _unary(p: Cursor) -> ast.Expression:
    token = p.token
    if token.kind == "op" and token.text in _UNARY:
        p.take()
        return ast.UnaryExpression(token.span, token.text, _unary(p))
    if token.text == "(":
        cast = _cast(p)
        if cast is not None:
            return cast
    return read_postfix(p, read_primary(p))


def _cast(p: Cursor) -> ast.Expression | None:
    """`(type) operand`. A name in brackets is a cast only if an operand follows that no operator explains."""
    start, opening = p.at, p.token
    ref = p.attempt(_type_in_brackets)
    if ref is None:
        return None
    following = p.token
    starts_operand = following.kind in ("int", "str", "id") or following.text in ("(", "~", "!", "{")
    if following.kind == "id" and following.text == "in":
        starts_operand = False
    plain_type = isinstance(ref, ast.BaseTypeRef) or (isinstance(ref, ast.NamedTypeRef) and bool(ref.arguments))
    if starts_operand or (plain_type and following.text in ("-", "+")):
        return ast.CastExpression(opening.span, ref, _unary(p))
    p.go(start)
    return None


def _type_in_brackets(p: Cursor) -> ast.TypeRef:
    p.take()
    ref = read_type(p)
    p.expect(")")
    return ref


def read_primary(p: Cursor) -> ast.Expression:
    token = p.token
    if token.kind == "int":
        p.take()
        value, width, signed = integer(token.text)
        return ast.Number(token.span, value, width, signed, token.text)
    if token.kind == "str":
        p.take()
        text = token.text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
        return ast.String(token.span, text)
    if token.text in ("true", "false"):
        p.take()
        return ast.Boolean(token.span, token.text == "true")
    if token.text == "(":
        p.take()
        inner = read_expression(p)
        p.expect(")")
        return inner
    if token.text == "{":
        return _braces(p)
    if token.text == ".":
        p.take()
        word = p.name()
        return ast.Name(word.span, word.text, absolute=True)
    if token.text in BASE_TYPES and token.text != "_":
        return ast.TypeExpression(token.span, read_type(p))
    if token.kind == "id" and (token.text not in RESERVED or token.text in SOFT):
        p.take()
        return ast.Name(token.span, token.text)
    raise p.fail(f"expected an expression, found {p.next_text()}")


def _braces(p: Cursor) -> ast.Expression:
    opening = p.expect("{")
    if p.on("#"):
        p.take()
        p.expect("}", "in the invalid header {#}")
        return ast.InvalidHeader(opening.span)
    if p.token.kind == "id" and p.peek().text == "=":
        return ast.StructExpression(opening.span, p.listed(lambda: _named_value(p), "}"))
    return ast.ListExpression(opening.span, p.listed(lambda: read_expression(p), "}", "after a list of values"))


def _named_value(p: Cursor) -> tuple[str, ast.Expression]:
    word = p.name("a field")
    p.expect("=")
    return word.text, read_expression(p)


def read_postfix(p: Cursor, base: ast.Expression) -> ast.Expression:
    while True:
        token = p.token
        if token.text == "." and token.kind == "op":
            p.take()
            word = p.token
            if word.kind != "id":
                raise p.fail(f"expected a member's name after '.', found {p.next_text()}")
            p.take()
            base = ast.MemberExpression(word.span, base, word.text)
        elif token.text == "[":
            p.take()
            first = read_expression(p)
            if p.accept(":"):
                low = read_expression(p)
                p.expect("]")
                base = ast.SliceExpression(token.span, base, first, low)
            else:
                p.expect("]")
                base = ast.IndexExpression(token.span, base, first)
        elif token.text == "(":
            base = _call(p, base, [])
        elif token.text == "<" and isinstance(base, ast.Name | ast.MemberExpression):
            arguments = p.attempt(_call_type_arguments)
            if arguments is None:
                return base
            base = _call(p, base, arguments)
        else:
            return base


def _call_type_arguments(p: Cursor) -> list[ast.TypeRef] | None:
    """Type arguments, if `<…>(` follows; a comparison otherwise."""
    arguments = read_type_arguments(p)
    return arguments if p.on("(") else None


def _call(p: Cursor, callee: ast.Expression, type_arguments: list[ast.TypeRef]) -> ast.CallExpression:
    return ast.CallExpression(callee.span, callee, type_arguments, read_arguments(p))


def read_arguments(p: Cursor) -> list[ast.Argument]:
    p.expect("(")
    return p.listed(lambda: _argument(p), ")", "after arguments")


def _argument(p: Cursor) -> ast.Argument:
    token = p.token
    name = None
    if token.kind == "id" and p.peek().text == "=":
        p.take()
        p.take()
        name = token.text
    value: ast.Expression = ast.Default(p.take().span) if p.on("_") else read_expression(p)
    return ast.Argument(token.span, name, value)


def read_type(p: Cursor) -> ast.TypeRef:
    token = p.token
    if token.kind != "id" and token.text != ".":
        raise p.fail(f"expected a type, found {p.next_text()}")
    ref: ast.TypeRef
    if token.text in BASE_TYPES:
        p.take()
        width: ast.Expression | None = None
        if token.text in ("bit", "int", "varbit") and p.accept("<"):
            width = _width(p)
            p.expect(">", "after the width")
        ref = ast.BaseTypeRef(token.span, token.text, width)
    elif token.text in ("tuple", "list"):
        p.take()
        ref = ast.TupleTypeRef(token.span, read_type_arguments(p))
    else:
        p.accept(".")
        word = p.name("a type")
        arguments = read_type_arguments(p) if p.on("<") else []
        ref = ast.NamedTypeRef(word.span, word.text, arguments)
    while p.on("[") and p.peek().text != "]":
        p.take()
        size = read_expression(p)
        p.expect("]", "after the size of a header stack")
        ref = ast.StackTypeRef(token.span, ref, size)
    return ref


def _width(p: Cursor) -> ast.Expression:
    if p.accept("("):
        inner = read_expression(p)
        p.expect(")")
        return inner
    return _shift_free(p)


def read_type_arguments(p: Cursor) -> list[ast.TypeRef]:
    p.expect("<")
    items = [read_type(p)]
    while p.accept(","):
        items.append(read_type(p))
    p.expect(">", "after type arguments")
    return items


def read_type_parameters(p: Cursor) -> list[str]:
    if not p.accept("<"):
        return []
    names = [p.name("a type parameter").text]
    while p.accept(","):
        names.append(p.name("a type parameter").text)
    p.expect(">", "after type parameters")
    return names
