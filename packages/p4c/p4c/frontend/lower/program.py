"""The whole program: from the package's arguments to header instances, states, pipelines and the deparser's order."""

from __future__ import annotations

from p4c.frontend.check.context import CheckContext as Checked
from p4c.frontend.check.scope import Callee, Symbol
from p4c.frontend.check.types import ApplicableType, CompositeType, Enum, EnumValue, Extern, strip
from p4c.frontend.diagnostics import NOWHERE, Diagnostics, SourceSpan
from p4c.frontend.draft import Draft, DraftPipeline
from p4c.frontend.lower import expression, loop, operator, statement, values
from p4c.frontend.lower.argument import flat
from p4c.frontend.lower.block import block_value, control_body, instance
from p4c.frontend.lower.checksum import checksums
from p4c.frontend.lower.context import SCALARS, LowerContext, RefusalError, control_plane_name
from p4c.frontend.lower.deparser import deparser
from p4c.frontend.lower.states.parser import lower_parser
from p4c.frontend.lower.storage import allocate, bits_of, new_header, pad
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar
from p4c.model.expressions import FieldRef
from p4c.model.externs import FieldList
from p4c.model.headers import Field, HeaderType, add_field

STANDARD_METADATA = "standard_metadata"
_ARCHITECTURE_ENUMS = frozenset(["CounterType", "MeterType", "HashAlgorithm", "CloneType"])
_V1SWITCH = {"p": 4, "vr": 2, "ig": 3, "eg": 3, "ck": 2, "dep": 2}  # how many parameters each block has


def lower(program: ast.P4Program, checked: Checked, diagnostics: Diagnostics, file: str) -> Draft:
    """The checked program as BMv2 will see it; refusals go to `diagnostics`."""
    made = Draft(file=file, errors=dict(checked.errors))
    frame = values.Bindings(None, "")
    expressions = expression.EXPRESSIONS | operator.EXPRESSIONS
    statements = statement.STATEMENTS | loop.STATEMENTS
    cx = LowerContext(made, checked, diagnostics, expressions, statements, frame, frame)
    with cx.refusals():
        _lower(cx, program)
    return made


def _lower(cx: LowerContext, program: ast.P4Program) -> None:
    scalars = HeaderType(f"{SCALARS}_0", cx.program.scalars)
    cx.program.header_types[scalars.name] = scalars
    new_header(cx, SCALARS, scalars, True)
    cx.names.add(SCALARS)
    for d in program.declarations:
        _global(cx, d)
    main = cx.checked.scope.names["main"]
    _need_core(cx, main.span or NOWHERE)
    blocks = _blocks(cx, main)
    hdr, meta, standard = _storage(cx, blocks["p"])
    packet = values.ExternValue(Extern(_extern(cx, "packet_in"), "packet_in"), "packet")
    packet_out = values.ExternValue(Extern(_extern(cx, "packet_out"), "packet_out"), "packet")
    _bind(blocks["p"], [packet, hdr, meta, standard])
    lower_parser(cx, blocks["p"])
    for name, key in (("verify", "vr"), ("ingress", "ig"), ("egress", "eg"), ("compute", "ck")):
        arguments = [hdr, meta] if name in ("verify", "compute") else [hdr, meta, standard]
        _bind(blocks[key], arguments)
        if name in ("ingress", "egress"):
            _pipeline(cx, name, blocks[key])
        else:
            checksums(cx, name, blocks[key])
    _bind(blocks["dep"], [packet_out, hdr])
    deparser(cx, blocks["dep"])
    pad(cx.program.scalars)
    cx.program.package_annotations = main.declaration.annotations if main.declaration is not None else []


def _global(cx: LowerContext, d: ast.Declaration) -> None:
    if isinstance(d, ast.Instance):
        symbol = cx.symbol_of(d)
        if isinstance(symbol.type, Extern):
            instance(cx, d, symbol, cx.globals)
    elif isinstance(d, ast.EnumDecl) and d.underlying is None and d.name not in _ARCHITECTURE_ENUMS:
        t = cx.symbol_of(d).type
        assert isinstance(t, Enum)
        cx.program.enums[d.name] = dict(t.values)
    elif isinstance(d, ast.Composite) and d.annotation("controller_header") is not None:
        t = cx.symbol_of(d).type
        if isinstance(t, CompositeType):
            cx.program.controller_headers.append(t)


def _need_core(cx: LowerContext, span: SourceSpan) -> None:
    """Refuse a program with a library that lacks what every program relies on."""
    names = cx.checked.scope.names
    externs = ("packet_in", "packet_out")
    missing = [n for n in externs if n not in names or not isinstance(names[n].type, Extern)]
    action = names.get("NoAction")
    if action is None or action.kind != "action" or action.parameters:
        missing.append("NoAction()")
    if "NoMatch" not in cx.checked.errors:
        missing.append("error.NoMatch")
    if missing:
        raise RefusalError(f"core.p4 must declare {', '.join(missing)}", span)


def _extern(cx: LowerContext, name: str) -> ast.ExternDecl:
    t = cx.checked.scope.names[name].type
    assert isinstance(t, Extern)
    return t.declaration


