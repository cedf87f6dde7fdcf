"""The control socket: operations that P4Runtime lacks, as JSON lines on a loopback TCP socket (docs/contracts.md).

Each connection has a thread; operations on one device are serialised by its lock.
Every refusal names the thing, the rule and the valid choices, and changes nothing.
"""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from common import plain_file, unix_socket
from common.fields import Fields
from common.journal import Journal
from common.server import ControlServer, Reply, ThreadReaders
from switch.config import (
    PORT_KEYS,
    QUEUE_KEYS,
    SwitchConfigError,
    changed_port,
    changed_queue,
    parse_address,
    parse_device,
)
from switch.device import Device, Devices
from switch.engine import FRAME_BYTES_MAX, EngineError, PortConfig

LINE_BYTES_MAX = 1 << 20

Operation = Callable[["SwitchControl", Fields], object]


class SwitchControl:
    """Serves `devices` on `address` ("HOST:PORT", port 0: chosen by the system) until it is closed."""

    def __init__(
        self,
        devices: Devices,
        address: str,
        *,
        journal: Journal | None = None,
        on_shutdown: Callable[[], None] | None = None,
        admin: bool = True,
    ) -> None:
        """Raises ConfigError when the address is malformed or taken. `on_shutdown` serves the operation `shutdown`.

        Without `admin`, the operations of ADMIN are refused: they open interfaces of any namespace, or end the process.
        """
        self.devices = devices
        self._journal = journal
        self._on_shutdown = on_shutdown
        self._admin = admin
        where = parse_address(address, "control")
        try:
            self._server = ControlServer(
                unix_socket.path_of(where) or where, ThreadReaders(), self._handle, line_bytes_max=LINE_BYTES_MAX
            )
        except OSError as error:
            raise SwitchConfigError(f"control: {plain_file.text_fault(error)}") from None

    @property
    def address(self) -> str:
        """Where it really listens."""
        where = self._server.address
        return f"{unix_socket.PREFIX}{where}" if where.startswith("/") else where

    def close(self) -> None:
        self._server.close()

    def _handle(self, request: Mapping[str, Any], reply: Reply) -> None:
        arguments = dict(request)
        number, name = arguments.pop("id", None), arguments.pop("op", None)
        try:
            if not isinstance(name, str) or name not in OPERATIONS:
                raise SwitchConfigError(f"unknown op {name!r}; valid: {', '.join(OPERATIONS)}")
            if name in ADMIN and not self._admin:
                raise SwitchConfigError(
                    f"{name} must be allowed when the process is started: switch serve --allow-admin"
                )
            operation, names = OPERATIONS[name]
            result = operation(self, Fields(name, arguments, SwitchConfigError, names))
        except (SwitchConfigError, EngineError, ValueError) as error:
            reply({"id": number, "ok": False, "error": str(error)})
            return
        reply({"id": number, "ok": True, "result": result})
        if name == "shutdown" and self._on_shutdown is not None:
            self._on_shutdown()  # after the answer, which would not leave any more

    # --- operations ---

    def ping(self, arguments: Fields) -> object:
        return {"pid": os.getpid(), "devices": len(self.devices)}

    def list_devices(self, arguments: Fields) -> object:
        return [device.describe() for device in self.devices]

    def get_port(self, arguments: Fields) -> object:
        device, port = self._port(arguments)
        return port_document(port, device.ports[port])

    def set_port(self, arguments: Fields) -> object:
        device, port = self._port(arguments)
        changes = {key: arguments.values[key] for key in PORT_KEYS if key in arguments.values}
        with device.lock:
            device.configure_port(port, changed_port(device.ports[port], changes))
        return self._changed(device, port, changes)

    def set_queue(self, arguments: Fields) -> object:
        device, port = self._port(arguments)
        changes = {key: arguments.values[key] for key in QUEUE_KEYS if key in arguments.values}
        priority = arguments.get("priority", None)
        with device.lock:
            device.configure_port(port, changed_queue(device.ports[port], priority, changes))
        return self._changed(device, port, {"priority": priority, **changes})

    def _changed(self, device: Device, port: int, changes: Mapping[str, Any]) -> object:
        if self._journal is not None:
            self._journal.write("port", node=device.name, port=port, **changes)
        return port_document(port, device.ports[port])

    def counters(self, arguments: Fields) -> object:
        """Of one device as {port: counters}, or without `device` (or with "all") of all as {device id: …}."""
        if arguments.get("device", "all") == "all":
            documents = {}
            for device in self.devices:
                with contextlib.suppress(SwitchConfigError):  # removed since the list was made
                    documents[str(device.device_id)] = counters_document(device)
            return documents
        return counters_document(self.devices.find(arguments.get("device")))

    def turn(self, arguments: Fields, verb: Callable[[object], Device]) -> object:
        return verb(arguments.get("device", None)).describe()

    def add_device(self, arguments: Fields) -> object:
        return self.devices.add(parse_device(arguments.get("device", None))).describe()

    def remove_device(self, arguments: Fields) -> object:
        self.devices.remove(arguments.get("device", None))
        return None

    def trace(self, arguments: Fields) -> object:
        """Steps of the reference interpreter for one frame, in a copy of the device's tables."""
        from switch.reference.engine import ReferenceEngine
        from switch.reference.trace import Trace

        device, port = self._port(arguments)
        frame = parse_frame(arguments.get("frame", None))
        steps = Trace()
        engine = ReferenceEngine(seed=device.config.seed, trace=steps)
        device.copy_to(engine)
        # An unhurried switch: every port there is, up, without rates or limits.
        for number in (*device.ports, device.config.cpu_port):
            engine.configure_port(number, PortConfig(), 0)
        engine.receive(port, frame, 0)
        sent = [{"port": item.port, "frame": item.frame.hex()} for item in engine.advance(0)]
        return {"text": steps.text(), "steps": [json.loads(step.json()) for step in steps.steps], "sent": sent}

    def shutdown(self, arguments: Fields) -> object:
        if self._on_shutdown is None:
            raise SwitchConfigError("shutdown: this process does not offer it")
        return None

    def _port(self, arguments: Fields) -> tuple[Device, int]:
        device = self.devices.find(arguments.get("device", None))
        port = arguments.get("port", None)
        if isinstance(port, bool) or not isinstance(port, int) or port not in device.ports:
            raise SwitchConfigError(f"device {device.name}: no port {port!r}; it has {sorted(device.ports)}")
        return device, port


