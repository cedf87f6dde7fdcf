"""SONiC's CONFIG_DB as JSON: ports, interfaces, SRv6, static routes, trimming, ECN and the expected neighbours."""

from typing import Any

from fabric.facts import (
    Cable,
    Device,
    End,
    Facts,
    Locator,
    Place,
    Route,
    Setting,
    Sid,
    address,
    checked_name,
    interface_address,
    network,
    number,
)
from fabric.lines import Table

MARKS = ("DEVICE_METADATA", "PORT", "INTERFACE", "SRV6_MY_SIDS", "SRV6_MY_LOCATORS", "STATIC_ROUTE")
ROLES = {"ToRRouter": "leaf", "LeafRouter": "spine", "SpineRouter": "core", "Server": "host"}
"""`DEVICE_METADATA|localhost` `type`; SONiC's T1 is called LeafRouter."""
READ = (
    "DEVICE_METADATA", "PORT", "INTERFACE", "LOOPBACK_INTERFACE", "VRF", "STATIC_ROUTE", "SRV6_MY_LOCATORS",
    "SRV6_MY_SIDS", "DEVICE_NEIGHBOR", "SWITCH_TRIMMING", "WRED_PROFILE", "QUEUE", "BUFFER_PROFILE",
)  # fmt: skip
IGNORED = (
    "FEATURE", "MGMT_INTERFACE", "MGMT_PORT", "MGMT_VRF_CONFIG", "NTP", "NTP_SERVER", "SYSLOG_SERVER", "CRM",
    "FLEX_COUNTER_TABLE", "LOGGER", "VERSIONS", "TELEMETRY", "RESTAPI", "SNMP", "DNS_NAMESERVER", "LOOPBACK",
    "CONSOLE_SWITCH", "AUTO_TECHSUPPORT", "AUTO_TECHSUPPORT_FEATURE", "BANNER_MESSAGE", "KDUMP", "NTP_KEY",
    "PASSW_HARDENING", "SYSTEM_DEFAULTS", "DEVICE_NEIGHBOR_METADATA", "CABLE_LENGTH", "BUFFER_POOL", "BUFFER_PG",
    "BUFFER_QUEUE", "DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP", "PORT_QOS_MAP", "SCHEDULER", "TC_TO_PRIORITY_GROUP_MAP",
    "MAP_PFC_PRIORITY_TO_QUEUE", "PFC_WD", "ACL_TABLE", "ACL_RULE", "BREAKOUT_CFG", "LLDP",
)  # fmt: skip


def is_sonic(value: Any) -> bool:
    """Whether a JSON document is a CONFIG_DB."""
    return isinstance(value, Table) and any(isinstance(value.get(mark), Table) for mark in MARKS)


def hostname(value: Table) -> str:
    """The host name in `DEVICE_METADATA`."""
    return value.table("DEVICE_METADATA").table("localhost").text("hostname")


def sonic(value: Table, file: str, name: str, facts: Facts) -> None:
    """Read a CONFIG_DB as that of the device `name`."""
    device = facts.device(name, Place(file, 1))
    device.configured = True
    for table in value:
        if table not in READ and table not in IGNORED:
            facts.remark(Place(file, value.lines[table]), f"{name}: table {table[:40]} is not read")
    role = value.table("DEVICE_METADATA").table("localhost").text("type")
    device.role = ROLES.get(role, device.role)
    _ports(value, file, device)
    _interfaces(value, file, device)
    _srv6(value, file, device)
    _routes(value.table("STATIC_ROUTE"), file, device)
    _settings(value, file, device)
    neighbours = value.table("DEVICE_NEIGHBOR")
    for port, row in neighbours.items():
        place = Place(file, neighbours.lines[port])
        if isinstance(row, Table) and row.text("name") and row.text("port"):
            far = End(checked_name(row.text("name"), place, "device"), checked_name(row.text("port"), place, "port"))
            facts.cables.append(Cable(End(name, port), far, place, "sonic"))


def _ports(value: Table, file: str, device: Device) -> None:
    ports = value.table("PORT")
    for port, row in ports.items():
        own = device.interface(port, Place(file, ports.lines[port]))
        if not isinstance(row, Table):
            continue
        for key, setting in (("mtu", "mtu"), ("speed", "speed"), ("admin_status", "admin")):
            if row.text(key):
                own.settings[setting] = Setting(row.text(key), Place(file, row.lines[key]))
        if row.text("alias"):
            device.aliases[row.text("alias")] = port


