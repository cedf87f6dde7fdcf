"""Plan files: TOML in, a checked `Plan` out. Every complaint names the key, the rule and the valid range."""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from common import plain_file
from common.fields import OWN, TOML_BYTES_MAX, Fields, parse_toml
from topo import htsim
from topo.errors import PlanError as PlanError
from topo.node import is_node_name
from topo.plan import (
    ENCAPSULATIONS,
    OVERHEAD_BYTES,
    PRIORITY_CONTROL,
    PRIORITY_DATA,
    PRIORITY_LOSSLESS,
    SWITCH_KINDS,
    TRIM_SIZE_BYTES_MIN,
    Dscp,
    Links,
    Packets,
    Pfc,
    Plan,
    Queues,
    SwitchKind,
    Trimming,
)
from topo.topologies import TOPOLOGIES, LeafSpine, Topology, TopologyError

__all__ = ["check_pfc", "parse_document", "parse_plan", "shipped_plans", "switch_of_environment"]

PLANS_DIR = Path(__file__).parent / "plans"

TOPO = ".topo"
"""The ending of a topology file of htsim (`htsim.py`)."""

USID_BLOCK = "fcbb:bbbb::/32"
_NAME = re.compile(r"[A-Za-z0-9][\w.:-]{0,63}", re.ASCII)
_RATE = (1_000, 8_000_000_000_000)
_DELAY = (0, 1_000_000_000)
_RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "links": {
        "host_rate_bps": _RATE,
        "fabric_rate_bps": _RATE,
        "host_delay_ns": _DELAY,
        "fabric_delay_ns": _DELAY,
        "mtu_bytes": (1280, 65_521),
        "wire_overhead_bytes": (0, 256),
        "nic_latency_ns": _DELAY,
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
        "retransmit_priority": (PRIORITY_DATA, PRIORITY_CONTROL - 1),
    },
    "trimming": {"size_bytes": (TRIM_SIZE_BYTES_MIN, 512), "share": (0.01, 0.5)},
    "dscp": {f.name: (0, 63) for f in fields(Dscp)},
    "pfc": {"xoff": (0.01, 1000.0), "xon": (0.0, 1000.0), "quanta": (256, 65_535), "watchdog_rtts": (1.0, 1e9)},
}
_SECTIONS: dict[str, Any] = {
    "links": Links,
    "packets": Packets,
    "queues": Queues,
    "trimming": Trimming,
    "dscp": Dscp,
    "pfc": Pfc,
}


def shipped_plans() -> list[str]:
    """The names that `load_plan` knows without a path."""
    return sorted(path.stem for path in PLANS_DIR.glob("*.toml"))


def switch_of_environment() -> SwitchKind | None:
    """The kind of switch that MRCLAB_SWITCH names; None without it. PlanError for an unknown kind."""
    kind = os.environ.get("MRCLAB_SWITCH")
    if not kind:
        return None
    for known in SWITCH_KINDS:
        if kind == known:
            return known
    raise PlanError(f"MRCLAB_SWITCH must be one of {', '.join(SWITCH_KINDS)} (got {kind!r})")


def load_plan(
    name_or_path: str | Path, overrides: Mapping[str, str] | None = None, overridden_by: str = "--set "
) -> Plan:
    """A shipped plan by its name, or any plan by the path of its file.

    `overrides` change single keys: "trimming.enabled" to "false", "switch" to "bmv2". A value that is not TOML is taken
    for a string. An error that an override causes begins with `overridden_by` and the override, not with the file.
    """
    path = Path(name_or_path)
    if path.suffix not in (".toml", TOPO) and path.name == str(name_or_path):
        path = PLANS_DIR / f"{name_or_path}.toml"
        if not path.exists():
            raise PlanError(
                f"no plan {str(name_or_path)!r}: shipped are {', '.join(shipped_plans())}; or give a .toml or {TOPO}"
            )
    try:
        text = plain_file.read_named(path, TOML_BYTES_MAX)
    except OSError as error:
        shipped = f"; shipped are {', '.join(shipped_plans())}"
        raise PlanError(f"plan file {path}: {plain_file.why(error)}{shipped}") from error
    except UnicodeDecodeError as error:
        form = "a topology file" if path.suffix == TOPO else "TOML"
        raise PlanError(f"plan file {path} must be {form} ({plain_file.text_fault(error)})") from error
    if path.suffix == TOPO:
        document, lines = htsim.document(text, str(path))
        complaint = _complaint(document, {})
        line = next((number for key, number in lines.items() if complaint.startswith(key)), 0)
        if line:
            raise PlanError(f"{path}:{line}: {complaint}")
        return _changed(document, str(path), overrides or {}, overridden_by)
    return _changed(parse_toml(text, str(path), PlanError), str(path), overrides or {}, overridden_by)


