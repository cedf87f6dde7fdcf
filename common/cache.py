"""Where what can be made again is kept. Needs nothing that takes time to import: every agent reads this first."""

from __future__ import annotations

import os


def directory() -> str:
    """The folder of the user's cache of this program: `$XDG_CACHE_HOME/mrclab`, or `~/.cache/mrclab`."""
    root = os.environ.get("XDG_CACHE_HOME")
    return os.path.join(root or os.path.join(os.path.expanduser("~"), ".cache"), "mrclab")
