"""tshark with this project's dissector, for root and for other users."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from common.scratch import Scratch

SCRIPT = Path(__file__).resolve().parents[1] / "endpoint" / "wireshark" / "mrc.lua"


@contextlib.contextmanager
def tshark(script: Path = SCRIPT) -> Iterator[list[str]]:
    """The first words of a tshark that loads the dissector; they hold until the block ends.

    Wireshark loads no script for root (4.4 says nothing of it), and in a user namespace no process is root. Without
    root's powers a checkout in a home that is its owner's alone cannot be read, so root's tshark has a copy of the
    script. It also takes scripts from HOME, which after `sudo -E` is another user's: that is an empty folder here. And
    it reads a file `IOR.txt` of the current folder, whose FIFO it would wait for, so that folder is another one.
    """
    if os.geteuid() != 0:
        yield ["env", "--chdir=/", "tshark", "-X", f"lua_script:{script}"]
        return
    with Scratch("mrclab-dissector-") as folder:
        own = ["env", "--chdir=/", "--unset=XDG_CONFIG_HOME", f"HOME={folder / 'home'}"]
        yield [*own, "unshare", "--user", "tshark", "-X", f"lua_script:{shutil.copy(script, folder)}"]
