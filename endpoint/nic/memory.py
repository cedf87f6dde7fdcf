"""Registered memory: where packets of peers may be placed, and nowhere else."""

from __future__ import annotations

from random import Random

from endpoint.nic import codec
from endpoint.transport import MemoryRegion

VA_START = 0x1_0000_0000
VA_ALIGN = 1 << 21


class MemoryTable:
    """The regions of one NIC by rkey. Virtual addresses never overlap and are not used twice."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._va = VA_START
        self.writable: dict[int, MemoryRegion] = {}
        """Regions that peers may write to, by rkey: what the responder looks in for every packet."""
        self._regions: dict[int, MemoryRegion] = {}

    def register(self, buffer: bytearray | memoryview, remote_write: bool) -> MemoryRegion:
        """Raises `ValueError` for a buffer that is empty, read-only or not contiguous."""
        view = memoryview(buffer)
        if view.readonly or not view.c_contiguous or view.nbytes == 0:
            raise ValueError("registered memory must be a writable, contiguous buffer of at least one byte")
        view = view.cast("B")
        key = self._rng.getrandbits(32)
        while key in self._regions:
            key = self._rng.getrandbits(32)
        region = MemoryRegion(self._va, view.nbytes, key, key, view)
        self._va += -(-view.nbytes // VA_ALIGN) * VA_ALIGN + VA_ALIGN
        self._regions[key] = region
        if remote_write:
            self.writable[key] = region
        return region

    def deregister(self, region: MemoryRegion) -> None:
        """Raises `ValueError` if the region is not registered here."""
        if self._regions.pop(region.lkey, None) is None:
            raise ValueError(f"no region with lkey {region.lkey:#x} is registered")
        self.writable.pop(region.rkey, None)

    def holds(self, region: MemoryRegion) -> bool:
        """Whether this very region is registered here."""
        return self._regions.get(region.lkey) is region


def place(region: MemoryRegion, at: int, frame: bytes | memoryview, start: int, size: int) -> None:
    """Copy `size` bytes of a frame, from `start` on, to byte `at` of the region; the caller has seen that they fit."""
    if codec.PLACE is not None:
        codec.PLACE(region.buffer, at, frame, start, size)
    else:
        region.buffer[at : at + size] = memoryview(frame)[start : start + size]
