"""A bundle of a library judged again, from what the cases said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conform.library.cases import judged
from conform.result import Result
from conform.rule import load

OUTPUT = "{}-{}.txt"
"""Case and seed."""


def again(manifest: Mapping[str, Any], held: Mapping[str, bytes]) -> list[Result]:
    """The results of the rules that the bundle has."""
    outputs: dict[str, list[str]] = {}
    for name, data in held.items():
        outputs.setdefault(name.rpartition("-")[0], []).append(data.decode(errors="replace"))
    return [judged(rule, outputs) for rule in load(["library"]) if rule.id in manifest["rules"]]
