"""The devices of one switch process, which P4Runtime, the control socket and the data plane share.

A `Device` is one switch: its engine, its loaded pipeline, its ports, whether it runs. `Devices` finds them by
device id. A `DataPlane` (`switch/native/dataplane.py`) owns sockets, clock and thread; everything here only asks the
data plane. Calls may come from the gRPC loop and from the control socket's thread: `Device.lock` guards one device,
`Devices.lock` the set of them.

Life of a device, as on a real switch whose management processor shares its power:

- `stop`: forwards nothing; links stay up, tables and P4Runtime sessions are kept. `start` ends the stop.
- `crash`: pipeline, tables, externs and queues are gone and the device forwards nothing; link and queue configuration
  stays. Every P4Runtime stream to the device ends (UNAVAILABLE) and the highest election ids are forgotten, as after a
  full restart (P4Runtime specification, "Client Arbitration Update"). Then the device reports no pipeline
  (FAILED_PRECONDITION) until a client pushes a pipeline; after `start` the device forwards again, with that pipeline
  or with none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from switch.config import DeviceConfig, SwitchConfigError
from switch.engine import EngineControl, PortConfig, PortCounters

if TYPE_CHECKING:
    from p4c.model import Program

PacketIn = Callable[[bytes, int], None]
"""Takes a frame that left by the CPU port, and 0; or the data of a digest, and its number as in `engine.Digest`."""


class DeviceState(Enum):
    """The state that the control socket shows. A crashed device is stopped until a start."""

    RUNNING = "running"
    STOPPED = "stopped"


class DeviceEvent(Enum):
    """The events that observers are told; the journal's `switch` line carries the value as `state`."""

    ADDED = "added"
    RUNNING = "running"
    STOPPED = "stopped"
    CRASHED = "crashed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late frames left: how often and by how much together since the start, and the longest spans, each from when
    something was due to when it was done, since the last call."""

    count: int
    sum_ns: int
    spans: tuple[tuple[int, int], ...]


class DataPlane(Protocol):
    """Drives engines in real time over interfaces. Thread-safe."""

    def now_ns(self) -> int:
        """CLOCK_MONOTONIC."""

    def prepare(self, program: Program) -> None:
        """Make `Engine.load(program)` quick (compile, cache). May take seconds; called without any lock held.

        Raises the reason if that fails; the message goes to the controller.
        """

    def create(self, config: DeviceConfig, packet_in: PacketIn) -> EngineControl:
        """An engine attached to the configured interfaces, with the ports configured, forwarding once it has a program.

        `packet_in` is called (from any thread) with each frame that leaves by the CPU port, and with each digest.
        Raises ConfigError when an interface or namespace is missing.
        """

    def destroy(self, device_id: int) -> None:
        """Close a device's sockets and forget its engine; every later call of that engine is an EngineError."""

    def set_running(self, device_id: int, running: bool) -> None:
        """Stopped: received frames are dropped (drop_no_program), queues are dropped (drop_wiped)."""

    def packet_out(self, device_id: int, frame: bytes) -> None:
        """Let a frame arrive at the device's CPU port."""

    def lateness(self) -> Lateness:
        """How late the thread served its devices."""

    def close(self) -> None:
        """Destroy all devices at once and end the thread."""


class ControlPlane(Protocol):
    """The control plane's part of a device: its pipeline and its entries (`p4rt/store.py`)."""

    @property
    def program_name(self) -> str: ...

    def entry_count(self) -> int: ...

    def copy_to(self, engine: EngineControl) -> None:
        """Bring a fresh engine to the same state."""


class Device:
    """One switch. `store` is None without a pipeline."""

    def __init__(self, config: DeviceConfig, data_plane: DataPlane) -> None:
        self.config = config
        self.data_plane = data_plane
        self.lock = threading.RLock()
        self.state = DeviceState.RUNNING
        self.removed = False  # written under the lock; from then on the engine is closed
        self.store: ControlPlane | None = None
        self.packet_in: PacketIn | None = None  # set by the P4Runtime server
        self.ports: dict[int, PortConfig] = {spec.port: spec.config for spec in config.ports}
        self.engine = data_plane.create(config, self._on_packet_in)

    @property
    def device_id(self) -> int:
        return self.config.device_id

    @property
    def name(self) -> str:
        return self.config.name

    def _on_packet_in(self, data: bytes, learned: int = 0) -> None:
        listener = self.packet_in
        if listener is not None:
            listener(data, learned)

    def check_present(self) -> None:
        """The caller holds the lock. Raises ConfigError once the device has been removed."""
        if self.removed:
            raise SwitchConfigError(f"device {self.name}: it has been removed")

    def configure_port(self, port: int, config: PortConfig) -> None:
        """Apply a port's whole configuration. Raises ConfigError for a port that the device does not have."""
        with self.lock:
            self.check_present()
            if port not in self.ports:
                raise SwitchConfigError(f"device {self.name}: no port {port}; it has {sorted(self.ports)}")
            self.engine.configure_port(port, config, self.data_plane.now_ns())
            self.ports[port] = config

    def port_counters(self) -> dict[int, PortCounters]:
        """Raises ConfigError once the device has been removed."""
        with self.lock:
            self.check_present()
            now_ns = self.data_plane.now_ns()
            return {port: self.engine.port_counters(port, now_ns) for port in self.ports}

    def sample(self) -> list[dict[str, int]]:
        """Every port as `EngineControl.sample` tells of it. Raises ConfigError once the device has been removed."""
        with self.lock:
            self.check_present()
            return self.engine.sample(list(self.ports), self.data_plane.now_ns())

    def copy_to(self, engine: EngineControl) -> None:
        """Bring another engine to this device's program and tables. Raises ConfigError without a program."""
        with self.lock:
            if self.store is None:
                raise SwitchConfigError(f"device {self.name}: has no program; push one with P4Runtime first")
            self.store.copy_to(engine)

    def describe(self) -> dict[str, object]:
        """The control socket's `devices` row."""
        with self.lock:
            store = self.store
            return {
                "device_id": self.device_id,
                "name": self.name,
                "state": self.state.value,
                "program": store.program_name if store else None,
                "entries": store.entry_count() if store else 0,
                "ports": sorted(self.ports),
            }


