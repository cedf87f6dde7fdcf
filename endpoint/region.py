"""Registered memory. Looked at for every packet, so a compiled class and no dataclass."""

from __future__ import annotations

from collections.abc import Callable


class Landed:
    """Ranges of bytes that have arrived and were not taken: sorted, apart from each other, at most one per gap.

    Where payload is counted and not kept, each packet's range is noted when the packet is placed, and each message's
    range is taken once it has to be whole. So a byte that never came, came twice or elsewhere is found, as a receiver
    that compares contents finds it.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._twice: list[tuple[int, int]] = []
        """Ranges of packets of which a byte was there already."""

    def __len__(self) -> int:
        """Ranges that are kept."""
        return len(self._starts) + len(self._twice)

    def add(self, start: int, end: int) -> None:
        """Note that the bytes from `start` to before `end` have arrived."""
        starts, ends = self._starts, self._ends
        place = self._behind(start)
        touches = place > 0 and ends[place - 1] >= start
        meets = place < len(starts) and starts[place] <= end
        if (touches and ends[place - 1] > start) or (meets and starts[place] < end):
            self._twice.append((start, end))
            return
        if touches and meets:
            ends[place - 1] = ends.pop(place)
            starts.pop(place)
        elif touches:
            ends[place - 1] = end
        elif meets:
            starts[place] = start
        else:
            starts.insert(place, start)
            ends.insert(place, end)

    def take(self, start: int, end: int) -> bool:
        """Whether each byte from `start` to before `end` has arrived once; then and otherwise they are to come anew."""
        once = self._forget_twice(start, end)
        starts, ends = self._starts, self._ends
        place = self._behind(start) - 1
        if place < 0 or ends[place] < end:
            self._forget(start, end)
            return False
        first, last = starts[place], ends[place]
        if first == start and last == end:
            starts.pop(place)
            ends.pop(place)
        elif first == start:
            starts[place] = end
        else:
            ends[place] = start
            if last > end:
                starts.insert(place + 1, end)
                ends.insert(place + 1, last)
        return once

    def _behind(self, start: int) -> int:
        """How many ranges begin at `start` or earlier; here and not by `bisect`, which compiled code calls by name."""
        starts = self._starts
        low, high = 0, len(starts)
        while low < high:
            middle = low + high >> 1
            if starts[middle] <= start:
                low = middle + 1
            else:
                high = middle
        return low

    def _forget_twice(self, start: int, end: int) -> bool:
        """Whether no byte of a range came twice; bytes that did are forgotten."""
        if not self._twice:
            return True
        before = sum(last - first for first, last in self._twice)
        self._twice = _without(self._twice, start, end)
        return sum(last - first for first, last in self._twice) == before

    def _forget(self, start: int, end: int) -> None:
        """Cut a range out of all ranges."""
        kept = _without(list(zip(self._starts, self._ends, strict=True)), start, end)
        self._starts = [first for first, _ in kept]
        self._ends = [last for _, last in kept]


def _without(ranges: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """The rest of ranges when the bytes from `start` to before `end` are cut out."""
    parts = [part for first, last in ranges for part in ((first, min(last, start)), (max(first, end), last))]
    return [(first, last) for first, last in parts if first < last]


class MemoryRegion:
    """The numbers that a peer needs to write to registered memory, and its owner's view.

    `buffer` is None where payload is counted: nothing is kept of what arrives, but `landed` notes where. `sink` puts
    what arrives at an offset instead of the buffer, and is False where it cannot. Queue pairs of the same `domain`
    reach it.
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
        domain: int = 0,
    ) -> None:
        self.va = va
        self.length = length
        self.lkey = lkey
        self.rkey = rkey
        self.buffer = buffer
        self.landed = Landed()
        self.sink = sink
        self.domain = domain

    @classmethod
    def of_bytes(cls, data: bytes) -> MemoryRegion:
        """Memory of a write that brought its bytes along. Its keys are no region's, and no packet has them."""
        return cls(0, len(data), -1, -1, memoryview(bytearray(data)))
