"""The two readings of the OCP MRC specification that this endpoint speaks: its own, and MRC-Client's.

The specification's PDF could not be read here, and those who have read it disagree. `docs/reference/dialects.md` says
who reads what. The setting `dialect` of the transport, of the Wireshark dissector and of the Scapy layers takes a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from endpoint.nic.config import ConfigError
from endpoint.nic.headers import ClientEeth, Eeth

if TYPE_CHECKING:
    from endpoint.profile import NicProfile

__all__ = ["DEFAULT", "Dialect", "named"]

UDP_PORTS = (4791, 4971)
"""RoCEv2's destination port, and the one that OCP MRC 1.0 prints (taken for a transposition): both are accepted."""

EV_BITS = 32


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where packets have the fields that readers of the specification place differently."""

    name: str
    udp_port: int | None
    """The UDP destination port of packets that are sent; None: the profile's."""
    ev_bits: int
    """Bits of an EV in a packet: 32, half in the UDP source port and half in the label; or 20, all in the label and
    the low 16 in the port as well."""
    migrated_first: bool
    """Whether bits 7 and 6 of byte 1 of the BTH are migrated and solicited event, instead of IBTA's order."""
    eeth: type[Eeth]
    """The header of an endpoint response: where in its byte the operation is."""
    client_check: bool
    """Whether packets end with MRC-Client's check instead of InfiniBand's ICRC (`endpoint.nic.check`)."""

    def udp_port_of(self, profile: NicProfile) -> int:
        """The UDP destination port of packets that a NIC with this profile sends."""
        return profile.udp_port if self.udp_port is None else self.udp_port


DEFAULT = Dialect("default", udp_port=None, ev_bits=EV_BITS, migrated_first=False, eeth=Eeth, client_check=False)
"""The specification's own reading."""
MRC_CLIENT = Dialect("mrc-client", udp_port=4971, ev_bits=20, migrated_first=True, eeth=ClientEeth, client_check=True)
DIALECTS = {dialect.name: dialect for dialect in (DEFAULT, MRC_CLIENT)}


def named(name: str) -> Dialect:
    """The dialect of this name; the default for an empty one. Raises `ConfigError` with the valid names."""
    dialect = DIALECTS.get(name or DEFAULT.name)
    if dialect is None:
        raise ConfigError(f"dialect must be one of {', '.join(DIALECTS)} (got {name!r})")
    return dialect


def spoken(name: str, profile: NicProfile) -> Dialect:
    """The dialect of a NIC. Raises `ConfigError` for an unknown name, or an EV too large for its packets."""
    dialect = named(name)
    if dialect.ev_bits == EV_BITS:
        return dialect
    largest = max((path.ev for row in profile.destinations.values() for path in row.paths), default=0)
    if largest >> dialect.ev_bits:
        raise ConfigError(
            f"dialect {dialect.name} carries EVs of {dialect.ev_bits} bits, and {profile.host} has EV {largest:#x}"
        )
    return dialect
