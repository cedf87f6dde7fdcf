"""The configuration of `python -m switch serve` and of the control socket's `device.add`, `port.set`, `queue.set`.

The format is in docs/contracts.md, "Switch configuration and control". Every error names the key, the rule and the
valid choices.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from switch.engine import CPU_PORT_DEFAULT, DROP_PORT, PRIORITIES, PortConfig

GRPC_DEFAULT = "127.0.0.1:9559"
CONTROL_DEFAULT = "127.0.0.1:9560"
SAMPLE_INTERVAL_NS_DEFAULT = 500_000_000
ENGINES = ("native",)  # the reference interpreter runs packets that it is given (stf, trace), not interfaces
PORT_MAX = DROP_PORT - 1  # v1model ports are bit<9>; 511 drops

PORT_KEYS = ("up", "rate_bps", "rate_pps", "delay_ns", "loss", "loss_seed")
QUEUE_KEYS = ("depth_packets", "depth_bytes", "rate_pps")


class ConfigError(Exception):
    """The configuration breaks a rule; the message says which, where, and what would be valid."""


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A port as configured at start. Without an interface its packets stay in memory."""

    port: int
    interface: str | None = None
    netns: str | None = None  # path of a network namespace; None: this process's own
    config: PortConfig = field(default_factory=PortConfig)


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """One switch: `device_id` from 1 as P4Runtime counts, ports without the CPU's, `seed` of its random numbers."""

    device_id: int
    name: str
    ports: tuple[PortSpec, ...] = ()
    cpu_port: int = CPU_PORT_DEFAULT
    seed: int = 0
    engine: str = "native"


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """The configuration file. Addresses are `HOST:PORT`; `journal` is a path or None for no journal."""

    grpc: str = GRPC_DEFAULT
    control: str = CONTROL_DEFAULT
    journal: str | None = None
    sample_interval_ns: int = SAMPLE_INTERVAL_NS_DEFAULT
    devices: tuple[DeviceConfig, ...] = ()


def load_config(path: Path) -> ServeConfig:
    """Read and check a configuration file. Raises ConfigError."""
    try:
        text = path.read_text()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{path}: is not JSON: {error}") from None
    return parse_config(document)


def parse_config(document: object) -> ServeConfig:
    """Check a whole configuration document. Raises ConfigError naming the key, the rule and the valid range."""
    body = _mapping(document, "configuration", ("grpc", "control", "journal", "sample_interval_ns", "devices"))
    devices = tuple(
        parse_device(item, f"devices[{index}]") for index, item in enumerate(_list(body, "devices", "configuration"))
    )
    _distinct([device.device_id for device in devices], "devices: device_id")
    _distinct([device.name for device in devices], "devices: name")
    _distinct(
        [(spec.netns, spec.interface) for device in devices for spec in device.ports if spec.interface],
        "devices: interface",
    )
    journal = body.get("journal")
    if journal is not None and not isinstance(journal, str):
        raise ConfigError(f"journal: must be a path, not {journal!r}")
    return ServeConfig(
        grpc=parse_address(body.get("grpc", GRPC_DEFAULT), "grpc"),
        control=parse_address(body.get("control", CONTROL_DEFAULT), "control"),
        journal=journal,
        sample_interval_ns=_integer(body, "sample_interval_ns", "configuration", SAMPLE_INTERVAL_NS_DEFAULT, 0),
        devices=devices,
    )


def parse_address(value: object, where: str) -> str:
    """A `host:port` to listen on; port 0 lets the system choose."""
    host, _, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f'{where}: must be "HOST:PORT" with a port of 0..65535, not {value!r}')
    return str(value)


