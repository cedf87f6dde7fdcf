"""The door of a room: names that its `__init__` offers and imports only when they are asked for (PEP 562).

    if TYPE_CHECKING:
        from room.module import Name
    else:
        __getattr__ = lazy(__name__, __file__)

    __all__ = ["Name"]

Type checkers and readers see an ordinary import. A process loads `room.module` when it first takes `Name`, so a command
that needs one name of a room does not load all of the room.

Packages add commands and algorithms to a room by entry points.
"""

import importlib
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

__all__ = ["added", "lazy", "of_packages", "thing"]


def lazy(door: str, file: str) -> Callable[[str], Any]:
    """`__getattr__` of the module `door`, whose source is `file`: imports a name that its `if TYPE_CHECKING` imports.

    Raises AttributeError for every other name, as a module without `__getattr__` does.
    """

    @cache
    def homes() -> dict[str, str]:
        with open(file, encoding="utf-8") as source:
            return homes_of(source.read())

    def find(name: str) -> Any:
        home = None if name.startswith("__") else homes().get(name)
        if home is None:
            raise AttributeError(f"module {door!r} has no attribute {name!r}")
        return getattr(importlib.import_module(home), name)

    return find


def homes_of(source: str) -> dict[str, str]:
    """The module that defines each name which the text of a door imports below `if TYPE_CHECKING:`.

    The text is as ruff formats it; to parse every door takes ten times as long, 9 ms of a run's start.
    """
    block = source.partition("\nif TYPE_CHECKING:\n")[2].partition("\nelse:\n")[0]
    imports = re.findall(r"from (\S+) import ([^()\n]+|\([^()]*\))", block)
    return {name: module for module, names in imports for name in names.strip("()").replace(",", " ").split()}


@cache
def of_packages(group: str) -> Mapping[str, str]:
    """The entry points of a group that the clone's packages have, MODULE:NAME by name; they need not be installed."""
    import tomllib
    from pathlib import Path

    entries: dict[str, str] = {}
    for file in sorted(Path(__file__).parents[1].glob("packages/*/pyproject.toml")):
        entries |= tomllib.loads(file.read_text())["project"].get("entry-points", {}).get(group, {})
    return entries


@cache
def added(group: str) -> Mapping[str, str]:
    """The same of all packages, also of those that are installed from elsewhere: to look them up takes 0.1 s."""
    from importlib.metadata import entry_points

    return {**of_packages(group), **{each.name: each.value for each in entry_points(group=group)}}


def thing(place: str) -> Any:
    """The thing that an entry point names, MODULE:NAME."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
