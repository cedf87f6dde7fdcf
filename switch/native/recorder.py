"""`NativeRecorder`: the records of the C runtime, as `switch.packet_log` has them."""

import ctypes
from collections.abc import Callable

from switch.engine import EngineError
from switch.native import binding
from switch.native.binding import NEVER
from switch.packet_log import LAYOUT, PacketRecord

TAKE_RECORDS = 4096


class NativeRecorder:
    """A `struct recorder`, once it has begun. Detach it from its device or fabric before `close`."""

    def __init__(self) -> None:
        self._c = binding.runtime()
        self._address: int | None = None

    def begin(self, start_ns: int, stop_ns: int, attach: Callable[[int], object]) -> None:
        """Attach a new one, and drop the one before with all that it has taken down."""
        address = self._c.recorder_create(min(start_ns, NEVER), min(stop_ns, NEVER))
        if not address:
            raise EngineError("out of memory for a packet log")
        attach(address)
        self.close()
        self._address = address

    def take(self) -> list[PacketRecord]:
        """What was taken down since the last call. Raises EngineError when memory was too short for all of it."""
        records: list[PacketRecord] = []
        if self._address is None:
            return records
        room = TAKE_RECORDS * LAYOUT.size
        buffer = ctypes.create_string_buffer(room)
        while count := self._c.recorder_take(self._address, buffer, room):
            data = buffer.raw[: count * LAYOUT.size]
            records += [PacketRecord.unpack(data, at) for at in range(0, len(data), LAYOUT.size)]
        missing = self._c.recorder_missing(self._address)
        if missing:
            raise EngineError(f"out of memory for {missing} records of packets: record a shorter stretch of time")
        return records

    def close(self) -> None:
        if self._address is not None:
            self._c.recorder_destroy(self._address)
            self._address = None
