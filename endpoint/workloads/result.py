"""The results of a workload: totals of its rank, and a table as other tools print it."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Tally:
    """Totals of this rank. Verified and wrong bytes are those received; the others those sent."""

    messages_posted: int = 0
    messages_completed: int = 0
    messages_failed: int = 0
    bytes: int = 0
    bytes_verified: int = 0
    bytes_wrong: int = 0
    verify_ns: int = 0
    rounds: int = 0


@dataclass(slots=True)
class ResultTable:
    """A result as perftest or nccl-tests would print it."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows]}
