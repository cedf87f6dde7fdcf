"""The fault verbs. Each is data, complete in this table: no other code spells a verb's name (a test holds that)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from topo.plan import SWITCH_KINDS, SwitchKind

TargetKind = Literal["link", "nic port", "nic", "switch"]
SwitchState = Literal["running", "stopped", "crashed"]
SWITCH_STATES: tuple[SwitchState, ...] = get_args(SwitchState)
"""From the mildest to the worst: of several faults on one switch the worst counts."""


class FaultError(ValueError):
    """A fault that cannot be: the message names the verb or target, the rule and the valid choices."""


@dataclass(frozen=True, slots=True)
class PortState:
    """One port's carrier and transmit side. The fields are those of the switch's own port configuration."""

    up: bool
    rate_bps: int
    delay_ns: int
    loss: float = 0.0  # share of packets, 0 to 1
    loss_seed: int = 0
    overhead_bytes: int = 0  # that surround each frame on the wire


Impairment = Callable[[PortState, float, int], PortState]
"""(state so far, the fault's number, its seed) to the state with this fault as well."""


@dataclass(frozen=True, slots=True)
class FaultArgument:
    """The number that a verb takes, with its limits."""

    name: str
    low: float
    high: float
    meaning: str

    def rule(self, got: str) -> str:
        """The rule of the number, and the value that was given instead."""
        return f"{self.name} ({self.meaning}) must be a number between {self.low:.15g} and {self.high:.15g} (got {got})"


@dataclass(frozen=True, slots=True)
class Verb:
    """What a fault of this verb is given, does, and asks of a switch."""

    name: str
    target: TargetKind
    meaning: str
    argument: FaultArgument | None = None
    chance: bool = False  # draws from the fault's seed; without that two seeds of a fault are one fault
    one_way: bool = False  # may be given for one direction of a link
    lasting: bool = True  # stays until undone; False: over when the verb returns
    impairs: Impairment | None = None  # what it makes of the ports at the transmitting ends of its target
    switched_off: Literal["switch", "host"] | None = None  # whose end of the cable is switched off: both lose carrier
    switch: SwitchState = "running"  # what it makes of its target
    denies: bool = False  # NICs are told to deny every path across its target
    routing: bool = False  # a routing protocol would notice, and route around the target
    kinds: tuple[SwitchKind, ...] = SWITCH_KINDS  # whose ports or which switches can do it
    host_side: bool = True  # whether a NIC's transmit side can do it
    drawn_apart: bool = False  # hunts draw it by another generator, so that old seeds draw what they did
    elsewhere: tuple[str, ...] = ()  # words for it in other labs, which users try here

    @property
    def usage(self) -> str:
        """The verb with a place holder for its target and its number."""
        place = {"link": "A-B|A>B" if self.one_way else "A-B", "nic port": "HOST.pPLANE", "nic": "HOST"}
        target = place.get(self.target, "SWITCH")
        return " ".join([self.name, target, *([self.argument.name.upper()] if self.argument else [])])


def _down(state: PortState, _number: float, _seed: int) -> PortState:
    return replace(state, up=False)


def _silent(state: PortState, _number: float, _seed: int) -> PortState:
    return replace(state, loss=1.0)


def _lossy(state: PortState, percent: float, seed: int) -> PortState:
    """Losses compound; the first seed counts."""
    return replace(state, loss=1 - (1 - state.loss) * (1 - percent / 100), loss_seed=state.loss_seed or seed)


def _late(state: PortState, ms: float, _seed: int) -> PortState:
    return replace(state, delay_ns=max(1, round(ms * 1_000_000)))


def _slow(state: PortState, mbps: float, _seed: int) -> PortState:
    return replace(state, rate_bps=round(mbps * 1_000_000))


VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb(
            "link-down",
            "link",
            "both ends lose carrier",
            impairs=_down,
            switched_off="switch",
            routing=True,
            elsewhere=("link", "linkdown"),
        ),
        Verb(
            "blackhole",
            "link",
            "every packet is lost silently; carrier stays",
            one_way=True,
            impairs=_silent,
            routing=True,
        ),
        Verb(
            "loss",
            "link",
            "packets are lost silently at random",
            FaultArgument("percent", 0, 100, "share of packets lost"),
            chance=True,
            one_way=True,
            impairs=_lossy,
        ),
        Verb(
            "delay",
            "link",
            "propagation takes this long instead of the plan's",
            FaultArgument("ms", 0, 1_000, "one way"),
            one_way=True,
            impairs=_late,
            kinds=("embedded",),
            host_side=False,
        ),
        Verb(
            "rate",
            "link",
            "the line runs at this rate instead of the plan's",
            FaultArgument("mbps", 0.001, 8_000_000, "Mb/s of Ethernet frame bytes"),
            one_way=True,
            impairs=_slow,
            host_side=False,
        ),
        Verb(
            "port-down",
            "nic port",
            "the NIC's port is off; NIC and leaf lose carrier",
            impairs=_down,
            switched_off="host",
        ),
        Verb(
            "optics-down",
            "nic",
            "the NIC's transceiver is dark: all its ports are off; NIC and leaves lose carrier",
            impairs=_down,
            switched_off="host",
            drawn_apart=True,
        ),
        Verb(
            "switch-stop", "switch", "forwards nothing; links stay up, tables are kept", switch="stopped", routing=True
        ),
        Verb(
            "switch-crash",
            "switch",
            "loses tables and queues, forwards nothing; links stay up; undo provisions it",
            switch="crashed",
            routing=True,
            elsewhere=("lcrash",),
        ),
        Verb(
            "switch-reboot",
            "switch",
            "a crash, then provisioned again by the verb itself",
            lasting=False,
            switch="crashed",
        ),
        Verb(
            "drain",
            "switch",
            "the NICs are told to deny every path across it; it keeps forwarding",
            denies=True,
            elsewhere=("drain",),
        ),
        Verb(
            "drain-port",
            "nic port",
            "the NICs are told to deny every path by this port; it stays up",
            denies=True,
            drawn_apart=True,
        ),
    )
}
"""Every fault that can be injected, by its verb."""


def verb_table() -> list[tuple[str, ...]]:
    """(usage, meaning, and for each of SWITCH_KINDS yes or no), for help texts and docs."""
    return [
        (verb.usage, verb.meaning, *("yes" if kind in verb.kinds else "no" for kind in SWITCH_KINDS))
        for verb in VERBS.values()
    ]


def usages(target: TargetKind) -> str:
    """How to say each verb for a target of this kind that takes no number, with commas."""
    return ", ".join(verb.usage for verb in VERBS.values() if verb.target == target and verb.argument is None)