class Devices:
    """The devices of this process by id, and the verbs of the control socket that concern a whole device."""

    def __init__(self, data_plane: DataPlane) -> None:
        self.data_plane = data_plane
        self.lock = threading.RLock()
        self._devices: dict[int, Device] = {}
        self._observers: list[Callable[[Device, DeviceEvent], None]] = []

    def __iter__(self) -> Iterator[Device]:
        with self.lock:
            return iter(list(self._devices.values()))

    def __len__(self) -> int:
        return len(self._devices)

    def get(self, device_id: int) -> Device | None:
        """The device, or None."""
        return self._devices.get(device_id)

    def find(self, device_id: object) -> Device:
        """The device, or ConfigError naming the devices that exist."""
        device = self._devices.get(device_id) if isinstance(device_id, int) else None
        if device is None:
            known = ", ".join(f"{d.device_id} ({d.name})" for d in self) or "none"
            raise SwitchConfigError(f"no device {device_id!r}; devices: {known}")
        return device

    def observe(self, observer: Callable[[Device, DeviceEvent], None]) -> None:
        """Call `observer` after each change, from the thread that made it."""
        self._observers.append(observer)

    def _tell(self, device: Device, event: DeviceEvent) -> None:
        for observer in self._observers:
            observer(device, event)

    def add(self, config: DeviceConfig) -> Device:
        """Make a device and attach its ports. Raises ConfigError: id or name taken, an interface missing."""
        with self.lock:
            for other in self._devices.values():
                if other.device_id == config.device_id or other.name == config.name:
                    raise SwitchConfigError(f"device {config.device_id} ({config.name}): the id or the name is taken")
            device = Device(config, self.data_plane)
            self._devices[config.device_id] = device
        self._tell(device, DeviceEvent.ADDED)
        return device

    def remove(self, device_id: object) -> None:
        """End a device: its streams, sockets and state. Raises ConfigError when there is none."""
        with self.lock:
            device = self.find(device_id)
            del self._devices[device.device_id]
            with device.lock:
                device.store = None
                device.removed = True
                self.data_plane.destroy(device.device_id)
        self._tell(device, DeviceEvent.REMOVED)

    def stop(self, device_id: object) -> Device:
        """Forward nothing, keep everything; see the module. Raises ConfigError when there is no such device."""
        return self._set_state(device_id, DeviceState.STOPPED, DeviceEvent.STOPPED)

    def start(self, device_id: object) -> Device:
        """Forward again after a stop or a crash. Raises ConfigError when there is no such device."""
        return self._set_state(device_id, DeviceState.RUNNING, DeviceEvent.RUNNING)

    def crash(self, device_id: object) -> Device:
        """Lose everything but link and queue configuration. Raises ConfigError when there is no such device."""
        device = self.find(device_id)
        with device.lock:
            device.check_present()
            self.data_plane.set_running(device.device_id, False)
            device.state = DeviceState.STOPPED
            device.engine.reset()
            device.store = None
        self._tell(device, DeviceEvent.CRASHED)
        return device

    def _set_state(self, device_id: object, state: DeviceState, event: DeviceEvent) -> Device:
        device = self.find(device_id)
        with device.lock:
            device.check_present()
            if device.state is state:
                return device
            self.data_plane.set_running(device.device_id, state is DeviceState.RUNNING)
            device.state = state
        self._tell(device, event)
        return device

    def close(self) -> None:
        """Remove every device. The data plane closes their sockets together: one by one, each waits for the kernel."""
        with self.lock:
            devices = list(self._devices.values())
            self._devices.clear()
            for device in devices:
                with device.lock:
                    device.store = None
                    device.removed = True
            self.data_plane.close()
        for device in devices:
            self._tell(device, DeviceEvent.REMOVED)
