"""`NativeRecorder`: the records of the C runtime, as `switch.packet_log` has them."""

from __future__ import annotations

import ctypes

from switch.engine import EngineError
from switch.native import binding
from switch.native.binding import NEVER
from switch.packet_log import LAYOUT, PacketRecord

TAKE_RECORDS = 4096


class NativeRecorder:
    """A `struct recorder`. What it is attached to must let go of it before `close`."""

    def __init__(self, start_ns: int, stop_ns: int) -> None:
        self._c = binding.runtime()
        self._address: int | None = self._c.recorder_create(min(start_ns, NEVER), min(stop_ns, NEVER))
        if not self._address:
            raise EngineError("out of memory for a packet log")

    @property
    def address(self) -> int:
        if self._address is None:
            raise EngineError("the packet log is closed")
        return self._address

    def take(self) -> list[PacketRecord]:
        """What was taken down since the last call. Raises EngineError when memory was too short for all of it."""
        records: list[PacketRecord] = []
        room = TAKE_RECORDS * LAYOUT.size
        buffer = ctypes.create_string_buffer(room)
        while count := self._c.recorder_take(self.address, buffer, room):
            data = buffer.raw[: count * LAYOUT.size]
            records += [PacketRecord.unpack(data, at) for at in range(0, len(data), LAYOUT.size)]
        missing = self._c.recorder_missing(self.address)
        if missing:
            raise EngineError(f"out of memory for {missing} records of packets: record a shorter stretch of time")
        return records

    def close(self) -> None:
        if self._address is not None:
            self._c.recorder_destroy(self._address)
            self._address = None
