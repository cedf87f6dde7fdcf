"""The lab is a clone, not a package: only an installation in place (editable) is built, which is what `./lab` asks for.

A wheel would lack the P4 programs, plans, C sources and scripts that the Python code uses from the folder it lies in.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class EditableOnly(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """RuntimeError for any build but the one of `pip install --editable`."""
        if version != "editable":
            raise RuntimeError("mrclab is a clone, not a package: clone the repository and run ./lab install")
