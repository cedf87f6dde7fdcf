"""Commands in virtual time start again with huge pages, at once where their words say where they run.

Whole worlds in one process wait for memory, in huge pages less so. The C library reads its tunables only when a process
starts. Nothing is imported here that would be imported twice for it.
"""

import os
import sys
from collections.abc import Sequence
from itertools import pairwise

TUNABLES = "GLIBC_TUNABLES"
HUGE_PAGES = "glibc.malloc.hugetlb=1"


def named(words: Sequence[str]) -> bool:
    """Whether the words of a command line themselves choose virtual time. Other commands have it as a default."""
    if words[:1] == ["--needs"]:
        return False
    return "--world=simulated" in words or ("--world", "simulated") in pairwise(words)


def start_with_them() -> None:
    """Start this process's own command line again with huge pages. A user's own tunables are left as they are."""
    if TUNABLES not in os.environ:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, TUNABLES: HUGE_PAGES})
