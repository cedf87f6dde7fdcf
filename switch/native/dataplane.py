"""`NativeDataPlane`: native engines driven in real time over Linux interfaces, in any network namespaces.

One thread in C serves all devices; it never takes the interpreter's lock. Control calls may come from any thread: each
takes the driver's gate around its C call.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.linux.rights import allow_many_files
from switch.config import DeviceConfig, PortSpec, SwitchConfigError
from switch.device import Lateness
from switch.engine import DROP_PORT, FRAME_BYTES_MAX, EngineError, PortConfig, PortCounters
from switch.native import binding
from switch.native.engine import CLOSED, NativeDevice

if TYPE_CHECKING:
    from p4c.model import Program
    from switch.device import PacketIn


class _Gate:
    """Context manager around a control call on one device. Raises EngineError when the device is gone."""

    def __init__(self, c: ctypes.CDLL, driver: int) -> None:
        self._c = c
        self._driver = driver
        self.device: int | None = None

    def __enter__(self) -> None:
        if self.device is None:  # and so may be the driver
            raise EngineError(CLOSED)
        self._c.driver_enter(self._driver)

    def __exit__(self, *_: object) -> None:
        self._c.driver_leave(self._driver, self.device)


class DrivenEngine(NativeDevice):
    """An engine whose time and packets belong to a driver thread. `receive` lets a frame arrive now."""

    def __init__(self, driver: NativeDataPlane, *, seed: int) -> None:
        self._gate = _Gate(driver.c, driver.handle)
        super().__init__(seed=seed, pool=driver.c.driver_pool(driver.handle), guard=self._gate)
        self._gate.device = self.device
        self.driver = driver

    def close(self) -> None:
        if self._device is None:
            return
        with self._guard:
            self._c.driver_remove(self.driver.handle, self.device)
            self._c.device_destroy(self.device)
            self._device = self._gate.device = None

    def port_counters(self, port: int, now_ns: int) -> PortCounters:
        return super().port_counters(port, self._now(now_ns))

    def sample(self, ports: Sequence[int], now_ns: int) -> list[dict[str, int]]:
        return super().sample(ports, self._now(now_ns))

    def _collect_drops(self, port: int) -> None:
        self._c.driver_count_drops(self.driver.handle, self.device, port)

    def configure_port(self, port: int, config: PortConfig, now_ns: int) -> None:
        super().configure_port(port, config, self._now(now_ns))

    def set_running(self, running: bool, now_ns: int) -> None:
        super().set_running(running, self._now(now_ns))

    def _now(self, now_ns: int) -> int:
        """The driver's thread may be ahead of the caller's reading of the clock, never behind it."""
        latest: int = self._c.driver_now_ns()
        return max(now_ns, latest)

    def receive(self, port: int, frame: bytes, now_ns: int) -> None:
        """A frame arrives now, as `Engine.receive` has it."""
        with self._guard:
            self._arrive(port, frame, self._now(now_ns))


@dataclass(slots=True)
class _Attached:
    engine: DrivenEngine
    config: DeviceConfig
    packet_in: PacketIn


class NativeDataPlane:
    """Implements `switch.device.DataPlane`. A Python thread passes on what leaves by ports without an interface."""

    def __init__(self, turn_ns: int = 0) -> None:
        """Frames are moved at multiples of `turn_ns`; 0: as soon as they are due.

        Raises BuildError when the runtime cannot be compiled, ConfigError when no thread can be started.
        """
        allow_many_files()  # every port has a socket
        self._lock = threading.Lock()
        self._devices: dict[int, _Attached] = {}
        self.c = binding.runtime()
        self.handle: int = self.c.driver_create(turn_ns)
        if not self.handle:
            raise SwitchConfigError("the driver thread cannot be started: out of memory or file descriptors")
        self._taker = threading.Thread(target=self._take, name="packet-in", daemon=True)
        self._taker.start()

    def _take(self) -> None:
        frame = ctypes.create_string_buffer(FRAME_BYTES_MAX)
        device_id, port = ctypes.c_uint64(), ctypes.c_uint32()
        while self.handle and (length := self.c.driver_take(self.handle, device_id, port, frame, FRAME_BYTES_MAX)) >= 0:
            self._pass_on(device_id.value, port.value, frame.raw[:length])

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def prepare(self, program: Program) -> None:
        binding.load_program(program)

    def create(self, config: DeviceConfig, packet_in: PacketIn) -> DrivenEngine:
        """Raises ConfigError naming the port whose interface or namespace is missing; nothing is left behind then."""
        if not self.handle:
            raise SwitchConfigError(f"device {config.name}: the data plane is closed")
        engine = DrivenEngine(self, seed=config.seed)
        try:
            with engine._gate:
                if self.c.driver_add(self.handle, engine.device, config.device_id):
                    raise SwitchConfigError(f"device {config.name}: out of memory")
            now_ns = self.now_ns()
            engine.configure_port(config.cpu_port, PortConfig(), now_ns)
            for spec in config.ports:
                engine.configure_port(spec.port, spec.config, now_ns)
                if spec.interface:
                    attach(engine, config, spec)
        except BaseException:
            engine.close()
            self.c.driver_close_sockets(self.handle)
            raise
        with self._lock:
            self._devices[config.device_id] = _Attached(engine, config, packet_in)
        return engine

    def _pass_on(self, device_id: int, port: int, frame: bytes) -> None:
        """A digest, or a frame left by a port without an interface; of these only the CPU port has a receiver."""
        with self._lock:
            attached = self._devices.get(device_id)
        if attached is not None and (port == attached.config.cpu_port or port > DROP_PORT):
            attached.packet_in(frame, max(port - binding.PORTS, 0))

    def destroy(self, device_id: int) -> None:
        self._remove(device_id)
        self.c.driver_close_sockets(self.handle)

    def _remove(self, device_id: int) -> None:
        with self._lock:
            engine = self._devices.pop(device_id).engine
        engine.close()

    def set_running(self, device_id: int, running: bool) -> None:
        self._find(device_id).engine.set_running(running, self.now_ns())

    def packet_out(self, device_id: int, frame: bytes) -> None:
        attached = self._find(device_id)
        attached.engine.receive(attached.config.cpu_port, frame, self.now_ns())

    def _find(self, device_id: int) -> _Attached:
        with self._lock:
            attached = self._devices.get(device_id)
        if attached is None:
            raise EngineError(f"no device has id {device_id}")
        return attached

    def cpu_ns(self) -> int:
        """CPU time of the driver's thread; 0 once it has ended."""
        used: int = self.c.driver_cpu_ns(self.handle) if self.handle else 0
        return used

    def lateness(self) -> Lateness:
        total, spans = binding.zeros(2), binding.zeros(2 * binding.STALLS)
        count = self.c.driver_lateness(self.handle, total, spans) if self.handle else 0
        return Lateness(total[0], total[1], tuple(sorted((spans[2 * i], spans[2 * i + 1]) for i in range(count))))

    def close(self) -> None:
        for device_id in list(self._devices):
            self._remove(device_id)
        if not self.handle:
            return
        self.c.driver_end_takes(self.handle)
        if threading.current_thread() is not self._taker:
            self._taker.join()
        self.c.driver_destroy(self.handle)
        self.handle = 0


def attach(engine: DrivenEngine, config: DeviceConfig, spec: PortSpec) -> None:
    """Connect a port to its interface. Raises ConfigError."""
    assert spec.interface
    what = ctypes.c_char_p()
    netns = os.fsencode(spec.netns) if spec.netns else None
    with engine._gate:
        result = engine.driver.c.driver_attach(
            engine.driver.handle, engine.device, spec.port, spec.interface.encode(), netns, what
        )
    if result:
        where = f" in the namespace {spec.netns}" if spec.netns else ""
        raise SwitchConfigError(
            f"device {config.name}: port {spec.port}: interface {spec.interface}{where}: "
            f"cannot {(what.value or b'').decode()}: {os.strerror(-result)}"
        )
