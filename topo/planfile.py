"""Plan files: TOML in, a checked `Plan` out. Every complaint names the key, the rule and the valid range."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from topo.plan import (
    OVERHEAD_BYTES,
    SWITCH_KINDS,
    TRIM_SIZE_BYTES_MIN,
    Dscp,
    Links,
    Packets,
    Plan,
    Queues,
    Trimming,
)

PLANS_DIR = Path(__file__).parent / "plans"

_FABRIC_RANGES = {"planes": (1, 8), "leaves": (1, 512), "spines": (1, 256), "hosts_per_leaf": (1, 256)}
_RATE = (1_000, 1_600_000_000_000)
_DELAY = (0, 1_000_000_000)
_RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "links": {
        "host_rate_bps": _RATE,
        "fabric_rate_bps": _RATE,
        "host_delay_ns": _DELAY,
        "fabric_delay_ns": _DELAY,
        "mtu_bytes": (1280, 65_521),
        "hardware_rate_bps": _RATE,
    },
    "packets": {"pmtu_bytes": (256, 4096), "udp_port": (1, 65_535)},
    "queues": {
        "ecn_min": (0.0, 100.0),
        "ecn_max": (0.0, 100.0),
        "trim": (0.01, 100.0),
        "trim_lasthop": (0.01, 100.0),
        "no_trim_drop": (0.01, 100.0),
        "depth": (0.01, 1000.0),
        "control_depth": (0.01, 100.0),
    },
    "trimming": {"size_bytes": (TRIM_SIZE_BYTES_MIN, 512), "share": (0.01, 0.5)},
    "dscp": {f.name: (0, 63) for f in fields(Dscp)},
}
_SECTIONS: dict[str, Any] = {
    "links": Links,
    "packets": Packets,
    "queues": Queues,
    "trimming": Trimming,
    "dscp": Dscp,
}


class PlanError(ValueError):
    """A plan that cannot be built. The message names the key, the rule and what would be valid."""


def shipped_plans() -> list[str]:
    """The names that `load_plan` knows without a path."""
    return sorted(path.stem for path in PLANS_DIR.glob("*.toml"))


def load_plan(name_or_path: str | Path, overrides: Mapping[str, str] | None = None) -> Plan:
    """A shipped plan by its name, or any plan by the path of its file.

    `overrides` change single keys: "trimming.enabled" to "false", "switch" to "bmv2". Values are TOML; what is not, is
    a string.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml" and path.name == str(name_or_path):
        path = PLANS_DIR / f"{name_or_path}.toml"
        if not path.exists():
            raise PlanError(f"no plan {str(name_or_path)!r}: shipped are {', '.join(shipped_plans())}; or give a .toml")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"plan file {path}: {error}") from error
    return parse_plan(text, source=str(path), overrides=overrides)


def parse_plan(text: str, source: str = "plan", overrides: Mapping[str, str] | None = None) -> Plan:
    """A plan from TOML text; `source` names it in errors. Raises PlanError with the key, the rule and the range."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{source}: not TOML: {error}") from error
    try:
        for key, value in (overrides or {}).items():
            _override(document, key, value)
        return parse_document(document)
    except PlanError as error:
        raise PlanError(f"{source}: {error}") from None


def _override(document: dict[str, Any], key: str, value: str) -> None:
    """Set one key, given as SECTION.KEY or KEY. Whether there is such a key, `parse_document` says."""
    section, dot, name = key.rpartition(".")
    table = document.setdefault(section, {}) if dot else document
    if not isinstance(table, dict):
        raise PlanError(f"{key}: {section} is no section of a plan")
    try:
        table[name] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        table[name] = value


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as a TOML or JSON document; `parse_document` is the inverse."""
    return {
        "name": plan.name,
        "description": plan.description,
        "switch": plan.switch,
        "encapsulation": plan.encapsulation,
        "fabric": {key: getattr(plan, key) for key in _FABRIC_RANGES},
        **{section: asdict(getattr(plan, section)) for section in _SECTIONS},
        "srv6": {"usid_block": str(plan.usid_block)},
        "switches": dict(plan.switch_overrides),
    }


def parse_document(document: dict[str, Any]) -> Plan:
    """A plan from what `plan_document` made. Raises PlanError."""
    known = ("name", "description", "switch", "encapsulation", "fabric", "srv6", "switches", *_SECTIONS)
    _refuse_unknown("", document, known)
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise PlanError("name: a plan needs a name, a non-empty string")
    fabric = _table(document, "fabric")
    _refuse_unknown("fabric.", fabric, tuple(_FABRIC_RANGES))
    shape: dict[str, Any] = {}
    for key, (low, high) in _FABRIC_RANGES.items():
        if key not in fabric:
            raise PlanError(f"fabric.{key} is missing: an integer from {low} to {high}")
        shape[key] = _number(f"fabric.{key}", fabric[key], int, low, high)
    srv6 = _table(document, "srv6")
    _refuse_unknown("srv6.", srv6, ("usid_block",))
    sections: dict[str, Any] = {section: _section(document, section) for section in _SECTIONS}
    plan = Plan(
        name=name,
        description=_text(document, "description"),
        switch=_choice("switch", document.get("switch", "embedded"), SWITCH_KINDS),
        encapsulation=_choice("encapsulation", document.get("encapsulation", "srv6"), ("srv6", "none")),
        usid_block=_block(srv6.get("usid_block", "fcbb:bbbb::/32")),
        **sections,
        **shape,
    )
    overrides = {}
    for key, kind in _table(document, "switches").items():
        try:
            plan.switch_node(key)
        except ValueError as error:
            raise PlanError(f"switches.{key}: {error}") from None
        overrides[key] = _choice(f"switches.{key}", kind, SWITCH_KINDS)
    plan = replace(plan, switch_overrides=MappingProxyType(overrides))
    check_plan(plan)
    return plan


