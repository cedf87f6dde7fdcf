"""`NativeFabric`: `switch.fabric.Fabric` in one C object, which runs as far ahead of the hosts as cables are long."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from switch.engine import EngineError, PortConfig, PortCounters
from switch.fabric import End, HostFrame, NicPort, TimedFrame
from switch.native import binding
from switch.native.binding import NEVER, numbers, u64_array
from switch.native.engine import LOSS_UNIT, NativeDevice
from switch.native.recorder import NativeRecorder
from switch.packet_log import PacketRecord

COLLECT_BYTES = 1 << 18
"""Room for what one call collects: little enough to stay in a cache."""
CLOSED = "the fabric is closed"
_RECORD = struct.Struct("<QIHH")
FRAME_ROOM = 1 << 16  # more than a record and a frame take
_KINDS = {"switch": 1, "host": 2}
_ERRORS = {
    -1: "its length is above the longest frame, or its record is cut short",
    -2: "its time is one that the fabric has passed",
    -3: "there is no such port",
    -4: "out of memory",
}


class _Settled(AbstractContextManager[None]):
    """Around a control call: what is due happens first, as it would have event by event."""

    def __init__(self, fabric: NativeFabric, number: int) -> None:
        self._fabric, self._number = fabric, number

    def __enter__(self) -> None:
        self._fabric.settle(self._number)

    def __exit__(self, *_: object) -> None:
        pass


class SwitchInFabric(NativeDevice):
    """A switch of a fabric: its frames come and go by cables, and its clock is the fabric's."""

    def __init__(self, fabric: NativeFabric, number: int, seed: int) -> None:
        self._fabric = fabric
        super().__init__(seed=seed, pool=fabric.pool, guard=_Settled(fabric, number))

    def set_running(self, running: bool, now_ns: int) -> None:
        self._fabric.check_reached(now_ns)
        super().set_running(running, now_ns)

    def configure_port(self, port: int, config: PortConfig, now_ns: int) -> None:
        self._fabric.check_reached(now_ns)
        if not (config.delay_ns or config.rate_bps or config.rate_pps):
            raise EngineError(f"port {port}: a cable of a fabric takes time; give a delay or a rate")
        super().configure_port(port, config, now_ns)

    def port_counters(self, port: int, now_ns: int) -> PortCounters:
        self._fabric.check_reached(now_ns)
        return super().port_counters(port, now_ns)

    def sample(self, ports: Sequence[int], now_ns: int) -> list[dict[str, int]]:
        self._fabric.check_reached(now_ns)
        return super().sample(ports, now_ns)


