"""The choice of `--transport`: the endpoint of the hosts, its settings, and whether the fabric has one plane."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from common.door import added, of_packages, thing
from common.terminal.choices import no_such
from endpoint.mrc import presets
from topo import Plan
from topo.planfile import check_pfc

if TYPE_CHECKING:
    from controller import ProgramVariant

__all__ = ["LOSSLESS", "TRANSPORTS", "Payload", "TransportChoice", "transport"]

Payload = Literal["real", "counted"]


@dataclass(frozen=True, slots=True)
class TransportChoice:
    """A choice of `--transport`. `settings` are the agent's own (endpoint/nic/config.py, endpoint/roce/config.py)."""

    name: str
    description: str
    agent: str  # the agent's --transport
    settings: Mapping[str, Any] = field(default_factory=dict)  # the agent's --set
    single_plane: bool = False
    queue_pairs: int = 1
    pfc: bool = False  # priority-based flow control (IEEE 802.1Qbb) in every switch and NIC
    payload: Payload = "real"  # "counted": in virtual time, frames leave payload out, and only its place is checked
    plain: bool = False  # every plane forwards plain IPv6 by ECMP, and routing avoids dead links: no source routes
    variant: str = ""  # MODULE:NAME of what switches run in place of the programs in `p4/`
    edge: str = ""  # MODULE:CLASS of what stands between NIC and wire, a transport around a transport

    @property
    def routed(self) -> bool:
        """Whether a routing protocol takes dead links out of the switches' tables."""
        return self.single_plane or self.plain

    @property
    def virtual_only(self) -> bool:
        """Whether real links have no such switches, planes or edges."""
        return self.plain or bool(self.variant or self.edge)

    def programs(self) -> "ProgramVariant | None":
        """The programs that switches run; None: the programs in `p4/`."""
        made: ProgramVariant | None = thing(self.variant) if self.variant else None
        return made

    def edged(self, nic: Any) -> Any:
        """The NIC, a transport, with its edge, which is between it and the wire."""
        return thing(self.edge)(nic) if self.edge else nic

    @property
    def counted(self) -> bool:
        """Whether workloads count their payload instead of sending it."""
        return self.payload == "counted"

    def fabric(self, plan: Plan) -> Plan:
        """The plan that is built for this transport: `plan`, or its single-plane equivalent, lossless with `pfc`.

        Raises PlanError for a lossless one with switches that have no flow control.
        """
        built = plan.single_plane() if self.single_plane else plan
        if self.plain:
            built = replace(built, encapsulation="none")
        if self.pfc:
            built = built.with_pfc()
            check_pfc(built)
        return built

    def check_algorithms(self) -> None:
        """ValueError where an algorithm of the settings has an `edge`, and this transport's is another."""
        if not self.settings:
            return
        from endpoint.mrc import SEAMS, algorithms_of  # late: help and most runs need no algorithm

        for seam in sorted(self.settings.keys() & SEAMS):
            edge = getattr(algorithms_of(seam).get(str(self.settings[seam])), "edge", "")
            if edge and edge != self.edge:
                having = [name for name, place in added(GROUP).items() if thing(place).edge == edge]
                raise ValueError(
                    f"{seam}={self.settings[seam]} needs --transport {' or '.join(having)} (got {self.name})"
                )

    def check_fits(self, plan: Plan) -> None:
        """ValueError where a lab of this plan, which is up, is none for this transport."""
        if self.single_plane != (plan.encapsulation == "none"):
            needed = "./lab up PLAN --single-plane" if self.single_plane else "a lab without --single-plane"
            raise ValueError(f"transport {self.name} needs {needed}")
        if self.pfc and not plan.pfc.enabled:
            raise ValueError(f"transport {self.name} needs a lossless lab: ./lab up PLAN --single-plane --pfc")


LOSSLESS: Mapping[str, Any] = {"dcqcn": False, "window_bdps": 16.0, "timeout_rtts": 256}
"""Settings of RoCE where nothing is lost but by a fault: pauses hold senders back and not a window, and what waits in
paused queues for many round trips is not sent again. Both numbers are assumed: NICs track more, and wait longer."""
PAIRS = (1, 8, 16)
_ROCE = "RoCEv2 RC on one plane of the summed rate, one path per queue pair by ECMP, rerouted around dead links"
SELECTIVE: Mapping[str, Any] = {"selective_repeat": True}


def _roce() -> Iterator[TransportChoice]:
    for name, what, settings in (
        ("roce", "go-back-N, no PFC", {}),
        ("roce-sr", "selective repeat, no PFC", SELECTIVE),
        ("roce-pfc", "lossless by PFC, always at line rate", LOSSLESS),
        ("roce-pfc-dcqcn", "lossless by PFC, with DCQCN", {**LOSSLESS, "dcqcn": True}),
    ):
        for pairs in PAIRS:
            suffix = "" if pairs == 1 else f"-{pairs}qp"
            counted = "one queue pair" if pairs == 1 else f"{pairs} queue pairs"
            description = f"{_ROCE}, {what}, {counted}"
            made = TransportChoice(name + suffix, description, "roce", settings, single_plane=True, queue_pairs=pairs)
            yield replace(made, pfc=name.startswith("roce-pfc"))


TRANSPORTS: Mapping[str, TransportChoice] = {
    transport.name: transport
    for transport in (
        TransportChoice("mrc", "MRC: sprays over every path and plane, leaves bad ones", "mrc"),
        TransportChoice("mrc-ocp", "MRC as the OCP specification words it: skips a marked EV once", "mrc", presets.OCP),
        TransportChoice("mrc-cx8", "MRC as the paper's NIC was measured: swaps a marked EV", "mrc", presets.CX8),
        TransportChoice("mrc-lab", "MRC with every rule of this lab (endpoint/mrc/presets.py)", "mrc", presets.LAB),
        TransportChoice(
            "mrc-oblivious", "MRC that sprays without looking at path health", "mrc", {"selection": "oblivious"}
        ),
        TransportChoice("mrc-single-path", "MRC on one path until it fails", "mrc", {"selection": "single_path"}),
        *_roce(),
    )
}
"""Every transport of the lab that a run can choose, by its name on the command line."""
GROUP = "mrclab.transports"
"""Entry points of packages: `NAME = "MODULE:CHOICE"`."""


def transport(name: str, settings: Mapping[str, Any] | None = None) -> TransportChoice:
    """The transport of this name; ValueError with the valid names otherwise. `settings` are for MRC endpoints only."""
    place = "" if name in TRANSPORTS else of_packages(GROUP).get(name, "") or added(GROUP).get(name, "")
    if not place and name not in TRANSPORTS:
        raise ValueError(no_such("transport", name, [*TRANSPORTS, *added(GROUP)]))
    choice: TransportChoice = thing(place) if place else TRANSPORTS[name]
    return replace(choice, settings={**(settings or {}), **choice.settings}) if choice.agent == "mrc" else choice
