"""The fields that a journal line of each kind must have; more are allowed (docs/contracts.md, "Journal")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LINE: Mapping[str, type] = {"t_ns": int, "node": str, "kind": str}
BY_KIND: Mapping[str, Mapping[str, type]] = {
    "ev": {"ev": int, "new": str},
    "fault": {"verb": str, "target": str, "state": str},
    "message": {"state": str, "peer": str, "message": int, "end_ns": int},
    "phase": {"name": str, "state": str},
    "transfer": {"peer": str, "bytes": int},
}
SAMPLES: Mapping[str, Mapping[str, type]] = {"qps": {"qp": int}, "ports": {"port": int}}
"""Of a `sample` line: its lists, and what each of their objects holds."""


def fault_of(line: Any) -> str:
    """Describe the error in a line; "" if the line is valid."""
    if not isinstance(line, dict):
        return f"a journal line must be an object (got {type(line).__name__})"
    wrong = _missing(line, LINE) or _missing(line, BY_KIND.get(line["kind"], {}))
    if wrong or line["kind"] != "sample":
        return wrong
    for name, fields in SAMPLES.items():
        parts = line.get(name, [])
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            return f"'{name}' must be a list of objects"
        wrong = next((found for part in parts if (found := _missing(part, fields))), "")
        if wrong:
            return f"in '{name}', {wrong}"
    return ""


def _missing(line: Mapping[str, Any], fields: Mapping[str, type]) -> str:
    for key, kind in fields.items():
        if not isinstance(line.get(key), kind):
            return f"'{key}' must be of type {kind.__name__} (got {line.get(key)!r:.40})"
    return ""