class NativeFabric:
    """A switch for each of `seeds`, and `hosts` with ports 0 to `host_ports` - 1, nothing connected yet.

    Not thread-safe.
    """

    def __init__(self, seeds: Sequence[int], hosts: int, host_ports: int, *, counted: bool = False) -> None:
        """Raises EngineError when memory is out or there are above a million hosts or 512 ports per host."""
        self._c = binding.runtime()
        self._exchange = binding.exchange()
        self._address: int | None = self._c.fabric_create(len(seeds), hosts, host_ports)
        self._switches: tuple[SwitchInFabric, ...] = ()
        if not self._address:
            raise EngineError(f"no fabric of {len(seeds)} switches and {hosts} hosts with {host_ports} ports can be")
        self.pool: int = self._c.fabric_pool(self._address)
        if counted:
            self._c.fabric_count_payload(self._address)
        self._switches = tuple(SwitchInFabric(self, number, seed) for number, seed in enumerate(seeds))
        for number, switch in enumerate(self._switches):
            self._check(self._c.fabric_attach(self._address, number, switch.device), f"switch {number}")
        self._reached_ns = 0
        self._recorder = NativeRecorder()
        self._buffer = ctypes.create_string_buffer(COLLECT_BYTES)
        self._view = memoryview(self._buffer).cast("B")

    @property
    def address(self) -> int:
        """The `struct fabric`. Raises EngineError once the fabric is closed."""
        if self._address is None:
            raise EngineError(CLOSED)
        return self._address

    def switch(self, number: int) -> SwitchInFabric:
        return self._switches[number]

    def settle(self, number: int) -> None:
        """Let happen what is due at a switch."""
        if self._address:
            self._c.fabric_settle(self._address, number)

    def close(self) -> None:
        for switch in self._switches:
            switch.close()
        if self._address:
            self._c.fabric_destroy(self._address)
            self._address = None
        self._recorder.close()

    def __del__(self) -> None:
        if getattr(self, "_address", None):
            self.close()

    @staticmethod
    def _check(code: int, what: str) -> None:
        if code < 0:
            raise EngineError(f"{what}: {_ERRORS[code]}")

    # --- cables -----------------------------------------------------------------------------------------------

    def connect(self, a: End, b: End) -> None:
        ends = [numbers([_KINDS[end.kind], end.node, end.port]) for end in (a, b)]
        code = self._c.fabric_connect(self.address, *ends)
        if code == -1:
            raise EngineError(f"{a} to {b}: one of the ports has a cable already, or both are the same")
        self._check(code, f"{a} to {b}")

    def configure_nic_port(self, host: int, port: int, config: NicPort) -> None:
        if not 0 <= config.loss <= 1:
            raise EngineError(f"port {port} of host {host}: a loss is a share of 0 to 1, not {config.loss}")
        if min(config.rate_bps, config.delay_ns, config.overhead_bytes, host, port) < 0:
            raise EngineError(f"port {port} of host {host}: numbers, rates and delays cannot be negative")
        if not (config.delay_ns or config.rate_bps):
            raise EngineError(f"port {port} of host {host}: a cable of a fabric takes time; give a delay or a rate")
        values = [config.rate_bps, config.delay_ns, int(config.loss * LOSS_UNIT), config.loss_seed & NEVER]
        values.append(config.overhead_bytes)
        code = self._c.fabric_configure_nic_port(self.address, host, port, u64_array([*values, int(config.up)]))
        self._check(code, f"port {port} of host {host}")

    # --- time and frames --------------------------------------------------------------------------------------

    @property
    def reached_ns(self) -> int:
        return self._reached_ns

    def check_reached(self, now_ns: int) -> None:
        """Raises EngineError for an instant that the fabric has not come to: a switch must not run ahead of it."""
        if now_ns >= max(self._reached_ns, 1):
            raise EngineError(
                f"{now_ns} ns is ahead of the fabric, which has happened before {self._reached_ns} ns only"
            )

    @property
    def next_ns(self) -> int | None:
        t_ns: int = min(self._c.fabric_next_ns(self.address), self._c.fabric_next_arrival_ns(self.address))
        return None if t_ns == NEVER else t_ns

    @property
    def hops(self) -> int:
        """Frames that switches have put on cables, altogether."""
        hops: int = self._c.fabric_hops(self.address)
        return hops

    def send(self, frames: Iterable[TimedFrame]) -> None:
        if self._exchange is None:
            self._send_by_buffer(frames)
            return
        given = frames if type(frames) is list else list(frames)
        refused = self._exchange.send(self.address, given)
        if refused is not None:
            place, error = refused
            t_ns, host, port, frame = given[place]
            self._check(error, f"a frame of {len(frame)} bytes by port {port} of host {host} at {t_ns} ns")

    def _send_by_buffer(self, frames: Iterable[TimedFrame]) -> None:
        parts: list[bytes] = []
        unfit = ""
        for t_ns, host, port, frame in frames:
            try:
                parts.append(_RECORD.pack(t_ns, host, port, len(frame)))
            except struct.error as wrong:
                unfit = f"a frame of {len(frame)} bytes by port {port} of host {host}: {wrong}"
                break  # those ahead of it are taken
            parts.append(frame)
        error = ctypes.c_int()
        data = b"".join(parts)
        taken = self._c.fabric_send(self.address, data, len(data), error)
        if error.value:
            t_ns, host, port, length = _RECORD.unpack(parts[2 * taken])
            self._check(error.value, f"a frame of {length} bytes by port {port} of host {host} at {t_ns} ns")
        if unfit:
            raise EngineError(unfit)

    def run(self, host_ns: int | None, limit_ns: int) -> int:
        reached_ns = self._c.fabric_run(self.address, NEVER if host_ns is None else host_ns, limit_ns)
        if not reached_ns:
            raise EngineError("the P4 program looks at payload, which this run only counts: choose --payload real")
        self._reached_ns = reached_ns
        horizon_ns: int = self._c.fabric_horizon_ns(self.address)
        return horizon_ns

    def gather(self, before_ns: int) -> list[int]:
        count = self._c.fabric_gather(self.address, before_ns)
        gathered: list[int] = self._c.fabric_gathered(self.address)[:count]
        return gathered

    def collect(self, host: int) -> list[HostFrame]:
        if self._exchange is not None:
            return self._exchange.collect(self.address, host, HostFrame)
        arrived: list[HostFrame] = []
        view, size, new = self._view, _RECORD.size, tuple.__new__
        while used := self._c.fabric_collect(self.address, host, self._buffer, COLLECT_BYTES):
            at = 0
            while at < used:
                t_ns, _, port, length = _RECORD.unpack_from(view, at)
                at += size
                # As HostFrame(…) would, without its `__new__` of Python: this is done for every frame.
                arrived.append(new(HostFrame, (t_ns, host, port, bytes(view[at : at + length]))))
                at += length
            if used < COLLECT_BYTES - FRAME_ROOM:
                break
        return arrived

    # --- packet log -------------------------------------------------------------------------------------------

    def record_packets(self, start_ns: int, stop_ns: int) -> None:
        self._recorder.begin(start_ns, stop_ns, lambda address: self._c.fabric_record(self.address, address))

    def take_records(self) -> list[PacketRecord]:
        return self._recorder.take()
