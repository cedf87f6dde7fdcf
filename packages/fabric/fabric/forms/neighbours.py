"""Neighbour tables of LLDP: `lldpcli show neighbors -f json` or `json0`, and `show lldp table` of SONiC."""

import re
from collections.abc import Iterator
from typing import Any

from fabric.facts import NAME, Cable, End, Facts, Place
from fabric.lines import Row, Table, rows

HEAD = re.compile(r"(?m)^LocalPort +RemoteDevice +RemotePortID")


def is_lldp(value: Any) -> bool:
    """Whether a JSON document is what lldpcli writes."""
    return isinstance(value, Table) and isinstance(value.get("lldp"), Table | Row)


def is_lldp_table(text: str) -> bool:
    """Whether a text is SONiC's table."""
    return bool(HEAD.search(text))


def lldp(value: Table, file: str, name: str, facts: Facts) -> None:
    """Read what the device `name` sees."""
    tables = [value["lldp"]] if isinstance(value["lldp"], Table) else [each for each, _ in rows(value["lldp"])]
    for table in tables:
        for port, row, line in _interfaces(table.get("interface") if isinstance(table, Table) else None):
            chassis, far = _chassis(row), _port(row)
            if chassis and far:
                _seen(facts, name, port, chassis, far, Place(file, line))
            else:
                facts.remark(Place(file, line), f"{name}: neighbour of {port} without a name or a port; not used")


def lldp_table(text: str, file: str, name: str, facts: Facts) -> None:
    """Read SONiC's table as what the device `name` sees."""
    begun = False
    for line, row in enumerate(text.splitlines(), 1):
        words = row.split()
        if HEAD.match(row):
            begun = True
        elif not begun or not words or row.startswith(("-", "Total")):
            continue
        elif len(words) < 3:
            facts.remark(Place(file, line), f"{name}: row of a neighbour table not understood: {row[:60]!r}")
        else:
            _seen(facts, name, words[0], words[1], words[2], Place(file, line))


def _seen(facts: Facts, name: str, port: str, chassis: str, far: str, place: Place) -> None:
    """Names of LLDP may be qualified by a domain."""
    if not all(map(NAME.fullmatch, (port, chassis, far))):
        told = f"neighbour {chassis[:60]!r}, port {far[:60]!r}, of port {port[:60]!r}"
        facts.remark(place, f"{name}: {told}: a name must match {NAME.pattern}; not used")
        return
    short = chassis.partition(".")[0]
    if chassis not in facts.devices and short in facts.devices:
        chassis = short
    facts.neighbours.append(Cable(End(name, port), End(chassis, far), place, "lldp"))


def _interfaces(value: Any) -> Iterator[tuple[str, Table, int]]:
    """The four ways in which lldpcli writes interfaces: one or several, by key or with a name."""
    for each, line in rows(value) if isinstance(value, Row) else [(value, 1)]:
        if not isinstance(each, Table):
            continue
        if isinstance(each.get("name"), str):
            yield each["name"], each, line
            continue
        for port, row in each.items():
            if isinstance(row, Table):
                yield port, row, each.lines[port]


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, Row) and value else value


def _chassis(row: Table) -> str:
    chassis = _first(row.get("chassis"))
    if not isinstance(chassis, Table):
        return ""
    name = _first(chassis.get("name"))
    if isinstance(name, Table):
        return name.text("value")
    if isinstance(name, str):
        return name
    return next((key for key, value in chassis.items() if isinstance(value, Table) and key != "id"), "")


def _port(row: Table) -> str:
    """The interface's name; else the description, where the identifier is an address."""
    port = _first(row.get("port"))
    if not isinstance(port, Table):
        return ""
    own = _first(port.get("id"))
    if isinstance(own, Table) and own.text("type") in ("ifname", "local"):
        return own.text("value")
    described = _first(port.get("descr"))
    return described.text("value") if isinstance(described, Table) else described if isinstance(described, str) else ""
