"""What a controller or a program sets of a NIC beside queue pairs (OCP MRC API: hints, and what mrc_ctl.h has)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from endpoint.core.attributes import VerbError
from endpoint.core.context import Context
from endpoint.core.hint import QpHint
from endpoint.core.verbs import VerbQueuePair


class Control:
    """One NIC's. `qps` are its queue pairs by number."""

    def __init__(self, context: Context, qps: Mapping[int, VerbQueuePair]) -> None:
        self._context = context
        self._qps = qps

    def _users(self, attribute: str, value: int) -> list[int]:
        return [qp.qpn for qp in self._qps.values() if qp.values[attribute] == value]

    # --- QP hints ----------------------------------------------------------------------------------------------

    def create_qp_hint(self, **attributes: Any) -> int:
        """A hint for QPs to come (their attribute `qp_hint`), by its number. Raises `VerbError` or `QueueFull`."""
        return self._context.hints.create(attributes)

    def modify_qp_hint(self, number: int, **attributes: Any) -> None:
        """Change a hint, for QPs that reach RTS from now on. Raises `VerbError`."""
        self._context.hints.modify(number, attributes)

    def query_qp_hint(self, number: int) -> QpHint:
        """Raises `VerbError` for a hint that nobody has made."""
        return self._context.hints.find(number)

    def destroy_qp_hint(self, number: int) -> None:
        """Raises `VerbError` while a QP has it."""
        if users := self._users("qp_hint", number):
            raise VerbError(f"QP hint {number} is in use by QPs {users[:5]}; destroy them first")
        self._context.hints.destroy(number)
