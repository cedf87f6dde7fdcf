"""`FabricPart`: one process's part of a fabric that several processes run together.

Every part has all cables, and only some of the switches are its own. Frames that leave for another part's switches wait
until they are taken there. Their order at a switch follows from time, port and sending (`switch.fabric`), never from
when or in which order they are brought.
"""

import ctypes
from collections.abc import Mapping, Sequence

from switch.native.fabric import FRAME_ROOM, NativeFabric

DEPART_BYTES = 1 << 20


class FabricPart(NativeFabric):
    """`elsewhere` has the part, from 1, of each switch that is not this process's, by number."""

    def __init__(
        self, elsewhere: Mapping[int, int], seeds: Sequence[int], hosts: int, host_ports: int, *, counted: bool = False
    ) -> None:
        super().__init__(seeds, hosts, host_ports, counted=counted)
        self._room = ctypes.create_string_buffer(DEPART_BYTES)
        for number, part in elsewhere.items():
            self._check(self._c.fabric_leave_to(self.address, number, part), f"switch {number} of part {part}")

    @property
    def between_ns(self) -> int:
        """No frame takes less time from one of this part's switches to any other; NEVER when there is no cable."""
        ns: int = self._c.fabric_between_ns(self.address)
        return ns

    @property
    def departing_ns(self) -> int:
        """When the first frame for another part arrives there; NEVER for none."""
        ns: int = self._c.fabric_departing_ns(self.address)
        return ns

    def depart(self, part: int) -> bytes:
        """Take all frames for a part's switches."""
        parts: list[bytes] = []
        while used := self._c.fabric_depart(self.address, part, self._room, DEPART_BYTES):
            parts.append(ctypes.string_at(self._room, used))
            if used < DEPART_BYTES - FRAME_ROOM:
                break
        return b"".join(parts)

    def arrive(self, frames: bytes) -> None:
        """Frames that another part gave away. EngineError for a time that this part has passed."""
        self._check(self._c.fabric_arrive(self.address, frames, len(frames)), "frames of another part")
