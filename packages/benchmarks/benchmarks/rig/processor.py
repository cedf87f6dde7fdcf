"""Processor time of other processes."""

from __future__ import annotations

import time


def cpu_ns(pid: int) -> int:
    """Processor time of a process so far, by the kernel's clock of it."""
    return time.clock_gettime_ns(~pid << 3 | 2)
