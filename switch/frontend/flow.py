"""Walks over the structured control flow of the lowered program."""

from __future__ import annotations

from collections.abc import Iterator

from switch.frontend import ir


def bodies(s: ir.Stmt) -> list[list[ir.Stmt]]:
    """The statement lists directly inside `s`."""
    match s:
        case ir.Branch():
            return [s.then, s.otherwise]
        case ir.Region():
            return [s.body]
        case ir.Apply():
            return [b for b in (s.hit, s.miss, s.default, *s.cases.values()) if b is not None]
    return []


def walk(statements: list[ir.Stmt]) -> Iterator[ir.Stmt]:
    """All statements, those inside others included."""
    for s in statements:
        yield s
        for body in bodies(s):
            yield from walk(body)


def leaves_early(statements: list[ir.Stmt]) -> bool:
    """Whether a Leave in `statements` would go beyond them: a Region inside ends its own."""
    return any(
        isinstance(s, ir.Leave) or (not isinstance(s, ir.Region) and any(map(leaves_early, bodies(s))))
        for s in statements
    )
