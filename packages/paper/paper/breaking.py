"""Experiments that must make a figure's quantities fail: the same run with one thing broken.

Each function but the last takes a run of a figure and gives the broken one, under its name with an ending.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from endpoint.mrc.presets import RULES
from paper import profile
from paper.figure import Part
from topo import Plan

SINGLE_PATH, OBLIVIOUS, KEPT, WHOLE = "single-path", "oblivious", "kept", "whole"
IN_FRAMES = "in-frames"
KNOBS: Mapping[str, str] = {
    SINGLE_PATH: "each queue pair on one path",
    OBLIVIOUS: "no signal of a path is heeded",
    KEPT: "what broke stays broken",
    WHOLE: "nothing breaks",
}


def single_path(part: Part) -> Part:
    """MRC that does not spray: a queue pair stays on one path until that path fails."""
    return setting(part, SINGLE_PATH, {"selection": "single_path"})


def oblivious(part: Part) -> Part:
    """MRC that sprays without looking at losses, marks or trims."""
    return setting(part, OBLIVIOUS, {"selection": "oblivious"})


def kept(part: Part) -> Part:
    """Faults that do not end."""
    return _named(replace(part, faults=[replace(fault, for_s=None) for fault in part.faults]), KEPT)


def without_faults(part: Part) -> Part:
    """No faults."""
    return _named(replace(part, faults=()), WHOLE)


def setting(part: Part, name: str, settings: Mapping[str, Any]) -> Part:
    """Other settings of the transport, under a name."""
    usual = part.transport
    changed = replace(usual, name=f"{usual.name}-{name}", settings={**usual.settings, **settings})
    return _named(replace(part, transport=changed), name)


def worded(part: Part) -> Part:
    """MRC as the OCP specification words it, wherever the part has the rules of the paper's NIC."""
    usual = part.transport
    ocp = {rule.setting: rule.ocp for rule in RULES if usual.settings.get(rule.setting) == rule.cx8}
    return replace(part, transport=replace(usual, settings={**usual.settings, **ocp}))


def host_in_frames(plan: Plan) -> Plan:
    """Cluster B's host in every frame's way, as this lab once had it for every cluster; a round trip passes it four
    times. What a device profile has for messages stays."""
    nic_ns = sum(profile.load("cx8").message.values()) // 4
    return replace(plan, links=replace(plan.links, nic_latency_ns=nic_ns))


def _named(part: Part, ending: str) -> Part:
    return replace(part, name=f"{part.name}-{ending}")