def parse_device(document: object, where: str = "device") -> DeviceConfig:
    """Check one device's object, found at `where` of the document. Raises ConfigError."""
    body = _mapping(document, where, ("device_id", "name", "cpu_port", "seed", "engine", "ports"))
    device_id = _integer(body, "device_id", where, None, 1, (1 << 64) - 1)
    name = body.get("name", f"device{device_id}")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{where}.name: must be a non-empty string, not {name!r}")
    engine = body.get("engine", "native")
    if engine not in ENGINES:
        raise ConfigError(f"{where}.engine: {engine!r} is not one of {', '.join(ENGINES)}")
    ports = tuple(_parse_port(item, f"{where}.ports[{i}]") for i, item in enumerate(_list(body, "ports", where)))
    cpu_port = _integer(body, "cpu_port", where, CPU_PORT_DEFAULT, 1, PORT_MAX)
    _distinct([spec.port for spec in ports] + [cpu_port], f"{where}: ports (with the CPU port)")
    return DeviceConfig(
        device_id=device_id,
        name=name,
        ports=ports,
        cpu_port=cpu_port,
        seed=_integer(body, "seed", where, 0, 0, (1 << 64) - 1),
        engine=engine,
    )


def _parse_port(document: object, where: str) -> PortSpec:
    body = _mapping(document, where, ("port", "interface", "netns", "queues", *PORT_KEYS))
    for key in ("interface", "netns"):
        value = body.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise ConfigError(f"{where}.{key}: must be a non-empty string or absent, not {value!r}")
    config = changed_port(PortConfig(), {key: body[key] for key in PORT_KEYS if key in body}, where)
    for index, item in enumerate(_list(body, "queues", where)):
        at = f"{where}.queues[{index}]"
        queue = _mapping(item, at, ("priority", *QUEUE_KEYS))
        if "priority" not in queue:
            raise ConfigError(f"{at}.priority: is missing; it must be 0..{PRIORITIES - 1}")
        config = changed_queue(config, queue["priority"], {k: v for k, v in queue.items() if k != "priority"}, at)
    return PortSpec(
        port=_integer(body, "port", where, None, 1, PORT_MAX),
        interface=body.get("interface"),
        netns=body.get("netns"),
        config=config,
    )


def changed_port(config: PortConfig, changes: Mapping[str, object], where: str = "port") -> PortConfig:
    """`config` with `changes` (any of PORT_KEYS) applied. Raises ConfigError and changes nothing otherwise."""
    _mapping(changes, where, PORT_KEYS)
    values: dict[str, Any] = {}
    for key, value in changes.items():
        if key == "up":
            if not isinstance(value, bool):
                raise ConfigError(f"{where}.up: must be true or false, not {value!r}")
            values[key] = value
        elif key == "loss":
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ConfigError(f"{where}.loss: must be a share of 0..1, not {value!r}")
            values[key] = float(value)
        else:
            values[key] = _integer(changes, key, where, None, 0, (1 << 63) - 1)
    return replace(config, **values)


def changed_queue(
    config: PortConfig, priority: object, changes: Mapping[str, object], where: str = "queue"
) -> PortConfig:
    """`config` with one queue's limits (any of QUEUE_KEYS) changed. Raises ConfigError."""
    if isinstance(priority, bool) or not isinstance(priority, int) or not 0 <= priority < PRIORITIES:
        raise ConfigError(f"{where}.priority: must be 0..{PRIORITIES - 1}, not {priority!r}")
    _mapping(changes, where, QUEUE_KEYS)
    values = {key: _integer(changes, key, where, None, 0, (1 << 63) - 1) for key in changes}
    queues = list(config.queues)
    queues[priority] = replace(queues[priority], **values)
    return replace(config, queues=tuple(queues))


def _mapping(value: object, where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: must be an object with keys of {', '.join(keys)}, not {value!r}")
    for key in value:
        if key not in keys:
            raise ConfigError(f"{where}: unknown key {key!r}; valid keys: {', '.join(keys)}")
    return value


def _list(body: Mapping[str, Any], key: str, where: str) -> list[object]:
    value = body.get(key, [])
    if not isinstance(value, list):
        raise ConfigError(f"{where}.{key}: must be a list, not {value!r}")
    return value


def _integer(
    body: Mapping[str, Any], key: str, where: str, default: int | None, low: int, high: int = (1 << 63) - 1
) -> int:
    value = body.get(key, default)
    if value is None:
        raise ConfigError(f"{where}.{key}: is missing; it must be an integer of {low}..{high}")
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{where}.{key}: must be an integer of {low}..{high}, not {value!r}")
    return value


def _distinct(values: list[Any], where: str) -> None:
    for value, times in Counter(values).items():
        if times > 1:
            raise ConfigError(f"{where} must be distinct, but {value!r} occurs {times} times")
