"""The scenario that a hunt for a student's algorithm leaves: it imports what there is, and no check of MRC alone."""

from __future__ import annotations

import ast
import importlib

from course.seams.hunt import judged_alone
from studies.hunting import found


def test_a_found_scenario_with_other_checks_imports_what_there_is() -> None:
    text = judged_alone(found.TEMPLATE)
    assert "must_hold" not in text
    imports = "\n".join(line for line in text.splitlines() if line.startswith("from "))
    for node in ast.parse(imports).body:
        assert isinstance(node, ast.ImportFrom)
        module = importlib.import_module(node.module or "")
        for name in node.names:
            assert hasattr(module, name.name), f"{node.module} has no {name.name}"
