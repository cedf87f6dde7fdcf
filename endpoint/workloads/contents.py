"""The contents of messages, made so that a receiver can check every byte.

A pool of random bytes, the same on every rank for the same seed. A message is a window into it that starts where the
message's sender, queue pair and number say, so neighbours differ and a stale or misplaced message never
looks right. Senders post straight from the pool; receivers compare in place (one memcmp).
"""

from __future__ import annotations

import random

from endpoint.transport import Transport

_PIECE_BYTES = 1 << 24
_SHIFTS = 65_521  # a prime: numbers that share a memory slot never share a window


class Contents:
    """The pool of one rank: the same bytes on every rank for one seed, sent from and compared with."""

    def __init__(self, transport: Transport, seed: int, message_bytes_max: int) -> None:
        source, size = random.Random(f"contents {seed}"), message_bytes_max + _SHIFTS
        self._pool = bytearray()
        while len(self._pool) < size:  # `randbytes` has a limit
            self._pool += source.randbytes(min(_PIECE_BYTES, size - len(self._pool)))
        self._view = memoryview(self._pool)
        self._transport = transport
        self.region = transport.register_memory(self._pool, remote_write=False)

    def offset(self, sender: int, qp: int, number: int) -> int:
        """Where in `region` that message begins."""
        return (number * 7919 + qp * 104_729 + sender * 1_299_709) % _SHIFTS

    def matches(self, memory: bytearray, at: int, sender: int, qp: int, number: int, length: int) -> bool:
        """Whether `memory` holds exactly that message at byte `at`."""
        start = self.offset(sender, qp, number)
        return memory.startswith(self._view[start : start + length], at)

    def close(self) -> None:
        self._transport.deregister_memory(self.region)