def parse_plan(text: str, source: str = "plan", overrides: Mapping[str, str] | None = None) -> Plan:
    """A plan from TOML text; `source` names it in errors. Raises PlanError with the key, the rule and the range."""
    return _changed(parse_toml(text, source, PlanError), source, overrides or {}, "--set ")


def _changed(document: dict[str, Any], source: str, overrides: Mapping[str, str], overridden_by: str) -> Plan:
    """The plan of a document in which some keys are changed. PlanError names the overrides at fault, else `source`."""
    try:
        return _overridden(document, overrides)
    except PlanError as error:
        complaint = str(error)
    blamed = dict(overrides)
    for key in overrides:
        others = {name: value for name, value in blamed.items() if name != key}
        if _complaint(document, others) == complaint:
            blamed = others
    named = " ".join(f"{overridden_by}{key}={value}" for key, value in blamed.items())
    raise PlanError(f"{named or source}: {complaint}")


def _complaint(document: dict[str, Any], overrides: Mapping[str, str]) -> str:
    """The first complaint about a document in which some keys are changed; "" without one."""
    try:
        _overridden(document, overrides)
    except PlanError as error:
        return str(error)
    return ""


def _overridden(document: dict[str, Any], overrides: Mapping[str, str]) -> Plan:
    """The plan of a document in which some keys are changed; the document stays as it is."""
    changed = {key: dict(value) if isinstance(value, dict) else value for key, value in document.items()}
    for key, value in overrides.items():
        _override(changed, key, value)
    return parse_document(changed)


def _override(document: dict[str, Any], key: str, value: str) -> None:
    """Set one key, given as SECTION.KEY or KEY. `parse_document` checks that there is such a key."""
    section, dot, name = key.rpartition(".")
    table = document.setdefault(section, {}) if dot else document
    if not isinstance(table, dict):
        raise PlanError(f"{section} is no section of a plan")
    try:
        table[name] = parse_toml(f"value = {value}", "", ValueError)["value"]
    except ValueError:
        table[name] = value


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as a TOML or JSON document; `parse_document` is the inverse."""
    return {
        "name": plan.name,
        "description": plan.description,
        "switch": plan.switch,
        "encapsulation": plan.encapsulation,
        "fabric": _fabric_document(plan),
        **{section: asdict(getattr(plan, section)) for section in _SECTIONS},
        "srv6": {"usid_block": str(plan.usid_block)},
        "switches": dict(plan.switch_overrides),
        **({"names": dict(plan.names)} if plan.names else {}),
    }


def parse_document(document: object) -> Plan:
    """A plan from what `plan_document` made. Raises PlanError."""
    known = ("name", "description", "switch", "encapsulation", "fabric", "srv6", "switches", "names", *_SECTIONS)
    top = Fields("", document, PlanError, known)
    topology = _topology(top)
    plan = Plan(
        name=top.string("name"),
        description=top.string("description", ""),
        switch=top.choice("switch", SWITCH_KINDS, "embedded"),
        encapsulation=top.choice("encapsulation", ENCAPSULATIONS, "srv6"),
        usid_block=top.fields("srv6", ("usid_block",), {}).converted("usid_block", _block, USID_BLOCK),
        **{section: _section(top, section) for section in _SECTIONS},
        planes=topology.planes,
        leaves=topology.leaves,
        spines=topology.spines,
        hosts_per_leaf=topology.hosts_per_leaf,
        shape=None if type(topology) is LeafSpine else topology,
    )
    switches = top.fields("switches", default={})
    for key in switches.values:
        try:
            plan.switch_node(key)
        except ValueError as error:
            raise PlanError(f"{switches.place(key)}: {error}") from None
    overrides = {key: switches.choice(key, SWITCH_KINDS) for key in switches.values}
    plan = replace(plan, switch_overrides=MappingProxyType(overrides), names=_names(top, plan))
    check_plan(plan)
    return plan


def _names(top: Fields, plan: Plan) -> Mapping[str, str]:
    """The section `[names]`: names of nodes elsewhere."""
    names = top.fields("names", default={})
    taken: dict[str, str] = {}
    for key in names.values:
        try:
            node = plan.node(key)
        except ValueError as error:
            raise PlanError(f"{names.place(key)}: {error}") from None
        name = names.string(key)
        if not _NAME.fullmatch(name) or (is_node_name(name) and name != node.name):
            raise PlanError(
                f"{names.place(key)} must be letters, digits, '_', '.', ':' and '-', and no other node's own name"
                f" (got {name[:80]!r})"
            )
        if name in taken:
            raise PlanError(f"{names.place(key)} must differ from names.{taken[name]}: both are {name!r}")
        taken[name] = key
    return MappingProxyType({key: name for name, key in taken.items()})


OWN[Plan] = (plan_document, parse_document)


def check_plan(plan: Plan) -> None:
    """The rules that tie one key to another; also for plans made in code. PlanError on the first one broken."""
    _check_topology(plan)
    if not plan.name.isprintable():
        raise PlanError(f"name must be one line of printable characters (got {plan.name!r})")
    for section in _SECTIONS:
        values = Fields(section, asdict(getattr(plan, section)), PlanError)
        for key, valid_range in _RANGES[section].items():
            values.number(key, *valid_range)
    if plan.encapsulation == "none" and plan.planes != 1:
        raise PlanError(
            f"encapsulation: 'none' is the single-plane baseline, but fabric.planes is {plan.planes}:"
            " set planes = 1 or encapsulation = 'srv6'"
        )
    _check_mtu(plan)
    check_pfc(plan)
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


def _fabric_document(plan: Plan) -> dict[str, Any]:
    """The usual topology goes without its name."""
    document = plan.topology.document()
    return document if plan.shape is not None else {key: document[key] for key in LeafSpine.RANGES}


def _topology(top: Fields) -> Topology:
    """The section `[fabric]`: which topology, and what it asks for."""
    fabric = top.fields("fabric", default={})
    kind = TOPOLOGIES[fabric.choice("topology", tuple(TOPOLOGIES), LeafSpine.NAME)]
    fabric = top.fields("fabric", ("topology", *kind.KEYS), {})
    try:
        return kind.parse(fabric)
    except TopologyError as error:
        raise PlanError(f"fabric.{error}") from None


def _check_topology(plan: Plan) -> None:
    """Ranges, and numbers that fit together; a plan with a shape has its shape's numbers."""
    topology = plan.topology
    fabric = Fields("fabric", topology.document(), PlanError)
    for key, limits in topology.RANGES.items():
        fabric.integer(key, *limits)
    for key in LeafSpine.RANGES:
        if getattr(plan, key) != getattr(topology, key):
            raise PlanError(
                f"fabric.{key}: must be the topology's, {getattr(topology, key)} (got {getattr(plan, key)}): change"
                f" the shape, a {topology.NAME}"
            )
    if why := topology.complaint():
        raise PlanError(f"fabric.{why}")


