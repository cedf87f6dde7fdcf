"""Types as written, worked out: widths, sizes of stacks, type arguments."""

from p4c.frontend.check import types as ty
from p4c.frontend.check.context import CheckContext
from p4c.frontend.diagnostics import SourceSpan, brief, count
from p4c.frontend.parse import ast
from p4c.frontend.parse.lexer import BITS_MAX

SIZE_MAX = (1 << 31) - 1  # of tables and value sets: P4Info and BMv2 have 32 bits
_STACK_SIZE_MAX = 4096
_PARTS_MAX = 65536
_SIMPLE = {str(t): t for t in (ty.BOOL, ty.ERROR, ty.STRING, ty.VOID, ty.MATCH_KIND, ty.ANY)}


def constant_number(
    cx: CheckContext, e: ast.Expression, what: str, least: int = 0, most: int | None = None
) -> int | None:
    """A compile-time integer of at least `least`, and at most `most` if given."""
    t = cx.expression(e)
    if t == ty.ANY:
        return None
    if isinstance(e.value, bool) or not isinstance(e.value, int):
        cx.type_error(f"{what} must be an integer known at compile time", e.span)
        return None
    if e.value < least:
        cx.type_error(f"{what} must be at least {least}, not {brief(e.value)}", e.span)
        return None
    if most is not None and e.value > most:
        cx.type_error(f"{what} must be at most {most}, not {brief(e.value)}", e.span)
        return None
    return e.value


def bounded(cx: CheckContext, t: ty.Type, span: SourceSpan) -> ty.Type:
    """`t`, unless it has too many fields: types that contain another twice double with every level."""
    size = ty.parts(t)
    if size <= _PARTS_MAX:
        return t
    return cx.type_error(f"a type must have at most {_PARTS_MAX} fields, those of structs in it counted", span)


def type_of(cx: CheckContext, ref: ast.TypeRef) -> ty.Type:
    if isinstance(ref, ast.BaseTypeRef):
        return _base_type(cx, ref)
    if isinstance(ref, ast.TupleTypeRef):
        return bounded(cx, ty.Tuple(tuple(type_of(cx, i) for i in ref.items)), ref.span)
    if isinstance(ref, ast.StackTypeRef):
        element = type_of(cx, ref.element)
        size = constant_number(cx, ref.size, "the size of a header stack", 1, _STACK_SIZE_MAX)
        if element == ty.ANY or size is None:
            return ty.ANY
        if not isinstance(element, ty.CompositeType) or element.kind == "struct":
            return cx.type_error(f"only headers and header unions can be stacked, not {element}", ref.span)
        return bounded(cx, ty.StackType(element, size), ref.span)
    assert isinstance(ref, ast.NamedTypeRef)
    symbol = cx.find(ref.name, ref.span, ("type", "control", "parser", "package"), "type")
    if symbol is None:
        return ty.ANY
    arguments = tuple(type_of(cx, a) for a in ref.arguments)
    named = symbol.type
    if isinstance(named, ty.Extern | ty.ApplicableType):
        declaration = named.declaration
        wanted = getattr(declaration, "type_parameters", [])
        if arguments and len(arguments) != len(wanted):
            message = f"{named.name} takes {count(len(wanted), 'type argument')}, not {len(arguments)}"
            return cx.type_error(message, ref.span)
        if isinstance(named, ty.Extern):
            return ty.Extern(named.declaration, named.name, arguments or named.arguments)
        return ty.ApplicableType(named.kind, named.name, named.declaration, arguments)
    if isinstance(named, ty.GenericType):
        if len(arguments) != len(named.parameters):
            message = f"{ref.name} takes {count(len(named.parameters), 'type argument')}, not {len(arguments)}"
            return cx.type_error(message, ref.span)
        return ty.ANY if ty.ANY in arguments else named.made(arguments)
    if arguments:
        return cx.type_error(f"{ref.name} takes no type arguments", ref.span)
    return named


def _base_type(cx: CheckContext, ref: ast.BaseTypeRef) -> ty.Type:
    if ref.name in _SIMPLE:
        return _SIMPLE[ref.name]
    if ref.width is None:
        return ty.INT if ref.name == "int" else ty.Bits(1)
    width = constant_number(cx, ref.width, f"the width of {ref.name}<>", 1)
    if width is None:
        return ty.ANY
    if width > BITS_MAX:
        return cx.type_error(f"{ref.name}<{brief(width)}> is wider than {BITS_MAX} bits", ref.span)
    return ty.VarBits(width) if ref.name == "varbit" else ty.Bits(width, ref.name == "int")
