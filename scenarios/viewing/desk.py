"""What the page may ask of the lab's process: a fixed set of operations, whose arguments nobody has checked before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPERATIONS: Mapping[str, tuple[str, ...]] = {"state": ()}
"""Every operation with the names of its arguments."""


class Desk:
    """Answers the page's server. Complaints are exceptions, whose messages people read."""

    def do(self, request: Mapping[str, Any]) -> Any:
        """Carries out one request."""
        op = request.get("op")
        if op not in OPERATIONS:
            raise ValueError(f"no operation {str(op)[:40]!r}: valid are {', '.join(OPERATIONS)}")
        return getattr(self, f"_{op}")(request)

    def _state(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What can be done here."""
        return {"breakable": False}
