"""Registered memory. Looked at for every packet, so a compiled class and no dataclass."""

from __future__ import annotations

from collections.abc import Callable

from endpoint.landed import Landed


class MemoryRegion:
    """The numbers that a peer needs to write to registered memory, and its owner's view.

    `buffer` is None where payload is counted: nothing is kept of what arrives, but `landed` notes where. `sink` puts
    what arrives at an offset instead of the buffer, and is False where it cannot.
    """

    def __init__(
        self,
        va: int,
        length: int,
        lkey: int,
        rkey: int,
        buffer: memoryview | None,
        *,
        sink: Callable[[int, memoryview], bool] | None = None,
    ) -> None:
        self.va = va
        self.length = length
        self.lkey = lkey
        self.rkey = rkey
        self.buffer = buffer
        self.landed = Landed()
        self.sink = sink
