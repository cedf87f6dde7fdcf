"""Presets of the endpoint's settings: MRC as its specification words it, as a NIC was measured, and with lab rules.

`OCP` follows the words of the OCP MRC specification, as readers cite them, and of UEC's NSCC chapter, to which MRC's
second paper (arXiv:2606.18170) refers. `CX8` follows the NIC that the first paper measured (arXiv:2605.04333), then
the OCP MRC API and its examples, then the reference simulator uet-htsim. `LAB` has rules that make MRC better or more
robust than that. Each rule is a setting, so each can be taken on or off by itself. The defaults (`endpoint.nic.config`)
are `CX8` but for `BY_DEFAULT`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from endpoint.nic.config import RETRIES_WITHOUT_END

__all__ = ["CX8", "LAB", "OCP", "RULES", "Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A setting in which the presets differ: the sources' values with a source, and what the lab does and gains."""

    setting: str
    ocp: Any
    cx8: Any
    lab: Any
    source: str
    gain: str


RULES = (
    Rule(
        "congested_ev",
        ocp="skip",
        cx8="swap",
        lab="skip",
        source="OCP MRC 7.5.5.5: a mark means 'Skip once'; the paper, figure 14: a flow leaves a marked EV for another",
        gain="an EV with a mark is passed over once and stays in rotation",
    ),
    Rule(
        "losses_shrink",
        ocp=True,
        cx8=False,
        lab=False,
        source="UEC 3.6.13.5: the bytes of a packet inferred lost come off the window; uet-htsim leaves it alone",
        gain="a link that fails shrinks no window",
    ),
    Rule(
        "rcv_penalty",
        ocp=False,
        cx8=False,
        lab=True,
        source="uet-htsim's receivers never send a penalty; the API has the field and no rule for it",
        gain="in an incast each sender's window shrinks to its share, so that hardly anything is trimmed",
    ),
    Rule(
        "plane_suspicion",
        ocp=False,
        cx8=False,
        lab=True,
        source="the paper, section 4: MRC cannot rebalance to avoid a plane that loses packets but is up",
        gain="a lossy or silent plane is left within some of its packets",
    ),
    Rule(
        "retransmit_plane",
        ocp="any",
        cx8="any",
        lab="other",
        source="the paper, section 3: a lost packet is retransmitted on a different path",
        gain="a packet lost in a dead plane is not lost there again",
    ),
    Rule(
        "trims_before_wait",
        ocp=0,
        cx8=0,
        lab=8,
        source="uet-htsim sends a trimmed packet again as soon as its window allows, however often it was trimmed",
        gain="a small packet that arrives behind the same burst in each round trip is not trimmed without end",
    ),
    Rule(
        "timeout_rtts",
        ocp=16,
        cx8=16,
        lab=4,
        source="OCP MRC API, examples: timeout 8, 262 µs: the first beyond 16 round trips of the paper's clusters",
        gain="a lost end of a message whose probes are lost as well is sent again sooner",
    ),
    Rule(
        "retry_exponential",
        ocp=RETRIES_WITHOUT_END,
        cx8=RETRIES_WITHOUT_END,
        lab=7,
        source="OCP MRC API, examples: 25 exponential retries, which means without end",
        gain="a peer that is gone is noticed",
    ),
)
"""The rules in which the presets differ, each with its source and what the lab's gains."""

BY_DEFAULT = frozenset({"trims_before_wait"})
"""Rules of the lab that are on by default: without this one a message may never end, as a hunt found."""
OCP: Mapping[str, Any] = {rule.setting: rule.ocp for rule in RULES}
CX8: Mapping[str, Any] = {rule.setting: rule.cx8 for rule in RULES}
LAB: Mapping[str, Any] = {rule.setting: rule.lab for rule in RULES}
