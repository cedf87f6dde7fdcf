"""The whole file."""

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from common import plain_file
from common.garbage import not_collected
from p4c.model import memory
from p4c.model.errors import ModelError
from p4c.model.headers import Field, Header, HeaderType, Stack, Union, UnionStack, add_field
from p4c.model.intrinsics import Intrinsics, find_intrinsics
from p4c.model.limits import BITS_MAX, FRAME_BYTES_MAX
from p4c.model.loading.actions import read_actions
from p4c.model.loading.cursor import JsonCursor
from p4c.model.loading.externs import read_checksums, read_externs
from p4c.model.loading.parsers import read_deparser, read_parser
from p4c.model.loading.pipelines import read_pipeline
from p4c.model.loading.scope import LoadScope, declare, named, numbered
from p4c.model.program import CORE_ERRORS, Program


# header_types, headers, header_stacks, header unions, field_aliases, errors, enums.
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


PROGRAM_BYTES_MAX = 24 << 20  # of BMv2 JSON
_MAJOR = 2  # of the format's version
_MINOR = 24  # the newest minor version known
_COSMETIC = {"source_info", "program", "__meta__", "pragmas"}


@not_collected()
def load(source: Mapping[str, Any] | str | Path) -> Program:
    """Read a program from parsed JSON or from a file. Raises ModelError (UnsupportedError for refused features)."""
    if isinstance(source, Mapping):
        return _program(dict(source), "program")
    path = Path(source)
    try:
        data = plain_file.read_up_to(path, PROGRAM_BYTES_MAX)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from error
    return load_program(data, path.name)


@not_collected()
def load_program(data: bytes, name: str = "program") -> Program:
    """Read a program from the bytes of a BMv2 JSON file; `name` starts the messages of ModelError."""
    if len(data) > PROGRAM_BYTES_MAX:
        raise ModelError(f"{name}: a program must have at most {PROGRAM_BYTES_MAX} bytes (got {len(data)})")
    try:
        value = plain_file.parse_json(data)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{name}: a BMv2 program is a JSON object, not {type(value).__name__}")
    try:
        return _program(value, name)
    except RecursionError as error:
        raise ModelError(f"{name}: expressions are nested too deeply") from error


def _program(value: dict[str, Any], name: str) -> Program:
    root = JsonCursor(value, name)
    compiler = _check_version(root)
    scope = LoadScope()
    read_types(root, scope)
    read_externs(root, scope)
    actions = read_actions(root, scope)
    parser, deparser = read_parser(root, scope), read_deparser(root, scope)
    ingress, egress = read_pipeline(root, "ingress", scope), read_pipeline(root, "egress", scope)
    program = Program(
        name=root.get_or("program", JsonCursor.text, name),
        digest=_digest(value),
        compiler=compiler,
        header_types=tuple(scope.header_types.values()),
        headers=tuple(scope.headers.values()),
        stacks=tuple(scope.stacks.values()),
        unions=tuple(scope.unions.values()),
        union_stacks=tuple(scope.union_stacks.values()),
        intrinsics=read_intrinsics(root, scope),
        aliases=dict(scope.aliases),
        errors=dict(scope.errors),
        enums=read_enums(root),
        parser=parser,
        deparser=deparser,
        ingress=ingress,
        egress=egress,
        actions=actions,
        calculations=tuple(scope.calculations.values()),
        checksums=read_checksums(root, scope),
        counters=tuple(scope.counters.values()),
        meters=tuple(scope.meters.values()),
        registers=tuple(scope.registers.values()),
        profiles=tuple(scope.profiles.values()),
        field_lists=dict(scope.field_lists),
        learn_lists=tuple(scope.learn_lists.values()),
        value_sets=tuple(scope.value_sets.values()),
    )
    too_much = memory.excess(program)
    if too_much is not None:
        root.fail(too_much[0])
    return program


def _check_version(root: JsonCursor) -> str:
    meta = root.find("__meta__")
    if meta is None:
        return ""
    version = meta.find("version")
    if version is not None:
        major, minor = (part.integer() for part in version.items(2))
        if major != _MAJOR or minor > _MINOR:
            version.unsupported(f"version {major}.{minor} of the format; known is {_MAJOR}.0 to {_MAJOR}.{_MINOR}")
    return meta.get_or("compiler", JsonCursor.text, "")


def _digest(value: dict[str, Any]) -> str:
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        parts = [(k, v) for k, v in value.items() if k not in _COSMETIC]
        return {k: _plain(v) if isinstance(v, dict | list) else v for k, v in parts}
    return [_plain(v) if isinstance(v, dict | list) else v for v in value]
