"""The file that describes a NIC under test: addresses, ports, EVs, limits, timers, and how to talk to the device.

Everything has a default but `[control]`, so that a small file is enough; `docs/conformance.md` lists the keys.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, fields
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any, TypeVar

from common import plain_file
from common.fields import parse_toml

DSCP = {"no_trim": 0, "trimmable": 10, "trimmable_retransmit": 12, "trimmed": 20, "trimmed_lasthop": 22, "control": 46}


class DeviceFileError(ValueError):
    """The file breaks a rule; the message names the key, the rule and what was given."""


@dataclass(frozen=True, slots=True)
class End:
    """Addresses of the device or of the tester; a MAC and an outer address per port."""

    address: str
    usid_address: str
    macs: tuple[str, ...]
    port_addresses: tuple[str, ...]

    @property
    def packed(self) -> bytes:
        return IPv6Address(self.address).packed


@dataclass(frozen=True, slots=True)
class Control:
    """How requests reach the device: exactly one of a command (stdin and stdout), a Unix socket, HOST:PORT."""

    command: tuple[str, ...] = ()
    unix: str = ""
    tcp: str = ""
    answer_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Timers:
    """The device's timers, in units of its clock: a time is `unit_ns` times 2 to the exponent."""

    unit_ns: int = 1024
    timeout: int = 19
    """Exponent of the local ACK timeout."""
    linear: int = 2
    exponential: int = 1


@dataclass(frozen=True, slots=True)
class DeviceFile:
    """One NIC under test."""

    control: Control
    name: str = "a NIC"
    pmtu: int = 256
    mpr: int = 8
    wimm: int = 32
    udp_port: int = 4791
    encapsulation: str = "srv6"
    answer_ms: int = 1000
    """The longest time in which the device answers a frame."""
    settle_ms: int = 2
    """How long the tester listens after the device has answered a probe, before it takes silence for an answer."""
    ev_probe: bool = True
    """Whether the device answers EV probes. If not, the tester waits `answer_ms` where nothing may come."""
    trimming: bool = True
    trim_bytes: int = 128
    device: End = End(
        "fd00::2", "fcbb:bbbb:3001::", ("02:00:00:00:01:01", "02:00:00:00:01:02"), ("fd00:1::2", "fd00:2::2")
    )
    tester: End = End(
        "fd00::1", "fcbb:bbbb:3000::", ("02:00:00:00:00:01", "02:00:00:00:00:02"), ("fd00:1::1", "fd00:2::1")
    )
    evs: dict[int, int] = field(
        default_factory=lambda: {port - 1 << 16 | n: port for port in (1, 2) for n in (1, 2, 3, 4)}
    )
    """Port by EV."""
    dscp: dict[str, int] = field(default_factory=lambda: dict(DSCP))
    timers: Timers = Timers()

    @property
    def ports(self) -> int:
        return len(self.device.macs)


T = TypeVar("T")


def load(path: Path) -> DeviceFile:
    """Read and check a file. Raises `DeviceFileError`."""
    return parse(plain_file.read_named(path))


def parse(text: str) -> DeviceFile:
    """The same of its text."""
    data = parse_toml(text, "the device file", DeviceFileError)
    if "control" not in data:
        raise DeviceFileError("a device file must have [control] with one of command, unix, tcp")
    control = data["control"]
    if isinstance(control.get("command"), str):
        control["command"] = shlex.split(control["command"])
    data["control"] = filled(Control(), control, "control")
    if sum(map(bool, (data["control"].command, data["control"].unix, data["control"].tcp))) != 1:
        raise DeviceFileError("[control] must have exactly one of command, unix, tcp")
    base = DeviceFile(data["control"])
    for key in ("device", "tester", "timers"):
        if key in data:
            data[key] = filled(getattr(base, key), data[key], key)
    if "evs" in data:
        data["evs"] = {int(ev, 0): port for ev, port in data["evs"].items()}
    if "dscp" in data:
        data["dscp"] = DSCP | data["dscp"]
    found = filled(base, data, "the file")
    check(found)
    return found


def filled(base: T, data: dict[str, Any], where: str) -> T:
    """A copy of the data class with these values."""
    names: dict[str, Any] = {one.name: getattr(base, one.name) for one in fields(base)}  # type: ignore[arg-type]
    for key, value in data.items():
        if key not in names:
            raise DeviceFileError(f"{where} has no key {key}; valid: {', '.join(names)}")
        wanted = type(names[key])
        if wanted is tuple and isinstance(value, list):
            value = tuple(value)
        if wanted is float and type(value) is int:
            value = float(value)
        if type(value) is not wanted:
            raise DeviceFileError(f"{key} of {where} must be {wanted.__name__} (got {value!r})")
        names[key] = value
    return type(base)(**names)


def check(found: DeviceFile) -> None:
    """Ranges, and what must fit together."""
    for name, low, high in (("pmtu", 256, 4096), ("mpr", 1, 64), ("wimm", 1, 65535), ("answer_ms", 1, 60000)):
        if not low <= getattr(found, name) <= high:
            raise DeviceFileError(f"{name} must be between {low} and {high} (got {getattr(found, name)})")
    for end in (found.device, found.tester):
        if not len(end.macs) == len(end.port_addresses) == found.ports:
            raise DeviceFileError("device and tester must have a MAC and an address per port, and equally many ports")
    if not found.evs or any(not 1 <= port <= found.ports for port in found.evs.values()):
        raise DeviceFileError(f"evs must be of ports 1 to {found.ports} (got {found.evs})")
    if found.encapsulation not in ("srv6", "none"):
        raise DeviceFileError(f"encapsulation must be srv6 or none (got {found.encapsulation!r})")


def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