OPERATIONS: dict[str, tuple[Operation, tuple[str, ...]]] = {
    "ping": (SwitchControl.ping, ()),
    "devices": (SwitchControl.list_devices, ()),
    "port.get": (SwitchControl.get_port, ("device", "port")),
    "port.set": (SwitchControl.set_port, ("device", "port", *PORT_KEYS)),
    "queue.set": (SwitchControl.set_queue, ("device", "port", "priority", *QUEUE_KEYS)),
    "counters": (SwitchControl.counters, ("device",)),
    "device.stop": (lambda control, a: control.turn(a, control.devices.stop), ("device",)),
    "device.start": (lambda control, a: control.turn(a, control.devices.start), ("device",)),
    "device.crash": (lambda control, a: control.turn(a, control.devices.crash), ("device",)),
    "device.add": (SwitchControl.add_device, ("device",)),
    "device.remove": (SwitchControl.remove_device, ("device",)),
    "trace": (SwitchControl.trace, ("device", "port", "frame")),
    "shutdown": (SwitchControl.shutdown, ()),
}
"""Each operation with the arguments that it may have."""
ADMIN = ("device.add", "device.remove", "shutdown")


def port_document(port: int, config: PortConfig) -> dict[str, Any]:
    """As in the configuration file: queues that have limits or rates, with their priority."""
    document = {"port": port, **asdict(replace(config, queues=()))}
    queues = [{"priority": priority, **asdict(queue)} for priority, queue in enumerate(config.queues)]
    document["queues"] = [queue for queue in queues if any(value for key, value in queue.items() if key != "priority")]
    return document


def counters_document(device: Device) -> dict[str, dict[str, int]]:
    return {str(port): counters._asdict() for port, counters in device.port_counters().items()}


def parse_frame(text: object) -> bytes:
    try:
        if not isinstance(text, str):
            raise ValueError
        frame = bytes.fromhex(text)
    except ValueError:
        raise SwitchConfigError(f"frame: must be hex digits, not {text!r}") from None
    if len(frame) > FRAME_BYTES_MAX:
        raise SwitchConfigError(f"frame: {len(frame)} bytes; at most {FRAME_BYTES_MAX}")
    return frame
