"""A bundle of a switch judged again: the same packets, and what left the switch from the captures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common import fields
from conform.capture import unpacked
from conform.result import Result
from conform.rule import load
from conform.switch.device import DeviceError, DeviceFile, SwitchDevice
from conform.switch.examine import examined

CAPTURE = "seed-{}.pcapng"


def again(manifest: Mapping[str, Any], held: Mapping[str, bytes]) -> list[Result]:
    """The results of the rules that the bundle has. DeviceError, CaptureError."""
    about = fields.Fields("about", manifest["about"], DeviceError)
    device = SwitchDevice(
        fields.read(DeviceFile, about.get("device"), DeviceError, "about.device"),
        (lambda: None) if about.boolean("restarts") else None,
        (lambda: 0) if about.boolean("counts") else None,
    )
    rules = [rule for rule in load(["switch"]) if rule.id in manifest["rules"]]
    runs = {seed: unpacked(held[CAPTURE.format(seed)]) for seed in about.items("seeds")}
    found, _ = examined([str(name) for name in about.items("ports")], device, rules, runs)
    return [found.result(rule) for rule in rules]
