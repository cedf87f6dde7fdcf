"""The memory that this machine has to spare."""

from __future__ import annotations

from pathlib import Path

__all__ = ["SHARE_MAX", "available"]

SHARE_MAX = 0.9
"""Of what is available: more would swap."""


def available(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes that processes could have without swapping (proc(5), MemAvailable)."""
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{meminfo} does not say how much memory is available")
