"""Targets of faults on the baseline's single plane, by their names alone."""

import re

PLANE = re.compile(r"\bp\d+(?=[lsc]\d|$)")  # of a switch's name, or of a NIC port


def on_single_plane_target(target: str) -> str:
    """A switch, link, direction of a link or NIC port of any plane, as the same thing of the single plane."""
    return PLANE.sub("p0", target)
