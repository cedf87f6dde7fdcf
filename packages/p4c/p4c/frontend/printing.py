"""Every intermediate form as text (`--print`)."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from p4c.frontend.check.types import Type
from p4c.frontend.compilation import Compilation
from p4c.frontend.diagnostics import brief
from p4c.frontend.parse import ast
from p4c.model import Program
from p4c.model.pipelines import Conditional, Node, Table


def intermediate(form: str, path: Path, include_paths: Sequence[Path], definitions: Mapping[str, str]) -> str:
    """One of the forms that `cli.FORMS` names. Raises CompileError if a phase before it has errors."""
    run = Compilation(path, include_paths, definitions)
    if form == "tokens":
        run.read()
        assert run.tokens is not None
        return "\n".join(f"{t.span}\t{t.kind}\t{t.text}" for t in run.tokens)
    if form == "ast":
        run.parse()
        assert run.program is not None
        return tree(run.program, typed=False)
    if form == "types":
        run.check()
        assert run.program is not None
        return tree(run.program, typed=True)
    if form == "ir":
        run.lower()
        assert run.lowered is not None
        return listing(run.lowered)
    compiled = run.run()
    return compiled.json_text if form == "json" else compiled.p4info_text


# --- the syntax tree -----------------------------------------------------------------------------------------------


def tree(node: ast.Node, typed: bool, indent: int = 0, label: str = "") -> str:
    """A node with its plain attributes in one line, its children below; `typed` adds what the checker found."""
    head = f"{'  ' * indent}{label}{type(node).__name__.removesuffix('Decl')}"
    children: list[tuple[str, ast.Node]] = []
    for name in (f.name for f in fields(node)):
        value = getattr(node, name, None)
        if name == "span" or (isinstance(node, ast.Expression) and name in ("type", "value", "target")):
            continue
        nodes = _nodes(value)
        if nodes:
            children.extend((f".{name} ", child) for child in nodes)
        elif value not in (None, [], {}, ""):
            head += f" {name}={_plain(value)}"
    if typed and isinstance(node, ast.Expression):
        head += f" : {node.type}" if isinstance(node.type, Type) else ""
        head += f" = {_value(node.value)}" if node.value is not None else ""
    lines = [f"{head}  @{node.span.line}:{node.span.column}"]
    lines += [tree(child, typed, indent + 1, name) for name, child in children]
    return "\n".join(lines)


def _nodes(value: object) -> list[ast.Node]:
    if isinstance(value, ast.Node):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [n for item in value for n in _nodes(item)]
    return []


def _value(value: object) -> str:
    return brief(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _plain(value: object) -> str:
    if not isinstance(value, list | dict):
        return repr(value) if not isinstance(value, int) else _value(value)
    items = value if isinstance(value, list) else list(value) if isinstance(value, dict) else []
    return "[" + ", ".join(str(i[0]) if isinstance(i, tuple) else str(i) for i in items) + "]"


# --- the lowered program -------------------------------------------------------------------------------------------


def listing(program: Program) -> str:
    """Headers, states, actions and the pipelines' graphs, in the notation of P4 where there is one."""
    lines: list[str] = []
    for t in program.header_types:
        lines.append(f"header_type {t.name}")
        lines += [f"  {f.name}: {'varbit' if f.varbit else f.width_bits}" for f in t.fields]
    lines += [f"{'metadata' if h.metadata else 'header'} {h.name}: {h.type.name}" for h in program.headers]
    for s in program.parser.states:
        lines.append(f"state {s.name}")
        lines += [f"  {o}" for o in s.operations]
        if s.key:
            lines.append(f"  select {', '.join(str(part.source) for part in s.key)}")
        lines += [f"  {t}" for t in s.transitions]
        lines.append(f"  default -> {s.default or 'accept'}")
    for a in program.actions:
        lines.append(f"action {a.name}({', '.join(f'{p.name}: bit<{p.width_bits}>' for p in a.parameters)})")
        lines += [f"  {i}: {p}" for i, p in enumerate(a.primitives)]
    for pipeline in (program.ingress, program.egress):
        lines.append(f"pipeline {pipeline.name} -> {pipeline.init or 'end'}")
        for node in pipeline.nodes.values():
            lines += _node(node)
    lines.append(f"deparser {', '.join(h.name for h in program.deparser.order)}")
    return "\n".join(lines)


def _node(node: Node) -> list[str]:
    if isinstance(node, Table):
        following = {"__HIT__": node.next_hit, "__MISS__": node.next_miss} if node.by_hit else node.next_by_action
        keys = ", ".join(f"{k.target}: {k.match}" for k in node.keys)
        return [f"  table {node.name} [{keys}]", *(f"    {label} -> {to or 'end'}" for label, to in following.items())]
    assert isinstance(node, Conditional)  # the compiler makes no other
    ways = f"    -> {node.if_true or 'end'}, else {node.if_false or 'end'}"
    return [f"  if {node.name} {node.expression}", ways]
