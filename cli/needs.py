"""What a command line needs beside Python: packages, which the `lab` script installs, and huge pages for virtual time.

The script knows commands of the system and Debian's packages; which command line needs what is decided here, where
options are parsed anyway. A command line that cannot be parsed ends here, before anything is installed.
"""

from __future__ import annotations

import argparse
import os
import sys

from cli.command_table import COMMANDS

TUNABLES = "GLIBC_TUNABLES"
HUGE_PAGES = "glibc.malloc.hugetlb=1"


def in_virtual_time(namespace: argparse.Namespace) -> bool:
    """Whether a command line runs scenarios in virtual time."""
    return getattr(namespace, "world", None) == "simulated"


def needs(namespace: argparse.Namespace) -> tuple[str, ...]:
    """Of `compiler`, `headers`, `extensions`, `network` and `tcpdump` those that this command line needs."""
    useless = "network" if in_virtual_time(namespace) else "extensions"
    return tuple(need for need in COMMANDS[namespace.command].needs if need != useless)


def start_with_huge_pages(namespace: argparse.Namespace) -> None:
    """Start this process's own command line again with huge pages, where it runs in virtual time.

    Whole worlds in one process wait for memory, in huge pages less so. The C library reads its tunables only when a
    process starts. A user's own tunables are left as they are.
    """
    if in_virtual_time(namespace) and TUNABLES not in os.environ:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, TUNABLES: HUGE_PAGES})
