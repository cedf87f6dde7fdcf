"""Imports between rooms: names and modules of each room that another room's code reaches."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.helpers.tracked import files_of

ROOT = Path(__file__).parents[2]
OUTSIDE = ("tests", "docs", "locks")
DOORS_BESIDE = ("mrclab.torch",)
"""Doors that `__all__` of the package above does not name: it needs PyTorch, and `from mrclab import *` must not."""


def dotted(file: Path) -> str:
    """The import name of a file below the root; packages keep their rooms one level deeper."""
    parts = file.with_suffix("").parts
    parts = parts[2:] if parts[0] == "packages" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules(root: Path = ROOT) -> Mapping[str, Path]:
    """Every module of the product by its import name."""
    found = {}
    for path in files_of(root):
        file = path.relative_to(root)
        inside = len(file.parts) > (3 if file.parts[0] == "packages" else 1)
        if file.suffix == ".py" and inside and file.parts[0] not in OUTSIDE:
            found[dotted(file)] = path
    return found


def taken(name: str, known: Mapping[str, Path], text: str = "") -> Iterator[tuple[str, str]]:
    """Modules and names that a module takes from others: (MODULE, NAME), the name "" for the module as a whole.

    `text` is its source where that is not what its file holds.
    """
    tree = ast.parse(text or known[name].read_text())
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in known:
                    bound[alias.asname or alias.name] = whole
                elif node.module in known:
                    yield node.module, alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in known:
                    bound[alias.asname or alias.name] = alias.name
    used = dict.fromkeys(bound.values(), False)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            place = ast.unparse(node.value)
            module = bound.get(place) or _inner(place, bound, known)
            if module is not None and f"{module}.{node.attr}" not in known:
                used[module] = True
                yield module, node.attr
    yield from ((module, "") for module, attributes in used.items() if not attributes)


def _inner(place: str, bound: Mapping[str, str], known: Mapping[str, Path]) -> str | None:
    """The module that `name.module` means where `name` is bound to a package."""
    first, _, rest = place.partition(".")
    module = f"{bound.get(first)}.{rest}"
    return module if rest and module in known else None


@cache
def offered(file: Path) -> tuple[str, ...] | None:
    """What a module's `__all__` names; None where it has none."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return tuple(ast.literal_eval(node.value))
    return None


def door(module: str, known: Mapping[str, Path]) -> tuple[str, ...] | None:
    """The names that others may take of a module; None where it is no door.

    A door is a room, or a module that a door's `__all__` names, and has an `__all__`.
    """
    above, _, last = module.rpartition(".")
    named = not above or module in DOORS_BESIDE or last in (door(above, known) or ())
    return offered(known[module]) if named and module in known else None


def past_doors(name: str, known: Mapping[str, Path], text: str = "") -> list[str]:
    """What a module takes from inside another room, past its doors; `text` is as in `taken`."""
    found = []
    for module, attribute in sorted(set(taken(name, known, text))):
        if module.partition(".")[0] != name.partition(".")[0]:
            names = door(module, known)
            if names is None or (attribute and attribute not in names):
                found.append(f"{name} takes {module}{attribute and '.' + attribute}")
    return found
