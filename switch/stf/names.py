"""Finds what a statement names: the full dotted name, or any end of it that is unique."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from p4c.model import Action
from p4c.model.pipelines import Key, Table
from switch.stf.statements import StfError

T = TypeVar("T")


def find(objects: Mapping[str, T], name: str, what: str) -> T:
    if name in objects:
        return objects[name]
    name = name.lstrip(".")
    ends = [n for n in objects if n == name or n.endswith("." + name)]
    if len(ends) == 1:
        return objects[ends[0]]
    listed = ", ".join(sorted(ends or objects)) or "none"
    problem = "is not unique" if ends else "does not exist"
    raise StfError(f"{what} {name!r} {problem}; there are: {listed}")


def by_name(objects: Iterable[T]) -> dict[str, T]:
    return {getattr(o, "name"): o for o in objects}  # noqa: B009 - the objects share only this attribute


def find_action(table: Table, name: str) -> Action:
    return find({a.name: a for a in table.actions}, name, f"table {table.name}: action")


def find_key(table: Table, name: str) -> Key:
    """Match fields are also found with BMv2's escapes: `a$1.b` for `a[1].b`, and a trailing `$valid$` left out."""
    keys: dict[str, Key] = {}
    for key in table.keys:
        keys[key.name] = key
        keys.setdefault(key.name.removesuffix("$"), key)
        keys.setdefault(key.name.removesuffix(".$valid$").removesuffix(".isValid()") + ".valid", key)
    for candidate in (name, name.replace("$", "[", 1).replace(".", "].", 1)):
        try:
            return find(keys, candidate, "")
        except StfError:
            continue
    raise StfError(
        f"table {table.name} has no match field {name!r}; there are: {', '.join(k.name for k in table.keys)}"
    )