def check_plan(plan: Plan) -> None:
    """The rules that tie one key to another; also for plans made in code. PlanError on the first one broken."""
    for key, shape_range in _FABRIC_RANGES.items():
        _number(f"fabric.{key}", getattr(plan, key), int, *shape_range)
    for section in _SECTIONS:
        for key, valid_range in _RANGES[section].items():
            _number(f"{section}.{key}", getattr(getattr(plan, section), key), (int, float), *valid_range)
    if plan.encapsulation == "none" and plan.planes != 1:
        raise PlanError(
            f"encapsulation: 'none' is the single-plane baseline, but fabric.planes is {plan.planes}:"
            " set planes = 1 or encapsulation = 'srv6'"
        )
    _check_mtu(plan)
    q = plan.queues
    order = [("ecn_min", q.ecn_min), ("ecn_max", q.ecn_max)]
    if not q.ecn_min <= q.ecn_max:
        raise PlanError(f"queues.ecn_min must not exceed queues.ecn_max: {order[0][1]} > {order[1][1]}")
    for key in ("ecn_max", "trim", "trim_lasthop", "no_trim_drop"):
        value = getattr(q, key)
        if not value < q.depth:
            raise PlanError(
                f"queues.depth must exceed queues.{key}, or the traffic manager drops before the switch can mark or"
                f" trim: depth is {q.depth}, {key} is {value} (multiples of Plane_BDP, {plan.plane_bdp_bytes} bytes)"
            )
    for key in ("trim", "trim_lasthop", "no_trim_drop"):
        if plan.threshold_packets(getattr(q, key)) >= plan.depth_packets:
            raise PlanError(
                f"queues.depth in packets must exceed queues.{key} in packets: both round to {plan.depth_packets} of"
                f" {plan.frame_bytes_max} bytes; raise queues.depth above {q.depth} or the link delays"
            )
    seen: dict[int, str] = {}
    for key, value in asdict(plan.dscp).items():
        if value in seen:
            raise PlanError(f"dscp.{key} must differ from dscp.{seen[value]}: both are {value} (valid: 0 to 63)")
        seen[value] = key


def _check_mtu(plan: Plan) -> None:
    parts = {k: v for k, v in OVERHEAD_BYTES.items() if plan.encapsulation == "srv6" or k != "outer IPv6"}
    need = plan.packets.pmtu_bytes + sum(parts.values())
    if plan.links.mtu_bytes < need:
        arithmetic = " + ".join(f"{name} {size}" for name, size in parts.items())
        raise PlanError(
            f"links.mtu_bytes must hold a full data packet: payload {plan.packets.pmtu_bytes} + {arithmetic}"
            f" = {need}, but it is {plan.links.mtu_bytes}; valid: {need} to 65521,"
            f" or packets.pmtu_bytes at most {plan.links.mtu_bytes - sum(parts.values())}"
        )


def _section(document: Mapping[str, Any], section: str) -> Any:
    cls = _SECTIONS[section]
    table = _table(document, section)
    names = {f.name: f for f in fields(cls)}
    _refuse_unknown(f"{section}.", table, tuple(names))
    values: dict[str, Any] = {}
    for key, value in table.items():
        default = names[key].default
        if isinstance(default, bool):
            if not isinstance(value, bool):
                raise PlanError(f"{section}.{key} must be true or false, not {value!r}")
            values[key] = value
        else:
            wanted = (int, float) if isinstance(default, float) else int
            values[key] = _number(f"{section}.{key}", value, wanted, *_RANGES[section][key])
    return cls(**values)


def _table(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise PlanError(f"{key} must be a table, [{key}], not {value!r}")
    return value


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key, "")
    if not isinstance(value, str):
        raise PlanError(f"{key} must be a string, not {value!r}")
    return value


def _refuse_unknown(prefix: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise PlanError(f"{prefix}{key} is no key of a plan: valid here are {', '.join(known)}")


def _number(key: str, value: Any, wanted: Any, low: float, high: float) -> Any:
    kind = "an integer" if wanted is int else "a number"
    valid: bool = not isinstance(value, bool) and isinstance(value, wanted) and low <= value <= high
    if not valid:
        raise PlanError(f"{key} must be {kind} from {low:g} to {high:g}, not {value!r}".replace("e+", "e"))
    return value


def _choice(key: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise PlanError(f"{key} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def _block(value: Any) -> ipaddress.IPv6Network:
    rule = "srv6.usid_block must be an IPv6 prefix of 32 bits (F3216), such as 'fcbb:bbbb::/32'"
    try:
        network = ipaddress.IPv6Network(value if isinstance(value, str) else repr(value))
    except ValueError as error:
        raise PlanError(f"{rule}: {error}") from None
    if network.prefixlen != 32:
        raise PlanError(f"{rule}, not {value!r}")
    if network.overlaps(ipaddress.IPv6Network("fd00::/16")) or network.is_multicast or network.network_address == 0:
        raise PlanError(f"{rule} outside fd00::/16 (the hosts' own) and ff00::/8, not {value!r}")
    return network
