"""Targets of faults on the baseline's single plane, by their names alone."""

from __future__ import annotations

import re

PLANE = re.compile(r"\bp\d+(?=[ls]\d|$)")  # of a switch's name, or of a NIC port


def on_single_plane_target(target: str) -> str:
    """A switch, a link in either order, one direction or a NIC port of any plane becomes the one that there is."""
    return PLANE.sub("p0", target)
