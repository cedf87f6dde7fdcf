"""Device profiles: what the hosts and NICs of a cluster cost beside the network, and the rows that these were set from.

A profile is a TOML file in `profiles/`: options of all workloads and of collectives, settings of the MRC and of the
RoCE endpoints, and by figure the rows of the paper to which the values were set. Those rows count for nothing; every
other row of the cluster's figures is a prediction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from paper import texts
from running.transport_choice import TransportChoice

FOLDER = Path(__file__).parent / "profiles"


@dataclass(frozen=True, slots=True)
class Profile:
    """One cluster's devices; `collective` are options of workloads, `mrc` and `roce` settings of endpoints.

    `message` are the options `post_ns` and `completion_ns` of every workload: the time between a program and its NIC,
    once per message and in no frame's way. `costs` are options of workloads that differ by transport, under the
    transport's title in figures.
    """

    name: str
    what: str
    collective: Mapping[str, Any]
    mrc: Mapping[str, Any]
    roce: Mapping[str, Any]
    set_from: Mapping[str, Sequence[str]]
    message: Mapping[str, int] = field(default_factory=dict)
    costs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def host(self, title: str) -> dict[str, Any]:
        """The options of a collective's cost at the hosts under a transport."""
        return {**self.message, **self.collective, **self.costs.get(title, {})}

    def transport(self, choice: TransportChoice) -> TransportChoice:
        """The choice with this NIC's settings, which go before its own."""
        own = self.mrc if choice.agent == "mrc" else self.roce
        return replace(choice, settings={**choice.settings, **own})

    def calibrates(self, figure: str, quantity: str) -> bool:
        """Whether a value was set from this row."""
        return quantity in self.set_from.get(figure, ())


@cache
def load(name: str) -> Profile:
    """The profile of this name."""
    return Profile(name=name, **texts.read(FOLDER / f"{name}.toml"))
