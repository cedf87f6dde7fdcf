"""The contents of messages, made so that a receiver can check every byte.

A pool of random bytes, the same on every rank for the same seed. A message is a window into it that starts where the
message's sender, queue pair and number say, so neighbours differ and a stale or misplaced message never
looks right. Senders post straight from the pool; receivers compare in place (one memcmp).

Where payload is counted, there is no pool: receivers check which bytes have arrived where.
"""

import random

from common.seeds import Purpose, derive
from endpoint.transport import MemoryRegion, Transport
from endpoint.workloads.link import PeerLink
from endpoint.workloads.workload import Workload

_PIECE_BYTES = 1 << 24
_SHIFTS = 65_521  # a prime: numbers that share a memory slot never share a window
_SHARED_BYTES_MAX = 1 << 24
_shared: dict[tuple[int, int], bytearray] = {}
"""The latest pool by seed and size, if it is small. It is never written to, so the hosts of one process share it."""


def _pool(seed: int, size: int) -> bytearray:
    pool = _shared.get((seed, size))
    if pool is None:
        source, pool = random.Random(derive(seed, Purpose.CONTENTS)), bytearray()
        while len(pool) < size:  # `randbytes` has a limit
            pool += source.randbytes(min(_PIECE_BYTES, size - len(pool)))
        if size <= _SHARED_BYTES_MAX:
            _shared.clear()
            _shared[seed, size] = pool
    return pool


class Contents:
    """The pool of one rank: the same bytes on every rank for one seed, sent from and compared with."""

    region: MemoryRegion

    def __init__(self, transport: Transport, seed: int, message_bytes_max: int) -> None:
        """No memory is taken before `open`."""
        self.size = message_bytes_max + _SHIFTS
        self._seed = seed
        self._transport = transport
        self._counted = transport.counted
        self._opened = False

    def open(self) -> None:
        """Make the pool and register it. Raises MemoryError."""
        if self._counted:
            self.region = self._transport.register_counted(self.size, remote_write=False)
        else:
            pool = _pool(self._seed, self.size)
            self._view = memoryview(pool)
            self.region = self._transport.register_memory(pool, remote_write=False)
        self._opened = True

    @property
    def common_bytes(self) -> int:
        """The part of `size` that the hosts of one process share."""
        return self.size if self.size <= _SHARED_BYTES_MAX else 0

    def offset(self, sender: int, qp: int, number: int) -> int:
        """Where in `region` that message begins."""
        return (number * 7919 + qp * 104_729 + sender * 1_299_709) % _SHIFTS

    def matches(self, link: PeerLink, at: int, sender: int, qp: int, number: int, length: int) -> bool:
        """Whether the link's inbox holds exactly that message at byte `at`.

        Where payload is counted: whether each of its bytes has arrived there, once.
        """
        if self._counted:
            return link.take(at, length)
        start = self.offset(sender, qp, number)
        return link.inbox.startswith(self._view[start : start + length], at)

    def close(self) -> None:
        if self._opened:
            self._transport.deregister_memory(self.region)


class ContentsWorkload(Workload):
    """A kind derived from it makes `_contents` before its set-up, which takes the memory of the pool if allowed."""

    _contents: Contents

    def memory_bytes(self) -> int:
        return self._contents.size

    def common_bytes(self) -> int:
        return self._contents.common_bytes

    def register(self) -> None:
        self._contents.open()

    def release(self) -> None:
        self._contents.close()
