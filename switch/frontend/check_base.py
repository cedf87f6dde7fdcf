"""What every part of the checker shares: scopes, complaints, type references and implicit conversions."""

from __future__ import annotations

import difflib

from . import ast
from .diagnostics import Diagnostics, Span, article, choices, count
from .fold import fit
from .scope import Scope, Symbol
from .types import (
    ANY,
    BOOL,
    ERROR,
    INT,
    MATCH_KIND,
    STRING,
    VOID,
    Applicable,
    Bits,
    Composite,
    Enum,
    Extern,
    NewType,
    Stack,
    Tuple,
    Type,
    VarBits,
    Variable,
    same,
    strip,
)

_WIDTH_MAX = 65535
_SIMPLE = {"bool": BOOL, "error": ERROR, "string": STRING, "void": VOID, "match_kind": MATCH_KIND, "_": ANY}


class CheckerBase:
    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.scope = Scope()
        self.errors: dict[str, int] = {}
        self.match_kinds: list[str] = []
        self.declared: dict[int, Symbol] = {}  # symbols by the identity of their declaration
        self.blocks: dict[int, Symbol] = {}  # the same for controls and parsers, known while they are still open

    # --- complaints ------------------------------------------------------------------------------------------------

    def type_error(self, message: str, span: Span, *notes: str) -> Type:
        self.diagnostics.error("types", message, span, *notes)
        return ANY

    def name_error(self, message: str, span: Span, *notes: str) -> None:
        self.diagnostics.error("names", message, span, *notes)

    # --- names -----------------------------------------------------------------------------------------------------

    def declare(self, symbol: Symbol, span: Span) -> Symbol:
        symbol.span = span
        if symbol.declaration is not None:
            self.declared[id(symbol.declaration)] = symbol
        earlier = self.scope.names.get(symbol.name)
        if earlier is not None and not (earlier.kind == symbol.kind == "function"):
            place = f" (first at {earlier.span})" if earlier.span else ""
            self.name_error(f"{symbol.name} is declared twice in the same scope{place}", span)
        elif earlier is not None:
            earlier.overloads.append(symbol)
            return symbol
        self.scope.names[symbol.name] = symbol
        return symbol

    def find(self, name: str, span: Span, kinds: tuple[str, ...], what: str) -> Symbol | None:
        """The symbol of one of `kinds`; otherwise a complaint that lists the names that would do."""
        symbol = self.scope.lookup(name)
        if symbol is not None and symbol.kind in kinds:
            return symbol
        note = self.names_like(name, kinds, f"{what}s in scope")
        if symbol is None:
            self.name_error(f"there is no {what} named {name}", span, note)
        else:
            self.name_error(f"{name} is {article(symbol.kind)}, not {article(what)}", span, note)
        return None

    def names_like(self, name: str, kinds: tuple[str, ...], what: str) -> str:
        """A note with the names in scope that would do: the program's own, and what is close among the libraries'."""
        own: list[str] = []
        shipped: list[str] = []
        for s in self.scope.visible():
            if s.kind in kinds and not (s.kind == "type" and isinstance(s.type, Variable)):
                (shipped if s.span is not None and s.span.file.startswith("<") else own).append(s.name)
        close = difflib.get_close_matches(name, shipped, n=2, cutoff=0.6)
        return choices(name, own + close, what)

    # --- type references -------------------------------------------------------------------------------------------

    def expression(self, e: ast.Expression) -> Type:
        raise NotImplementedError

    def constant_number(self, e: ast.Expression, what: str, least: int = 0) -> int | None:
        """A compile-time integer of at least `least`."""
        t = self.expression(e)
        if t == ANY:
            return None
        if isinstance(e.value, bool) or not isinstance(e.value, int):
            self.type_error(f"{what} must be an integer known at compile time", e.span)
            return None
        if e.value < least:
            self.type_error(f"{what} must be at least {least}, not {e.value}", e.span)
            return None
        return e.value

    def type_of(self, ref: ast.TypeRef) -> Type:
        if isinstance(ref, ast.BaseType):
            return self._base_type(ref)
        if isinstance(ref, ast.TupleType):
            return Tuple(tuple(self.type_of(i) for i in ref.items))
        if isinstance(ref, ast.StackType):
            element = self.type_of(ref.element)
            size = self.constant_number(ref.size, "the size of a header stack", 1)
            if element == ANY or size is None:
                return ANY
            if not isinstance(element, Composite) or element.kind == "struct":
                return self.type_error(f"only headers and header unions can be stacked, not {element}", ref.span)
            return Stack(element, size)
        assert isinstance(ref, ast.NamedType)
        symbol = self.find(ref.name, ref.span, ("type", "control", "parser", "package"), "type")
        if symbol is None:
            return ANY
        arguments = tuple(self.type_of(a) for a in ref.arguments)
        found = symbol.type
        if isinstance(found, Extern | Applicable):
            declaration = found.declaration
            wanted = getattr(declaration, "type_parameters", [])
            if arguments and len(arguments) != len(wanted):
                message = f"{found.name} takes {count(len(wanted), 'type argument')}, not {len(arguments)}"
                return self.type_error(message, ref.span)
            if isinstance(found, Extern):
                return Extern(found.declaration, found.name, arguments)
            return Applicable(found.kind, found.name, found.declaration, arguments)
        if arguments:
            return self.type_error(f"{ref.name} takes no type arguments", ref.span)
        return found

    def _base_type(self, ref: ast.BaseType) -> Type:
        if ref.name in _SIMPLE:
            return _SIMPLE[ref.name]
        if ref.width is None:
            return INT if ref.name == "int" else Bits(1)
        width = self.constant_number(ref.width, f"the width of {ref.name}<>", 1)
        if width is None:
            return ANY
        if width > _WIDTH_MAX:
            return self.type_error(f"{ref.name}<{width}> is wider than {_WIDTH_MAX} bits", ref.span)
        return VarBits(width) if ref.name == "varbit" else Bits(width, ref.name == "int")

    # --- implicit conversions --------------------------------------------------------------------------------------

    def coerce(self, e: ast.Expression, to: Type, what: str = "") -> bool:
        """Make the checked expression `e` one of type `to` where the language does so by itself; complain if not."""
        t = e.type
        if t is None or ANY in (t, to) or isinstance(to, Variable) or same(t, to):
            return True
        plain = strip(to)
        if isinstance(e, ast.Default):
            return True
        if t == INT and isinstance(plain, Bits) and not isinstance(to, NewType | Enum):
            return self._coerce_number(e, plain, to)
        if isinstance(t, Enum) and t.underlying is not None and isinstance(to, Bits) and same(t.underlying, to):
            e.type = to
            if e.value is not None:
                e.value = e.value.number
            return True
        if isinstance(e, ast.ListExpression) and isinstance(to, Composite | Tuple):
            return self._coerce_list(e, to, what)
        if isinstance(e, ast.StructExpression) and isinstance(to, Composite):
            return self._coerce_struct(e, to, what)
        if isinstance(e, ast.Conditional) and t == INT:
            e.type = to
            return self.coerce(e.then, to, what) and self.coerce(e.otherwise, to, what)
        note = ""
        if isinstance(plain, Bits) and isinstance(strip(t), Bits):
            note = f"write a cast: ({to}) …"
        self.type_error(f"{what or 'this'} needs a value of type {to}, not {t}", e.span, note)
        return False

    def _coerce_number(self, e: ast.Expression, plain: Bits, to: Type) -> bool:
        if isinstance(e, ast.Conditional) and e.value is None:
            e.type = to
            return self.coerce(e.then, to) and self.coerce(e.otherwise, to)
        if e.value is not None:
            fitted = fit(e.value, plain)
            if (fitted != e.value and fitted != e.value & ((1 << plain.width) - 1)) or e.value >= 1 << plain.width:
                self.diagnostics.warning("types", f"{e.value} does not fit {plain}: it becomes {fitted}", e.span)
            e.value = fitted
        e.type = to
        return True

    def _coerce_list(self, e: ast.ListExpression, to: Composite | Tuple, what: str) -> bool:
        wanted = [f.type for f in to.fields.values()] if isinstance(to, Composite) else list(to.items)
        if len(wanted) != len(e.items):
            self.type_error(f"{to} has {len(wanted)} members, this list {len(e.items)}", e.span)
            return False
        good = [self.coerce(item, t, what) for item, t in zip(e.items, wanted, strict=True)]
        e.type = to
        return all(good)

    def _coerce_struct(self, e: ast.StructExpression, to: Composite, what: str) -> bool:
        given = {name for name, _ in e.items}
        good = True
        for name, item in e.items:
            if name not in to.fields:
                self.type_error(f"{to} has no field {name}", item.span, choices(name, to.fields, "fields"))
                good = False
            else:
                good = self.coerce(item, to.fields[name].type, what) and good
        missing = [n for n in to.fields if n not in given]
        if missing:
            self.type_error(f"{to} also needs {', '.join(missing)}", e.span)
            good = False
        e.type = to
        return good
