"""The result of a compilation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled program: BMv2 JSON as a document, P4Info as protobuf text, and printed warnings."""

    json: dict[str, Any]
    p4info_text: str
    warnings: str = ""

    @property
    def json_text(self) -> str:
        return json.dumps(self.json, indent=1) + "\n"
