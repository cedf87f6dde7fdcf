"""Targets of faults on the baseline's single plane, by their names alone."""

from __future__ import annotations

import re

LINK = re.compile(r"^p(\d+)(l\d+)-p(\d+)(s\d+)$")
SWITCH = re.compile(r"^p(\d+)([ls]\d+)$")
NIC_PORT = re.compile(r"^(h\d+)\.p(\d+)$")


def on_single_plane_target(target: str) -> str:
    """A leaf, a spine, a link between them or a NIC port of any plane becomes the one that there is."""
    if found := LINK.match(target):
        return f"p0{found[2]}-p0{found[4]}"
    if found := SWITCH.match(target):
        return f"p0{found[2]}"
    if found := NIC_PORT.match(target):
        return f"{found[1]}.p0"
    return target