def _interfaces(value: Table, file: str, device: Device) -> None:
    device.vrfs |= set(value.table("VRF"))
    for name in ("INTERFACE", "LOOPBACK_INTERFACE"):
        table = value.table(name)
        for key, row in table.items():
            place = Place(file, table.lines[key])
            port, _, own = key.partition("|")
            interface = device.interface(port, place)
            if own:
                parsed = interface_address(own, place)
                if parsed is not None and parsed not in (known for known, _ in interface.addresses):
                    interface.addresses.append((parsed, place))
            elif isinstance(row, Table) and row.text("vrf_name"):
                interface.vrf = row.text("vrf_name")
                interface.settings["vrf"] = Setting(interface.vrf, Place(file, row.lines["vrf_name"]))


def _srv6(value: Table, file: str, device: Device) -> None:
    locators, sids = value.table("SRV6_MY_LOCATORS"), value.table("SRV6_MY_SIDS")
    for name, row in locators.items():
        place = Place(file, locators.lines[name])
        row = row if isinstance(row, Table) else Table(place.line)
        block = number(row.text("block_len", "32"), place, 8, 96)
        node = number(row.text("node_len", "16"), place, 0, 64)
        prefix = network(f"{row.text('prefix').partition('/')[0]}/{block + node}", place)
        device.locators[name] = Locator(name, prefix, block, node, True, place)
    for key, row in sids.items():
        place = Place(file, sids.lines[key])
        row = row if isinstance(row, Table) else Table(place.line)
        locator, _, prefix_text = key.rpartition("|")
        nexthop = row.text("adj") or row.text("nexthop")
        device.sids.append(
            Sid(
                network(prefix_text, place),
                row.text("action", "uN"),
                place,
                locator or row.text("locator"),
                row.text("interface") or row.text("ifname"),
                address(nexthop, place) if nexthop else None,
                row.text("decap_vrf") or row.text("vrf"),
            )
        )
        if row.text("decap_dscp_mode"):
            device.settings["SIDs' decap_dscp_mode"] = Setting(
                row.text("decap_dscp_mode"), Place(file, row.lines["decap_dscp_mode"])
            )


def _routes(table: Table, file: str, device: Device) -> None:
    """Keys are `VRF|PREFIX` or `PREFIX`; next hops and interfaces are lists with commas."""
    for key, row in table.items():
        place = Place(file, table.lines[key])
        vrf, _, prefix_text = key.rpartition("|")
        if ":" not in prefix_text or not isinstance(row, Table):
            continue
        prefix, vrf = network(prefix_text, place), "" if vrf == "default" else vrf
        hops, ports = row.text("nexthop").split(","), row.text("ifname").split(",")
        if "true" in row.text("blackhole").split(","):
            device.routes.append(Route(prefix, place, vrf=vrf))
            continue
        for index in range(max(len(hops), len(ports))):
            hop = hops[index].strip() if index < len(hops) else ""
            port = ports[index].strip() if index < len(ports) else ""
            device.routes.append(Route(prefix, place, address(hop, place) if ":" in hop else None, port, vrf))


def _settings(value: Table, file: str, device: Device) -> None:
    """Trimming and ECN, key by key."""
    for table_name, keys, label in (
        ("SWITCH_TRIMMING", ("size", "dscp_value", "queue_index"), "trimming"),
        ("WRED_PROFILE", ("ecn", "green_min_threshold", "green_max_threshold", "green_drop_probability"), "WRED"),
    ):
        table = value.table(table_name)
        for name, row in table.items():
            for key in keys:
                if isinstance(row, Table) and row.text(key):
                    where = label if name == "GLOBAL" else f"{label} {name}"
                    device.settings[f"{where} {key}"] = Setting(row.text(key), Place(file, row.lines[key]))
    queues = value.table("QUEUE")
    for key, row in queues.items():
        port, _, queue = key.rpartition("|")
        if isinstance(row, Table) and row.text("wred_profile") and port in device.interfaces:
            profile = row.text("wred_profile").strip("[]").rpartition("|")[2]
            place = Place(file, row.lines["wred_profile"])
            device.interfaces[port].settings[f"queue {queue} wred_profile"] = Setting(profile, place)
