"""The commands of this room in one line each, for every help that lists them. Imports nothing: help must be quick."""

from collections.abc import Mapping

__all__ = ["FIRST_EV", "HOST", "SET", "SUMMARIES"]

SUMMARIES: Mapping[str, str] = {
    "paths": "the paths between two hosts: EV, plane, spine, uSIDs hop by hop",
    "topo": "show, draw, import and check fabrics; count their paths",
}
"""One line per command of the room, for the help."""
HOST, FIRST_EV = "a host, such as h0", "the path, by its EV (the first one)"
"""Of commands that follow a path."""
SET = "change one key of the plan"
"""Of `--set KEY=VALUE`."""
