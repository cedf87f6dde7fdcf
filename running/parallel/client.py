"""A host of a world in parts, as every process commands it: its own process carries the operation out, all hear it."""

from __future__ import annotations

from typing import Any

from common.client import ControlError, ControlTimeoutError
from running.parallel.communicator import Ranks, portable
from running.worlds.host import ANSWER_S, SimulatedHost
from running.worlds.virtual_time import VirtualTime


class PartClient:
    """`endpoint.group.AgentClient`. All processes make the same calls in the same order."""

    def __init__(
        self, name: str, owner: int, own: SimulatedHost | None, time: VirtualTime, ranks: Ranks, pace: float
    ) -> None:
        """`own` is the host where this process has it; `owner` is the rank of the process that does."""
        self._name = name
        self._owner = owner
        self._own = own
        self._time = time
        self._ranks = ranks
        self._answer_s = ANSWER_S * pace
        self._sent = 0
        self._there: dict[int, int | Exception] = {}

    def send(self, op: str, **arguments: Any) -> int:
        self._sent += 1
        if self._own is not None:
            try:
                self._there[self._sent] = self._own.send(op, **arguments)
            except Exception as error:  # all processes are told by `result`
                self._there[self._sent] = portable(error)
        return self._sent

    def result(self, ident: int, timeout_s: float | None = None) -> Any:
        limit_s = self._answer_s if timeout_s is None else timeout_s
        limit_ns = self._time.now_ns + round(limit_s * 1e9)
        answer: dict[str, Any] | Exception | None = None

        def happened() -> bool:
            nonlocal answer
            answer = self._ranks.comm.bcast(self._take(ident), root=self._owner)
            return answer is not None

        if not self._time.pass_until(happened, limit_ns):
            raise ControlTimeoutError(f"{self._name} did not answer within its virtual time", limit_s)
        if isinstance(answer, Exception):
            raise answer
        assert answer is not None
        if not answer["ok"]:
            raise ControlError(answer["error"])
        return answer["result"]

    def _take(self, ident: int) -> dict[str, Any] | Exception | None:
        if self._own is None:
            return None
        there = self._there[ident]
        return there if isinstance(there, Exception) else self._own.take(there)
