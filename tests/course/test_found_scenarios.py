"""The scenario that a hunt for a student's algorithm leaves: it imports what there is, and no check of MRC alone."""

import ast
import importlib

import pytest

from studies.hunting import found


@pytest.mark.parametrize("checks", [found.OF_MRC, found.OF_ANY], ids=["mrc", "any"])
def test_a_found_scenario_imports_what_there_is(checks: tuple[str, str, str]) -> None:
    own = f"from {checks[0]} import {checks[1]}"
    lines = [line for line in found.TEMPLATE.splitlines() if line.startswith("from ") and "{" not in line]
    for node in ast.parse("\n".join([*lines, own])).body:
        assert isinstance(node, ast.ImportFrom)
        module = importlib.import_module(node.module or "")
        for name in node.names:
            assert hasattr(module, name.name), f"{node.module} has no {name.name}"
    assert ("must_hold" in checks[2]) == (checks is found.OF_MRC)