def check_pfc(plan: Plan) -> None:
    """The rules of flow control; also for a plan that was changed in code. PlanError on a broken one."""
    pfc = plan.pfc
    if pfc.xon > pfc.xoff:
        raise PlanError(f"pfc.xon must not exceed pfc.xoff: {pfc.xon} > {pfc.xoff} (multiples of Plane_BDP)")
    if not pfc.enabled:
        return
    if plan.queues.retransmit_priority == PRIORITY_LOSSLESS:
        raise PlanError(
            f"queues.retransmit_priority must not be {PRIORITY_LOSSLESS}, the lossless one, with pfc.enabled"
        )
    if plan.encapsulation != "none":
        raise PlanError(
            "pfc.enabled: flow control is the single-plane baseline's, and MRC runs without it: set"
            " encapsulation = 'none' and fabric.planes = 1 as well, or leave it out and take --transport roce-pfc, or"
            " up --single-plane --pfc"
        )
    kinds = {plan.kind_of(switch) for switch in plan.switches()} - {"embedded"}
    if kinds:
        raise PlanError(
            f"pfc.enabled: {' and '.join(sorted(kinds))} switches have no priority-based flow control (BMv2's and the"
            " kernel's queues neither count what came by a port nor can be paused): valid is switch = 'embedded'"
        )


def _section(top: Fields, section: str) -> Any:
    defaults = asdict(_SECTIONS[section]())
    given = top.fields(section, tuple(defaults), {})
    ranges = _RANGES[section]
    return _SECTIONS[section](**{key: given.like(key, defaults[key], *ranges.get(key, ())) for key in given.values})


def _block(text: str) -> ipaddress.IPv6Network:
    network = ipaddress.IPv6Network(text)
    if network.prefixlen != 32:
        raise ValueError("a uSID block is an IPv6 prefix of 32 bits (F3216), such as 'fcbb:bbbb::/32'")
    if network.overlaps(ipaddress.IPv6Network("fd00::/16")) or network.is_multicast or network.network_address == 0:
        raise ValueError("a uSID block is outside fd00::/16 (the hosts' own) and ff00::/8, such as 'fcbb:bbbb::/32'")
    return network
