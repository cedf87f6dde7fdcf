"""Commands that need root ask for it themselves, once, and start again with the user's own command line."""

import os
import shutil
import sys

from common.interpreter import python
from common.terminal.standard_streams import write_error
from topo.emulation import labname
from topo.emulation.labname import DEFAULT_LAB

# What an ordinary user can do instead.
WITHOUT = (
    "without root, ./lab run NAME --world simulated does the same in virtual time, and list, report, compare, paths,"
    " trace --plan, topo, graph PLAN, export and switch need none"
)


class NeedsRootError(RuntimeError):
    """Root is needed and cannot be had."""


def need_root(reason: str) -> None:
    """Return if this process is root; else start the command again under sudo, and do not return."""
    if os.geteuid() == 0:
        return
    sudo = shutil.which("sudo")
    if sudo is None:
        raise NeedsRootError(f"{reason}, which needs root: run this as root (sudo is not installed); {WITHOUT}")
    write_error(f"mrclab: {reason}: asking for root with sudo")
    os.execv(sudo, [sudo, "-E", *python("-m", "cli"), *with_name(sys.argv[1:])])


def with_name(words: list[str]) -> list[str]:
    """The words with `--name` of the chosen lab behind the first: sudo may drop MRCLAB_NAME from the environment."""
    name = labname.chosen()
    if name == DEFAULT_LAB or words[:1] == ["--name"]:
        return words
    return [*words[:1], "--name", name.text, *words[1:]]
