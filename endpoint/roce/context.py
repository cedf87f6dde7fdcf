"""The things that all queue pairs of one RoCE NIC share, and the choice of a new queue pair's path."""

from dataclasses import dataclass

from endpoint.nic.attributes import VerbError
from endpoint.nic.frame import ECN_CAPABLE
from endpoint.nic.packet import Route
from endpoint.nic.verbs import NicContext
from endpoint.profile import Destination, NicProfile  # a field's type, which the compiled class looks up
from endpoint.roce.config import Settings

SOURCE_PORT_FIRST = 0xC000
SOURCE_PORTS = 0x4000
"""RoCEv2 puts its entropy into 14 bits of the UDP source port (annex A17)."""


@dataclass(frozen=True, slots=True)
class Context(NicContext):
    """The context of a RoCE NIC."""

    profile: NicProfile
    settings: Settings

    @property
    def data_class(self) -> int:
        """The traffic class byte of data packets, ECN-capable."""
        return self.profile.dscp.roce << 2 | ECN_CAPABLE

    @property
    def control_class(self) -> int:
        """The traffic class byte of acknowledgements and notifications."""
        return self.profile.dscp.control << 2

    def choose_route(self, host: str) -> tuple[Route, Destination]:
        """The path of a new QP, and where it leads. Raises `VerbError` for a host that is not in the profile."""
        profile = self.profile
        row = profile.destination(host)
        if row is None:
            known = ", ".join(sorted(profile.destinations)) or "none"
            raise VerbError(f"{profile.host}'s profile has no paths to {host!r}; destinations: {known}")
        path = self.rng.choice(row.paths)
        entropy = SOURCE_PORT_FIRST + self.rng.randrange(SOURCE_PORTS)
        route = Route(
            entropy,
            self.ports.by_number[path.port],
            path.via,
            path.da.packed,
            profile.address.packed,
            row.address.packed,
            profile.udp_port,
            profile.encapsulation == "srv6",
        )
        return route, row
