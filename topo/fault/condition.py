"""The effect of the faults in force on the packets of one path: where they are lost, at risk or late, hop by hop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topo.fault.fault import Fault, transmitters
from topo.fault.meaning import healthy, switch_state
from topo.fault.verb import VERBS, PortState
from topo.graph import PortRef, peer
from topo.node import Switch
from topo.path import Path, hops
from topo.plan import Plan


@dataclass(frozen=True, slots=True)
class Condition:
    """One fault on the way. `place` is a switch, or a direction of a link such as p0l0>p0s0.

    `ends`: no packet gets further; else `loss` is the share that does not.
    """

    place: str
    text: str
    fault: str
    ends: bool = False
    loss: float = 0.0

    def __str__(self) -> str:
        return f"{self.place} {self.text} (fault: {self.fault})"

    def as_json(self) -> dict[str, Any]:
        return {"place": self.place, "text": self.text, "fault": self.fault, "ends": self.ends, "loss": self.loss}


def at_switch(plan: Plan, faults: Sequence[Fault], switch: Switch) -> list[Condition]:
    """What a packet meets in a switch: the state of the whole switch, and whether NICs avoid it."""
    met = []
    for fault in faults:
        verb = VERBS[fault.verb]
        if verb.target != "switch" or fault.target != switch.name:
            continue
        state = switch_state([fault], switch)
        if state == "crashed":
            met.append(Condition(switch.name, "has crashed: no program, no tables", fault.describe(), ends=True))
        elif state == "stopped":
            met.append(Condition(switch.name, "is stopped: it forwards nothing", fault.describe(), ends=True))
        if verb.denies:
            met.append(Condition(switch.name, "is drained: NICs send nothing across it", fault.describe()))
    return met


def leaving(plan: Plan, faults: Sequence[Fault], ref: PortRef) -> list[Condition]:
    """What a packet meets that leaves by this port: the transmit side and the cable behind it."""
    place, met = f"{ref.node}>{peer(plan, ref).node}", []
    usual = healthy(plan, ref)
    for fault in faults:
        verb = VERBS[fault.verb]
        if verb.target == "switch" or ref not in transmitters(plan, fault):
            continue
        if verb.impairs is None:
            met.append(Condition(place, "is drained: NICs send nothing by it", fault.describe()))
            continue
        state = verb.impairs(usual, fault.value or 0.0, fault.seed)
        ends = not state.up or state.loss >= 1
        met.append(Condition(place, _impairment(state, usual, verb.meaning), fault.describe(), ends, state.loss))
    return met


def _impairment(state: PortState, usual: PortState, meaning: str) -> str:
    """How a port differs from its usual state, as a clause whose subject is the port; else the verb's meaning."""
    if not state.up:
        return "is down"
    if state.loss >= 1:
        return "loses every packet silently"
    said = [f"loses {state.loss:.3g} of its packets"] if state.loss else []
    if state.delay_ns != usual.delay_ns:
        said.append(f"takes {state.delay_ns / 1e6:g} ms instead of {usual.delay_ns / 1e6:g}")
    if state.rate_bps != usual.rate_bps:
        said.append(f"runs at {state.rate_bps / 1e6:g} Mb/s instead of {usual.rate_bps / 1e6:g}")
    return " and ".join(said) or ("is as usual" if state == usual else f"is impaired: {meaning}")


def conditions(plan: Plan, faults: Sequence[Fault], path: Path) -> list[Condition]:
    """Every fault on a path, in the order in which a packet meets them, up to the first that no packet survives."""
    way = [leaving(plan, faults, PortRef(path.source, path.port))]
    for hop in hops(plan, path):
        way += [at_switch(plan, faults, hop.switch), leaving(plan, faults, PortRef(hop.switch, hop.port_out))]
    on_path: list[Condition] = []
    for met in way:
        on_path += met
        if any(condition.ends for condition in met):
            break
    return on_path


def arrival(met: Sequence[Condition]) -> float:
    """The share of packets that survive all of these conditions, 0 to 1."""
    share = 1.0
    for condition in met:
        share *= 0.0 if condition.ends else 1 - condition.loss
    return share