def _blocks(cx: LowerContext, main: Symbol) -> dict[str, values.BlockValue]:
    t, callee = main.type, main.value
    span = main.span or NOWHERE
    if not isinstance(t, ApplicableType) or t.name != "V1Switch" or not isinstance(callee, Callee):
        raise RefusalError(f"main must be a V1Switch, not {t}: v1model is the only architecture here", span)
    blocks = {}
    if len(callee.arguments) != len(_V1SWITCH):
        raise RefusalError(f"V1Switch must have {len(_V1SWITCH)} blocks, not {len(callee.arguments)}", span)
    for name, argument in zip(_V1SWITCH, callee.arguments, strict=True):
        assert argument is not None
        inner = argument.target
        if isinstance(argument, ast.Name):
            inner = argument.target.value
        if not isinstance(inner, Callee) or not isinstance(inner.returns, ApplicableType):
            raise RefusalError("each argument of V1Switch is an instance such as MyIngress()", argument.span)
        declared = inner.returns.declaration
        blocks[name] = block_value(cx, inner.returns, inner, control_plane_name(declared, ""), argument.span)
        if len(blocks[name].symbol.parameters) != _V1SWITCH[name]:
            raise RefusalError(f"this block of V1Switch must have {_V1SWITCH[name]} parameters", argument.span)
    return blocks


def _storage(cx: LowerContext, parser: values.BlockValue) -> tuple[values.Value, values.Value, values.Value]:
    _, headers, metadata, standard = parser.symbol.parameters
    span = headers.declaration.span
    std_type = strip(standard.type)
    if not isinstance(std_type, CompositeType):
        raise RefusalError(f"the standard metadata must be a struct, not {std_type}", standard.declaration.span)
    std = _standard_metadata(cx, std_type)
    for what, info in (("headers", headers), ("metadata", metadata)):
        t = strip(info.type)
        if not isinstance(t, CompositeType) or t.kind != "struct":
            raise RefusalError(f"the {what} of the parser must be a struct, not {info.type}", info.declaration.span)
    hdr = allocate(cx, "", headers.type, span, top=True)
    for leaf in values.leaves(hdr):
        if not isinstance(leaf, values.HeaderValue | values.StackValue | values.UnionValue):
            message = "the headers struct holds headers, stacks and unions only; move other fields to the metadata"
            cx.refuse(RefusalError(message, span))
            break
        if isinstance(leaf, values.HeaderValue):
            cx.program.named.add(leaf.header.index)
    meta = allocate(cx, "userMetadata", metadata.type, metadata.declaration.span)
    meta_type = strip(metadata.type)
    assert isinstance(meta_type, CompositeType)
    assert isinstance(meta, values.Aggregate)
    lists: dict[int, list[FieldRef]] = {}
    _field_lists(cx, meta_type, meta, [], lists)
    for place, (index, fields) in enumerate(lists.items()):
        cx.program.field_lists.append(FieldList(f"field_list{index}", place + 1, tuple(fields)))
    return hdr, meta, std


def _standard_metadata(cx: LowerContext, t: CompositeType) -> values.Aggregate:
    fields: list[Field] = []
    kind = HeaderType(STANDARD_METADATA, fields)
    header = new_header(cx, STANDARD_METADATA, kind, True)
    members: dict[str, values.Value] = {}
    for f in t.fields.values():
        place = FieldRef(header, add_field(fields, f.name, bits_of(f.type)))
        members[f.name] = Scalar(place, strip(f.type))
        for a in f.annotations:
            if a.name == "alias" and isinstance(a.expressions[0], ast.String):
                cx.program.aliases[a.expressions[0].text] = place
    pad(fields)
    cx.program.header_types[STANDARD_METADATA] = kind
    cx.names.add(STANDARD_METADATA)
    return values.Aggregate(t, members)


def _field_lists(
    cx: LowerContext, t: CompositeType, record: values.Aggregate, inherited: list[int], lists: dict[int, list[FieldRef]]
) -> None:
    """Lists of the metadata fields that `@field_list(…)` tags; a tag on a struct covers what is in it."""
    for f in t.fields.values():
        indices = list(inherited)
        for a in f.annotations:
            if a.name == "field_list":
                for e in a.expressions:
                    cx.checked.expression(e)
                    number = e.value.number if isinstance(e.value, EnumValue) else e.value
                    if not isinstance(number, int):
                        raise RefusalError("@field_list takes numbers known at compile time", a.span)
                    indices.append(number)
        value = record.members[f.name]
        if isinstance(value, values.Aggregate) and isinstance(strip(f.type), CompositeType):
            inner = strip(f.type)
            assert isinstance(inner, CompositeType)
            _field_lists(cx, inner, value, indices, lists)
            continue
        places = [item.of for item in flat(cx, value, NOWHERE) if isinstance(item.of, FieldRef)] if indices else []
        for index in indices:
            lists.setdefault(index, []).extend(places)


def _bind(block: values.BlockValue, arguments: list[values.Value]) -> None:
    for info, value in zip(block.symbol.parameters, arguments, strict=True):
        block.frame.bind(info.symbol, value)


def _pipeline(cx: LowerContext, name: str, block: values.BlockValue) -> None:
    cx.block = name
    cx.pipeline = DraftPipeline(name, [], span=block.declaration.span)
    cx.program.pipelines.append(cx.pipeline)
    cx.frame, cx.out = block.frame, cx.pipeline.body
    control_body(cx, block)
