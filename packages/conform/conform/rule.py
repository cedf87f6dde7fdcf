"""The rule matrix as data: one TOML file per role in `rules/`, read and checked whole.

[[rule]]
id = "RSP-001"
rule = "One sentence."
source = "OCP MRC 6.3.1 (S-CN2)"
level = "must"            # must, should or open: of an open rule, the device's choice is recorded and not judged
group = "basic"           # basic, all or hunt
tests = ["nic.receiving:in_order"]
fails = "What a device that breaks the rule looks like."
disagree = "Readers' disagreement, where there is any."
contract = "docs/reference/dialects.md"   # the page that defines it, if any
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("rules")
LEVELS = ("must", "should", "open")
GROUPS = ("basic", "all", "hunt")
ROLES = ("requester", "responder", "wire", "fabric", "hunt", "switch", "library")
"""A role per file. `wire` holds for both ends of a connection, `fabric` for what a NIC does with SRv6 and trimming,
`hunt` for a NIC under random schedules."""
ID = re.compile(r"[A-Z]{3}-\d{3}")


class RuleError(ValueError):
    """The matrix breaks one of its rules; the message names the file, the rule and the valid choices."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One normative rule that a device can be seen to keep or break."""

    id: str
    role: str
    rule: str
    source: str
    level: str
    group: str
    tests: tuple[str, ...]
    fails: str
    disagree: str = ""
    contract: str = ""

    def functions(self) -> list[Callable[[Any], str | None]]:
        """The tests, imported. Raises `RuleError` for one that does not exist."""
        return [function(name, self.id) for name in self.tests]


def function(name: str, of: str) -> Callable[[Any], str | None]:
    """The test MODULE:FUNCTION below `conform`."""
    module, _, called = name.partition(":")
    try:
        found = getattr(import_module(f"conform.{module}"), called)
    except (ImportError, AttributeError) as error:
        raise RuleError(f"{of}: no test {name}: {error}") from None
    assert callable(found), name
    return found  # type: ignore[no-any-return]


def load(roles: Sequence[str] = ROLES, folder: Path = FOLDER) -> list[Rule]:
    """The rules of these roles, in the order of their files. Raises `RuleError`."""
    found: list[Rule] = []
    for role in roles:
        file = folder / f"{role}.toml"
        if file.is_file():
            found += [read(row, role) for row in tomllib.loads(file.read_text()).get("rule", [])]
    twice = {rule.id for rule in found if sum(other.id == rule.id for other in found) > 1}
    if twice:
        raise RuleError(f"ids must be unique; twice: {', '.join(sorted(twice))}")
    return found


def read(row: dict[str, Any], role: str) -> Rule:
    """One row of a file."""
    name = row.get("id", "?")
    known = {field.name for field in fields(Rule)} - {"role"}
    if wrong := set(row) - known:
        raise RuleError(f"{role}.toml: {name} has {', '.join(sorted(wrong))}; valid: {', '.join(sorted(known))}")
    if missing := {"id", "rule", "source", "level", "group", "tests", "fails"} - {key for key in row if row[key]}:
        raise RuleError(f"{role}.toml: {name} lacks {', '.join(sorted(missing))}")
    if not ID.fullmatch(name):
        raise RuleError(f"{role}.toml: an id must be like RSP-012 (got {name!r})")
    for key, valid in (("level", LEVELS), ("group", GROUPS)):
        if row[key] not in valid:
            raise RuleError(f"{role}.toml: {key} of {name} must be one of {', '.join(valid)} (got {row[key]!r})")
    return Rule(role=role, **{**row, "tests": tuple(row["tests"])})


def chosen(rules: Iterable[Rule], group: str, only: Sequence[str] = ()) -> list[Rule]:
    """Rules of the group, where `all` includes `basic`; with `only`, those whose id begins with one of these words."""
    groups = {"basic": ("basic",), "all": ("basic", "all")}.get(group, (group,))
    every = list(rules)
    for word in only:
        if not any(rule.id.startswith(word) for rule in every):
            raise RuleError(f"--only must name rules, such as {every[0].id} or {every[0].id[:3]} (got {word})")
    if only:
        return [rule for rule in every if rule.id.startswith(tuple(only))]
    return [rule for rule in every if rule.group in groups]
