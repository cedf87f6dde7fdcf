"""The answer to one Read, on its way to a client that may be slow."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from switch.p4rt.errors import exhausted

AHEAD_BYTES = 4 << 20
"""Of an answer, collected before its client takes any: all of most answers."""
PATIENCE_S = 10.0
"""A device waits so long for the client of a longer answer, at most; it earns a second with each PACE_BYTES taken."""
PACE_BYTES = 1 << 20


class Answer:
    """Messages in their order. No more than AHEAD_BYTES and one message wait here, however many a Read asks for.

    `add` to a longer answer waits until the client has taken the first of it. Writes to the device wait as well, so a
    client that is too slow loses its answer.
    """

    def __init__(self, send: Callable[[bytes], Awaitable[Any]]) -> None:
        self._send = send
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._left_s = PATIENCE_S

    async def add(self, message: bytes) -> None:
        """Raises P4RuntimeError (RESOURCE_EXHAUSTED) when the client is too slow."""
        self._waiting.append(message)
        self._size += len(message)
        while self._size > AHEAD_BYTES:
            began_s = time.monotonic()
            first = self._waiting.popleft()
            try:
                await asyncio.wait_for(self._send(first), max(self._left_s, 0.0))
            except TimeoutError:
                raise exhausted(
                    f"the client of a Read must take at least {PACE_BYTES} bytes per second of an answer that is longer"
                    f" than {AHEAD_BYTES} bytes; ask for fewer entities"
                ) from None
            self._size -= len(first)
            earned_s = len(first) / PACE_BYTES - (time.monotonic() - began_s)
            self._left_s = min(self._left_s + earned_s, PATIENCE_S)

    async def flush(self) -> None:
        """Send the rest, at the client's pace."""
        while self._waiting:
            await self._send(self._waiting.popleft())
