"""header_types, headers, header_stacks, header unions, field_aliases, errors, enums."""

from __future__ import annotations

from functools import partial

from p4c.model.errors import ModelError
from p4c.model.headers import Field, Header, HeaderType, Stack, Union, UnionStack, add_field
from p4c.model.intrinsics import Intrinsics, find_intrinsics
from p4c.model.limits import BITS_MAX, FRAME_BYTES_MAX
from p4c.model.loading.cursor import JsonCursor
from p4c.model.loading.scope import LoadScope, declare, named, numbered
from p4c.model.program import CORE_ERRORS


def read_types(root: JsonCursor, scope: LoadScope) -> None:
    """Fill the scope with every header, stack and union."""
    for at in root.list_of("header_types"):
        declare(scope.header_types, at, "header type", partial(_header_type, at))
    for at in root.list_of("headers"):
        _declare_header(at, scope)
    for at in root.list_of("header_stacks"):
        _declare_stack(at, scope)
    _read_unions(root, scope)
    for at in root.list_of("field_aliases"):
        alias, target = at.items(2)
        scope.aliases[alias.text()] = scope.field(target)
    for at in root.list_of("errors"):
        name, value = at.items(2)
        scope.errors[name.text()] = value.integer()
    for core in CORE_ERRORS:
        if core not in scope.errors:
            scope.errors[core] = max(scope.errors.values(), default=-1) + 1


def _header_type(at: JsonCursor, name: str) -> HeaderType:
    fields: list[Field] = []
    for field_at in at.get("fields").items():
        parts = field_at.items()
        if not 2 <= len(parts) <= 4:
            field_at.fail("a field is [name, width], [name, width, signed] or [name, width, signed, saturating]")
        varbit = parts[1].value == "*"
        bits = None if varbit else parts[1].integer(1, BITS_MAX)
        signed = len(parts) > 2 and _flag(parts[2])
        saturating = len(parts) > 3 and _flag(parts[3])
        if varbit and (signed or saturating):
            field_at.fail("a varbit field can be neither signed nor saturating")
        if varbit and any(f.varbit for f in fields):
            field_at.fail("a header type may have one varbit field only")
        add_field(fields, parts[0].text(), bits, signed, saturating)
    if at.find("length_exp") is not None:
        at.unsupported("length_exp (P4_14 variable-length headers): use extract_VL, as P4_16 compilers do")
    max_bytes = at.get_or("max_length", partial(JsonCursor.integer, maximum=FRAME_BYTES_MAX), 0)
    made = HeaderType(name, tuple(fields), max_bytes)
    if made.width_bits > BITS_MAX:
        at.fail(f"a header may have {BITS_MAX} bits, not {made.width_bits}")
    return made


def _flag(at: JsonCursor) -> bool:
    """A truth value, which p4c writes as 0 for some fields."""
    return at.integer(maximum=1) == 1 if isinstance(at.value, int) and not isinstance(at.value, bool) else at.boolean()


def _declare_header(at: JsonCursor, scope: LoadScope) -> None:
    def make(name: str) -> Header:
        header_type = named(scope.header_types, at.get("header_type"), "header type")
        metadata = at.get("metadata").boolean()
        if not metadata and header_type.width_bits % 8:
            at.fail(f"a header must be whole bytes; {header_type.name!r} has {header_type.width_bits} bits")
        return Header(name, len(scope.headers), header_type, metadata)

    header = declare(scope.headers, at, "header", make)
    number = at.get("id").integer()
    if number in scope.headers_by_id:
        at.fail(f"a second header has id {number}")
    scope.headers_by_id[number] = header


def _declare_stack(at: JsonCursor, scope: LoadScope) -> None:
    def make(name: str) -> Stack:
        header_type = named(scope.header_types, at.get("header_type"), "header type")
        headers = tuple(numbered(scope.headers_by_id, h, "header") for h in at.get("header_ids").items())
        if not headers:
            at.fail("a header stack needs at least one header")
        if any(h.type is not header_type for h in headers):
            at.fail(f"every header of the stack must be of type {header_type.name!r}")
        return Stack(name, len(scope.stacks), header_type, headers)

    declare(scope.stacks, at, "header stack", make)


def _read_unions(root: JsonCursor, scope: LoadScope) -> None:
    union_types: dict[str, list[tuple[str, HeaderType]]] = {}
    for at in root.list_of("header_union_types"):
        members = []
        for member in at.get("headers").items():
            name, type_at = member.items(2)
            members.append((name.text(), named(scope.header_types, type_at, "header type")))
        union_types[at.get("name").text()] = members
    for at in root.list_of("header_unions"):
        type_name = at.get("union_type")
        members = named(union_types, type_name, "header union type")
        headers = tuple(numbered(scope.headers_by_id, h, "header") for h in at.get("header_ids").items())
        if len(headers) != len(members) or any(h.type is not m[1] for h, m in zip(headers, members, strict=True)):
            at.fail("the headers do not agree with the members of the union type")
        names = tuple(name for name, _ in members)
        make = partial(Union, index=len(scope.unions), type_name=type_name.text(), members=names, headers=headers)
        scope.unions_by_id[at.get("id").integer()] = declare(scope.unions, at, "header union", make)
    for at in root.list_of("header_union_stacks"):
        unions = tuple(numbered(scope.unions_by_id, u, "header union") for u in at.get("header_union_ids").items())
        if not unions:
            at.fail("a header union stack needs at least one union")
        make_stack = partial(UnionStack, index=len(scope.union_stacks), unions=unions)
        declare(scope.union_stacks, at, "header union stack", make_stack)


def read_enums(root: JsonCursor) -> dict[str, dict[str, int]]:
    enums = {}
    for at in root.list_of("enums"):
        pairs = [entry.items(2) for entry in at.get("entries").items()]
        enums[at.get("name").text()] = {name.text(): value.integer() for name, value in pairs}
    return enums


def read_intrinsics(root: JsonCursor, scope: LoadScope) -> Intrinsics:
    try:
        return find_intrinsics(scope.headers, scope.aliases)
    except ModelError as missing:
        root.fail(str(missing))
