"""The commands of this room in one line each, for every help that lists them. Imports nothing: help must be quick."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FIRST_EV", "HOST", "SET", "SUMMARIES"]

SUMMARIES: Mapping[str, str] = {
    "up": "build a plan's fabric and leave it running",
    "down": "tear the lab down, in any state",
    "status": "what is running, since when, and with which faults",
    "doctor": "check this machine's prerequisites, and how to install what is missing",
    "shell": "Mininet's prompt on the running lab, with the fault verbs",
    "fault": "inject a fault into the running lab",
    "undo": "undo the last fault, one by its number, or all",
    "paths": "the paths between two hosts: EV, plane, spine, uSIDs hop by hop",
    "topo": "show, draw and count plans and paths",
}
"""One line per command of the room, for the help."""
HOST, FIRST_EV = "a host, such as h0", "the path, by its EV (the first one)"
"""Of commands that follow a path."""
SET = "change one key of the plan"
"""Of `--set KEY=VALUE`."""
