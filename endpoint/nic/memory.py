"""Registered memory: where packets of peers may be placed, and nowhere else."""

from collections.abc import Callable
from random import Random
from typing import Final

from endpoint.nic import codec
from endpoint.region import MemoryRegion

VA_START = 0x1_0000_0000
VA_ALIGN = 1 << 21
RECENT: Final = 16
NOTHING: Final = MemoryRegion.of_bytes(b"")
"""The local memory of a write of no bytes."""


FOREIGN: Final = MemoryRegion(0, 1 << 64, -2, -2, None)
"""Memory that is not the writer's own: a write from it fails when its turn comes."""


NO_WRITES: Final = -1
"""The domain of a queue pair that takes no remote writes."""


class Rights:
    """Which memory peers reach by a queue pair: that of its protection domain. One that is not `strict` takes a write
    to other memory all the same, and counts its packet."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self.domain = 0
        self.forgiven = 0

    def admit(self, region: MemoryRegion | None, at: int, size: int) -> bool:
        """Whether a packet's bytes may be placed, of which something is wrong: place, key, domain or no writes."""
        if self._strict or (size and (region is None or at < 0 or at + size > region.length)):
            return False
        self.forgiven += 1
        return True


class MemoryTable:
    """The regions of one NIC by rkey. Virtual addresses that the NIC chooses never overlap and are not used twice."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._va = VA_START
        self.writable: dict[int, MemoryRegion] = {}
        """Regions that peers may write to, by rkey."""
        self._recent: list[MemoryRegion | None] = [None] * RECENT
        """Some of these by the last bits of their rkeys: quicker to look in than a dictionary."""
        self._regions: dict[int, MemoryRegion] = {}

    def register(
        self,
        buffer: bytearray | memoryview,
        remote_write: bool,
        va: int | None = None,
        sink: Callable[[int, memoryview], bool] | None = None,
        domain: int = 0,
    ) -> MemoryRegion:
        """Raises `ValueError` for a buffer that is empty, read-only or not contiguous, or does not fit behind `va`."""
        view = memoryview(buffer)
        if view.readonly or not view.c_contiguous or view.nbytes == 0:
            raise ValueError("registered memory must be a writable, contiguous buffer of at least one byte")
        view = view.cast("B")
        return self._register(view, view.nbytes, remote_write, va, sink, domain)

    def register_counted(self, length: int, remote_write: bool) -> MemoryRegion:
        """Memory of `length` bytes without bytes. Raises `ValueError` for none."""
        if length < 1:
            raise ValueError(f"registered memory must have at least one byte (got {length})")
        return self._register(None, length, remote_write)

    def _register(
        self,
        view: memoryview | None,
        length: int,
        remote_write: bool,
        va: int | None = None,
        sink: Callable[[int, memoryview], bool] | None = None,
        domain: int = 0,
    ) -> MemoryRegion:
        key = self._rng.getrandbits(32)
        while key in self._regions:
            key = self._rng.getrandbits(32)
        if va is None:
            va = self._va
            self._va += -(-length // VA_ALIGN) * VA_ALIGN + VA_ALIGN
        elif not 0 <= va <= (1 << 64) - length:
            raise ValueError(f"{length} bytes from address {va:#x} on do not fit 64 bits")
        region = MemoryRegion(va, length, key, key, view, sink=sink, domain=domain)
        self._regions[key] = region
        if remote_write:
            self.writable[key] = region
        return region

    def deregister(self, region: MemoryRegion) -> None:
        """Raises `ValueError` if the region is not registered here."""
        if self._regions.pop(region.lkey, None) is None:
            raise ValueError(f"no region with lkey {region.lkey:#x} is registered")
        self.writable.pop(region.rkey, None)
        if self._recent[region.rkey % RECENT] is region:
            self._recent[region.rkey % RECENT] = None

    def written(self, rkey: int) -> MemoryRegion | None:
        """The region of this rkey if peers may write to it: what the responder asks for every packet."""
        region = self._recent[rkey % RECENT]
        if region is None or region.rkey != rkey:
            region = self.writable.get(rkey)
            if region is not None:
                self._recent[rkey % RECENT] = region
        return region

    def holds(self, region: MemoryRegion) -> bool:
        """Whether this very region is registered here, or of bytes that came with their write."""
        return region.lkey == -1 or self._regions.get(region.lkey) is region


def place(region: MemoryRegion, at: int, frame: bytes | memoryview, start: int, size: int) -> bool:
    """Copy `size` bytes of a frame, from `start` on, to byte `at` of the region, or note that they have arrived there.

    The caller has seen that they fit. False: the region's sink could not take them.
    """
    buffer = region.buffer
    if buffer is None:
        region.landed.add(at, at + size)
    elif region.sink is not None:
        return region.sink(at, memoryview(frame)[start : start + size])
    elif codec.PLACE is not None:
        codec.PLACE(buffer, at, frame, start, size)
    else:
        buffer[at : at + size] = memoryview(frame)[start : start + size]
    return True
