"""Presets of the endpoint's settings: MRC as its sources describe it, and MRC with this lab's rules on top.

`STRICT` is what the paper says (arXiv:2605.04333), then what the OCP MRC API and its examples say, then what the
reference simulator uet-htsim does. `LAB` has rules that make MRC better or more robust than that. Each rule is a
setting, so each can be taken on or off by itself. The defaults (`endpoint.nic.config`) are strict but for `BY_DEFAULT`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from endpoint.nic.config import RETRIES_WITHOUT_END

__all__ = ["LAB", "RULES", "STRICT", "Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A setting in which the presets differ: what the sources say, what the lab does instead, and a source each."""

    setting: str
    strict: Any
    lab: Any
    source: str
    gain: str


RULES = (
    Rule(
        "rcv_penalty",
        strict=False,
        lab=True,
        source="uet-htsim's receivers never send a penalty; the API has the field and no rule for it",
        gain="in an incast each sender's window shrinks to its share, so that hardly anything is trimmed",
    ),
    Rule(
        "plane_suspicion",
        strict=False,
        lab=True,
        source="the paper, section 4: MRC cannot rebalance to avoid a plane that loses packets but is up",
        gain="a lossy or silent plane is left within some of its packets",
    ),
    Rule(
        "congested_ev",
        strict="swap",
        lab="skip",
        source="the paper, figures 13 and 14: a congested EV is replaced by another of its plane",
        gain="an EV with a mark rests for one turn, as OCP MRC 11.2.2 suggests, and stays in rotation",
    ),
    Rule(
        "retransmit_plane",
        strict="any",
        lab="other",
        source="the paper, section 3: a lost packet is retransmitted on a different path",
        gain="a packet lost in a dead plane is not lost there again",
    ),
    Rule(
        "trims_before_wait",
        strict=0,
        lab=8,
        source="uet-htsim sends a trimmed packet again as soon as its window allows, however often it was trimmed",
        gain="a small packet that arrives behind the same burst in each round trip is not trimmed without end",
    ),
    Rule(
        "timeout_rtts",
        strict=16,
        lab=4,
        source="OCP MRC API, examples: timeout 8, 262 µs: the first beyond 16 round trips of the paper's clusters",
        gain="a lost end of a message whose probes are lost as well is sent again sooner",
    ),
    Rule(
        "retry_exponential",
        strict=RETRIES_WITHOUT_END,
        lab=7,
        source="OCP MRC API, examples: 25 exponential retries, which means without end",
        gain="a peer that is gone is noticed",
    ),
)
"""The rules in which the presets differ, each with its source and what it gains."""

BY_DEFAULT = frozenset({"trims_before_wait"})
"""Rules of the lab that are on by default: without this one a message may never end, as a hunt found."""
STRICT: Mapping[str, Any] = {rule.setting: rule.strict for rule in RULES}
LAB: Mapping[str, Any] = {rule.setting: rule.lab for rule in RULES}
