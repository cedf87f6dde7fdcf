"""Every intermediate form as text (`--print`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from switch.frontend import ir
from switch.frontend.check.types import Type
from switch.frontend.compilation import Compilation
from switch.frontend.emit.graph import Graph, flatten
from switch.frontend.parse import ast


def intermediate(form: str, path: Path, include_paths: Sequence[Path], definitions: Mapping[str, str]) -> str:
    """One of the forms that `cli.FORMS` names. Raises CompileError if a phase before it has errors."""
    run = Compilation(path, include_paths, definitions)
    if form == "tokens":
        run.read()
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
        return listing(run.lowered, run.graphs)
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
        found = _nodes(value)
        if found:
            children.extend((f".{name} ", child) for child in found)
        elif value not in (None, [], {}, ""):
            head += f" {name}={value!r}" if not isinstance(value, list | dict) else f" {name}={_plain(value)}"
    if typed and isinstance(node, ast.Expression):
        head += f" : {node.type}" if isinstance(node.type, Type) else ""
        head += f" = {node.value}" if node.value is not None else ""
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


def _plain(value: object) -> str:
    items = value if isinstance(value, list) else list(value) if isinstance(value, dict) else []
    return "[" + ", ".join(str(i[0]) if isinstance(i, tuple) else str(i) for i in items) + "]"


# --- the lowered program -------------------------------------------------------------------------------------------


def listing(program: ir.Program, graphs: list[Graph]) -> str:
    """Headers, states, actions and the pipelines' graphs, in the notation of P4 where there is one."""
    lines: list[str] = []
    for t in program.header_types.values():
        lines.append(f"header_type {t.name}")
        lines += [f"  {name}: {'varbit' if bits is None else bits}" for name, bits, _ in t.fields]
    for h in program.headers.values():
        lines.append(f"{'metadata' if h.metadata else 'header'} {h.name}: {h.type}")
    for s in program.states:
        lines.append(f"state {s.name}")
        lines += [f"  {_parser_op(o)}" for o in s.ops]
        if s.key:
            lines.append(f"  select {', '.join(map(str, s.key))}")
        for transition in s.transitions:
            value = transition.kind if not isinstance(transition.value, int) else f"{transition.value:#x}"
            mask = "" if transition.mask is None else f" &&& {transition.mask:#x}"
            lines.append(f"  {value}{mask} -> {transition.target or 'accept'}")
    for a in program.actions:
        parameters = ", ".join(f"{name}: {t}" for name, t, _ in a.parameters)
        lines.append(f"action {a.name}({parameters})")
        lines += [f"  {i}: {_primitive(p)}" for i, p in enumerate(flatten(a.body))]
    for pipeline, graph in zip(program.pipelines, graphs, strict=True):
        lines.append(f"pipeline {pipeline.name} -> {graph.first or 'end'}")
        for node in graph.tables:
            keys = ", ".join(f"{k.target}: {k.match}" for k in node.table.keys)
            lines.append(f"  table {node.name} [{keys}]")
            lines += [f"    {label} -> {target or 'end'}" for label, target in node.next.items()]
        for test in graph.conditions:
            lines.append(f"  if {test.name} {test.condition}")
            lines.append(f"    -> {test.true_next or 'end'}, else {test.false_next or 'end'}")
    lines.append(f"deparser {', '.join(program.deparser)}")
    return "\n".join(lines)


def _primitive(p: ir.Primitive) -> str:
    if p.op == "assign":
        return f"{p.parameters[0]} = {p.parameters[1]}"
    return f"{p.op}({', '.join(map(str, p.parameters))})"


def _parser_op(o: ir.ParserOp) -> str:
    if o.inner is not None:
        return _primitive(o.inner)
    if o.op == "set":
        return f"{o.parameters[0]} = {o.parameters[1]}"
    return f"{o.op}({', '.join(map(str, o.parameters))})"
