"""The configuration of `python -m switch serve` and of the control socket's `device.add`, `port.set`, `queue.set`.

The format is in docs/contracts.md, "Switch configuration and control". Every error names the key, the rule and the
valid choices.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from common import unix_socket
from common.fields import Fields, excerpt, read_json
from common.records import Frozen
from switch.engine import CPU_PORT_DEFAULT, DROP_PORT, PORT_DEFAULTS, PRIORITIES, PortConfig

GRPC_DEFAULT = "127.0.0.1:9559"
CONTROL_DEFAULT = "127.0.0.1:9560"
SAMPLE_INTERVAL_NS_DEFAULT = 500_000_000
TURN_NS_MAX = 1_000_000_000
ENGINES = ("native",)  # the reference interpreter runs packets that it is given (stf, trace), not interfaces
PORT_MAX = DROP_PORT - 1  # v1model ports are bit<9>; 511 drops
INTEGER_MAX, SEED_MAX = (1 << 63) - 1, (1 << 64) - 1

PORT_KEYS = tuple(PORT_DEFAULTS)
PORT_FIELDS = ("port", "interface", "netns", "queues")
QUEUE_KEYS = ("depth_packets", "depth_bytes", "rate_pps")


class SwitchConfigError(Exception):
    """The configuration breaks a rule; the message says which, where, and what would be valid."""


class PortSpec(Frozen):
    """A port as configured at start. Without an interface its packets stay in memory."""

    port: int
    interface: str | None = None
    netns: str | None = None  # path of a network namespace; None: this process's own
    config: PortConfig = field(default_factory=PortConfig)


class DeviceConfig(Frozen):
    """One switch: its `device_id`, ports without the CPU's, `seed` of its random numbers."""

    device_id: int
    name: str
    ports: tuple[PortSpec, ...] = ()
    cpu_port: int = CPU_PORT_DEFAULT
    seed: int = 0
    engine: str = "native"


class ServeConfig(Frozen):
    """The configuration file. Addresses are `HOST:PORT`; `journal` is a path or None for no journal.

    Frames are moved at multiples of `turn_ns`, all that are due at once; 0: each as soon as it is due.
    """

    grpc: str = GRPC_DEFAULT
    control: str = CONTROL_DEFAULT
    journal: str | None = None
    sample_interval_ns: int = SAMPLE_INTERVAL_NS_DEFAULT
    turn_ns: int = 0
    devices: tuple[DeviceConfig, ...] = ()


def load_config(path: Path) -> ServeConfig:
    """Read and check a configuration file. Raises ConfigError."""
    return parse_config(read_json(path, SwitchConfigError))


def parse_config(document: object) -> ServeConfig:
    """Check a whole configuration document. Raises ConfigError naming the key, the rule and the valid range."""
    keys = ("grpc", "control", "journal", "sample_interval_ns", "turn_ns", "devices")
    body = Fields("", document, SwitchConfigError, keys)
    devices = tuple(parse_device(row.values, row.name) for row in body.rows("devices", default=()))
    _distinct([device.device_id for device in devices], "devices: device_id")
    _distinct([device.name for device in devices], "devices: name")
    _distinct(
        [(spec.netns, spec.interface) for device in devices for spec in device.ports if spec.interface],
        "devices: interface",
    )
    return ServeConfig(
        grpc=parse_address(body.get("grpc", GRPC_DEFAULT), "grpc"),
        control=parse_address(body.get("control", CONTROL_DEFAULT), "control"),
        journal=body.string("journal") if body.has("journal") else None,
        sample_interval_ns=body.integer("sample_interval_ns", 0, INTEGER_MAX, SAMPLE_INTERVAL_NS_DEFAULT),
        turn_ns=body.integer("turn_ns", 0, TURN_NS_MAX, 0),
        devices=devices,
    )


def parse_address(value: object, where: str) -> str:
    """A `host:port` to listen on, where port 0 lets the system choose, or `unix:` and the absolute path of a socket."""
    if isinstance(value, str) and value.startswith(unix_socket.PREFIX):
        try:
            unix_socket.path_of(value)
        except ValueError as error:
            raise SwitchConfigError(f"{where}: {error}") from None
        return value
    host, _, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise SwitchConfigError(
            f'{where} is {excerpt(value)}; it must be "HOST:PORT" with a port from 0 to 65535, or "unix:/PATH"'
        )
    return str(value)


def parse_device(document: object, where: str = "device") -> DeviceConfig:
    """Check one device's object, found at `where` of the document. Raises ConfigError."""
    body = Fields(where, document, SwitchConfigError, ("device_id", "name", "cpu_port", "seed", "engine", "ports"))
    device_id = body.integer("device_id", 0, SEED_MAX)
    ports = tuple(_parse_port(row) for row in body.rows("ports", (*PORT_FIELDS, *PORT_KEYS), ()))
    cpu_port = body.integer("cpu_port", 1, PORT_MAX, CPU_PORT_DEFAULT)
    _distinct([spec.port for spec in ports] + [cpu_port], f"{where}: ports (with the CPU port)")
    return DeviceConfig(
        device_id=device_id,
        name=body.string("name", f"device{device_id}"),
        ports=ports,
        cpu_port=cpu_port,
        seed=body.integer("seed", 0, SEED_MAX, 0),
        engine=body.choice("engine", ENGINES, "native"),
    )


def _parse_port(body: Fields) -> PortSpec:
    config = _changed_port(PortConfig(), body)
    for queue in body.rows("queues", ("priority", *QUEUE_KEYS), ()):
        config = _changed_queue(config, queue)
    return PortSpec(
        port=body.integer("port", 0, PORT_MAX),
        interface=body.string("interface") if body.has("interface") else None,
        netns=body.string("netns") if body.has("netns") else None,
        config=config,
    )


def changed_port(config: PortConfig, changes: Mapping[str, object]) -> PortConfig:
    """`config` with `changes` (any of PORT_KEYS) applied. Raises ConfigError and changes nothing otherwise."""
    return _changed_port(config, Fields("port", changes, SwitchConfigError, PORT_KEYS))


def _changed_port(config: PortConfig, body: Fields) -> PortConfig:
    values: dict[str, Any] = {}
    for key in PORT_KEYS:
        if key not in body.values:
            continue
        default = PORT_DEFAULTS[key]
        if isinstance(default, bool):
            values[key] = body.boolean(key)
        elif isinstance(default, float):
            values[key] = float(body.number(key, 0, 1))
        else:
            values[key] = body.integer(key, 0, INTEGER_MAX)
    return replace(config, **values)


def changed_queue(config: PortConfig, priority: object, changes: Mapping[str, object]) -> PortConfig:
    """`config` with one queue's limits (any of QUEUE_KEYS) changed. Raises ConfigError."""
    values = {"priority": priority, **changes}
    return _changed_queue(config, Fields("queue", values, SwitchConfigError, ("priority", *QUEUE_KEYS)))


def _changed_queue(config: PortConfig, body: Fields) -> PortConfig:
    priority = body.integer("priority", 0, PRIORITIES - 1)
    queues = list(config.queues)
    values = {key: body.integer(key, 0, INTEGER_MAX) for key in QUEUE_KEYS if key in body.values}
    queues[priority] = replace(queues[priority], **values)
    return replace(config, queues=tuple(queues))


def _distinct(values: list[Any], where: str) -> None:
    for value, times in Counter(values).items():
        if times > 1:
            raise SwitchConfigError(f"{where} must be distinct, but {value!r} occurs {times} times")
