"""A wheel of the compiler brings the lab's ground floor, which it imports; in place, that is the clone's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMMON = Path(__file__).resolve().parents[2] / "common"


class WithGroundFloor(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"] |= {
                str(file): f"common/{file.relative_to(COMMON)}" for file in COMMON.rglob("*.py")
            }
