"""The peer that a program names on the way to RTR."""

from collections.abc import Mapping
from dataclasses import fields, replace
from ipaddress import IPv6Address

from common.fields import Fields
from endpoint.transport import QPInfo
from endpoint.uverbs.refusal import RefusedError


def named_peer(given: Fields, hosts: Mapping[str, str], own: QPInfo) -> QPInfo:
    """The peer, whose values may have come from anywhere. Raises `RefusedError`.

    Either all that `info` said at the other end, or, with `address` in place of the host, the values of verbs: address,
    QP number, PSN, PMTU. All else is then taken to be as at this end, `own`.
    """
    if given.has("address"):
        return _by_address(given, hosts, own)
    known = {field.name: field for field in fields(QPInfo)}
    values = Fields(given.name, given.values, RefusedError, list(known))
    for name, field in known.items():
        if name == "host":
            values.choice("host", list(hosts))
        elif "bool" in str(field.type):
            values.boolean(name, True)
        elif "str" in str(field.type):
            if values.has(name):
                values.string(name)
        elif values.has(name) or (name in values.values and "None" not in str(field.type)):
            values.integer(name, 0, 1 << 63)
    try:
        return QPInfo(**values.values)
    except TypeError as error:
        raise RefusedError(f"{given.name} lacks attributes; it must be what the peer's info said: {error}") from error


def _by_address(given: Fields, hosts: Mapping[str, str], own: QPInfo) -> QPInfo:
    values = Fields(given.name, given.values, RefusedError, ["address", "qpn", "psn", "pmtu"])
    address = values.string("address")
    try:
        canonical = str(IPv6Address(address))
    except ValueError:
        canonical = ""
    host = next((name for name, known in hosts.items() if known == canonical), None)
    if host is None:
        valid = ", ".join(f"{known} ({name})" for name, known in list(hosts.items())[:16])
        raise RefusedError(f"the peer's address is {address}; it must be one of {valid}")
    return replace(
        own,
        host=host,
        qpn=values.integer("qpn", 0, (1 << 24) - 1),
        psn=values.integer("psn", 0, (1 << 24) - 1),
        pmtu=values.integer("pmtu", 1, 1 << 16) if values.has("pmtu") else own.pmtu,
    )
