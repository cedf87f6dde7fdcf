"""`docs/reference/api.md`: every door with its names, their signatures and docstrings, read from the sources.

    .venv/bin/python -m tests.helpers.api_page

writes the page.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.helpers.doors import ROOT, door, modules

PAGE = ROOT / "docs" / "reference" / "api.md"
HEAD = """# What rooms offer each other

Rooms take from each other only what a *door* names: the `__all__` of a room, and of each module or folder that such an
`__all__` names in turn (`ARCHITECTURE.md`, "Doors"). `python -m tests.helpers.api_page` makes this page of the sources,
and a test compares the two.
"""
WIDTH = 148
VALUE_MAX = 60
"""Longer values of constants are left out."""


class Thing(NamedTuple):
    """A name that a door offers: how it is written, and what its docstring says."""

    shown: str
    told: str


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text())


def statements(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    """The statements of a module, those below `if` included, each with the one after it."""
    for node, after in zip(body, [*body[1:], None], strict=True):
        yield node, after
        if isinstance(node, ast.If):
            yield from statements([*node.body, *node.orelse])


def thing(module: str, name: str) -> Thing:
    """What `name` is in `module`, wherever it is defined. Raises LookupError for a name that is nowhere."""
    tree = tree_of(module)
    for node, after in statements(tree.body):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return Thing(f"class {name}", ast.get_docstring(node) or "")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
            return Thing(f"{name}({ast.unparse(node.args)}){returns}", ast.get_docstring(node) or "")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(one, ast.Name) and one.id == name for target in targets for one in ast.walk(target)):
                is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                text = after.value.value if is_text else ""  # type: ignore[union-attr]
                value = f" = {ast.unparse(node.value)}" if node.value is not None else ""
                return Thing(name + (value if len(value) <= VALUE_MAX else ""), inspect.cleandoc(str(text)))
    for line in ast.walk(tree):
        if isinstance(line, ast.ImportFrom) and line.module in modules():
            for alias in line.names:
                if (alias.asname or alias.name) == name:
                    return thing(str(line.module), alias.name)
    raise LookupError(f"{module}.{name}")


def paragraphs(text: str) -> str:
    """A docstring without examples, on one line."""
    return " ".join(" ".join(part.split()) for part in text.split("\n\n") if not part.startswith(" "))


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def told(name: str) -> Iterator[tuple[str, Thing]]:
    """The names of a door that are no doors, each with what it is."""
    for each in door(name, modules()) or ():
        if f"{name}.{each}" not in modules():
            yield each, thing(name, each)


def section(name: str) -> Iterator[str]:
    yield f"{'##' if '.' not in name else '###'} `{name}`\n"
    yield wrapped(paragraphs(ast.get_docstring(tree_of(name)) or "").split(". ")[0].rstrip(".:") + ".") + "\n"
    rows = [wrapped(f"- `{one.shown}`{': ' if one.told else ''}{paragraphs(one.told)}", "  ") for _, one in told(name)]
    if rows:
        yield "\n".join(rows) + "\n"


def page() -> str:
    names = sorted(name for name in modules() if door(name, modules()))
    return "\n".join([HEAD, *(part for name in names for part in section(name))])


if __name__ == "__main__":
    Path(PAGE).write_text(page())
