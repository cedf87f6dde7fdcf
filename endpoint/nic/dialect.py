"""The readings of the OCP MRC specification: every field that its readers place or understand differently.

The specification's text is not public, and those who have read it disagree. A dialect is one value for each of these
choices; the first value of each is the default. `docs/reference/dialects.md` says who reads what. A dialect is
written as `NAME=VALUE` pairs with commas between them, such as `ev_halves=high-in-port,eeth_op=5:4`: the setting
`dialect` of the transport, of the Wireshark dissector and of the Scapy layers.

Whether a PSN outside of the window is refused or dropped is disputed too, but changes no field: the setting `oor_nack`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from endpoint.nic.config import ConfigError

if TYPE_CHECKING:
    from endpoint.profile import NicProfile

UDP_PORTS = (4791, 4971)
"""RoCEv2's destination port, and the one that OCP MRC 1.0 prints (taken for a transposition): both are accepted."""

CHOICES: dict[str, tuple[str, ...]] = {
    "udp_port": ("profile", "4791", "4971"),
    "ev_halves": ("low-in-port", "high-in-port", "low-in-both"),
    "ev_label": ("both", "inner", "outer"),
    "bth_order": ("se-m", "m-se"),
    "eeth_op": ("3:2", "5:4"),
    "port_mask": ("bit-0", "bit-1"),
    "port_status": ("operation", "sack"),
    "tsr_1": ("own", "1us"),
    "icrc": ("ibta", "counted", "mrc-client", "absent"),
}
"""Every choice with its values, the default first."""

MASK_BITS = 32
EV_BITS = 32
STATEMENT_MAX = 512
"""Characters that a peer's statement of its dialect may have."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One value for each choice, from `CHOICES`."""

    udp_port: str = "profile"
    """The UDP destination port of what is sent: the profile's, or this one."""
    ev_halves: str = "low-in-port"
    """Which half of an EV travels in the UDP source port; the other travels in the flow label. With low-in-both the low
    16 bits travel in the port and the low 20 in the label, as MRC-Client's format ECMP has it."""
    ev_label: str = "both"
    """Which IPv6 header's flow label carries an EV's half under encapsulation; with both, the inner one is read."""
    bth_order: str = "se-m"
    """Bits 7 and 6 of byte 1 of the BTH: solicited event, migrated (IBTA's order), or the other way round."""
    eeth_op: str = "3:2"
    """The bits of byte 1 of an endpoint response that hold its operation."""
    port_mask: str = "bit-0"
    """The bit of port 1 in a port status mask; the ports after it follow."""
    port_status: str = "operation"
    """How a NIC tells its peers which of its ports are up: endpoint operations, or a word behind CC_STATE in SACKs."""
    tsr_1: str = "own"
    """The tick of a timestamp with tsr 1: the sender's own, or a microsecond. With tsr 0 a tick is 128 ns."""
    icrc: str = "ibta"
    """A packet whose last four bytes are not InfiniBand's ICRC: dropped and counted, or counted and taken. Or packets
    end with MRC-Client's check in its place, or with none (`endpoint.nic.check`)."""

    @property
    def low_in_port(self) -> bool:
        return self.ev_halves == "low-in-port"

    @property
    def ev_bits(self) -> int:
        """How many bits of an EV a packet carries."""
        return 20 if self.ev_halves == "low-in-both" else EV_BITS

    @property
    def check_bytes(self) -> int:
        """Bytes of integrity check at the end of a packet."""
        return 0 if self.icrc == "absent" else 4

    @property
    def outer_label(self) -> bool:
        """Whether an outer header's flow label carries its half of the EV."""
        return self.ev_label != "inner"

    @property
    def inner_label(self) -> bool:
        """Whether an encapsulated header's flow label carries its half of the EV, and is read for it."""
        return self.ev_label != "outer"

    @property
    def migrated_first(self) -> bool:
        return self.bth_order == "m-se"

    @property
    def eeth_op_shift(self) -> int:
        """How far the operation of an endpoint response is shifted up in its byte."""
        return 4 if self.eeth_op == "5:4" else 2

    @property
    def mask_shift(self) -> int:
        """How far the bit of port 1 is shifted up in a port status mask."""
        return 1 if self.port_mask == "bit-1" else 0

    @property
    def takes_any_icrc(self) -> bool:
        return self.icrc == "counted"

    @property
    def ports_in_sacks(self) -> bool:
        return self.port_status == "sack"

    def udp_port_of(self, profiles_own: int) -> int:
        """The UDP destination port to send to, where the profile has that one."""
        return profiles_own if self.udp_port == "profile" else int(self.udp_port)

    def mask_to_wire(self, ports: int) -> int:
        """A port status mask from ports, where bit n - 1 is port n."""
        return ports << self.mask_shift & 0xFFFFFFFF

    def mask_from_wire(self, mask: int) -> int:
        """The ports of a port status mask, where bit n - 1 is port n."""
        return mask >> self.mask_shift

    def check_profile(self, profile: NicProfile) -> None:
        """Raises `ConfigError` if a port has no bit in a port status mask, or packets cannot carry an EV."""
        if max(port.port for port in profile.ports) + self.mask_shift > MASK_BITS:
            raise ConfigError(f"dialect: port_mask is {self.port_mask!r}, which has no bit for port {MASK_BITS}")
        if self.ev_bits == EV_BITS:
            return
        largest = max((path.ev for row in profile.destinations.values() for path in row.paths), default=0)
        if largest >> self.ev_bits:
            raise ConfigError(
                f"dialect: ev_halves {self.ev_halves} carries EVs of {self.ev_bits} bits, and {profile.host} has EV"
                f" {largest:#x}"
            )

    def text(self) -> str:
        """The choices that are not the default, as `parse` takes them; empty for the default dialect."""
        return ",".join(f"{name}={value}" for name, value in self._values().items() if value != CHOICES[name][0])

    def statement(self, profiles_port: int) -> str:
        """Every choice, for a peer that is about to connect; `profiles_port` is the profile's UDP port."""
        values = {**self._values(), "udp_port": str(self.udp_port_of(profiles_port))}
        return ",".join(f"{name}={value}" for name, value in values.items())

    def _values(self) -> dict[str, str]:
        return {name: str(getattr(self, name)) for name in CHOICES}


DEFAULT = Dialect()


def parse(text: str) -> Dialect:
    """A dialect from `NAME=VALUE` pairs. Raises `ConfigError` with the valid choices."""
    values: dict[str, str] = {}
    for name, value in _pairs(text):
        if name not in CHOICES:
            raise ConfigError(f"dialect has no choice {name!r}; valid: {', '.join(CHOICES)}")
        if value not in CHOICES[name]:
            raise ConfigError(f"dialect: {name} is {value!r}; valid: {', '.join(CHOICES[name])}")
        if name in values:
            raise ConfigError(f"dialect: {name} is given twice: {values[name]!r} and {value!r}")
        values[name] = value
    return Dialect(**values)


def spoken(text: str, profile: NicProfile) -> Dialect:
    """The dialect of a NIC. Raises `ConfigError` with the valid choices, or for a profile that it cannot express."""
    dialect = parse(text)
    dialect.check_profile(profile)
    return dialect


def differences(ours: str, theirs: str) -> list[tuple[str, str, str]]:
    """(choice, our value, the peer's) for each choice in which two statements differ.

    A choice that only one of the two knows is none. Raises `ConfigError` if the peer's is no statement.
    """
    if len(theirs) > STATEMENT_MAX:
        raise ConfigError(f"a dialect of {len(theirs)} characters; it has at most {STATEMENT_MAX}")
    said = dict(_pairs(theirs))
    return [(name, value, said[name]) for name, value in _pairs(ours) if said.get(name, value) != value]


def others(dialect: Dialect, *names: str) -> list[Dialect]:
    """The dialects that differ from this one in these choices, and in nothing else: one choice, then all of them."""
    found = [dialect]
    for name in names:
        found += [_changed(known, name, value) for known in found for value in CHOICES[name]]
    distinct = {one for one in found if one != dialect}
    return sorted(distinct, key=lambda one: (sum(getattr(one, n) != getattr(dialect, n) for n in names), one.text()))


def _changed(dialect: Dialect, name: str, value: str) -> Dialect:
    return Dialect(**{**{other: str(getattr(dialect, other)) for other in CHOICES}, name: value})


def _pairs(text: str) -> list[tuple[str, str]]:
    """Raises `ConfigError` for what is no list of `NAME=VALUE`."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ConfigError(f"dialect: {part!r} is no NAME=VALUE, such as ev_halves=high-in-port")
        found.append((name, value))
    return found
