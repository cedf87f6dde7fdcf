"""The packages that a command line needs beside Python; the `lab` script installs them.

The script knows commands of the system, Debian's packages and how p4runtime-shell is installed; which command line
needs what is decided here, where options are parsed anyway. A command line that cannot be parsed ends here, before
anything is installed, and so does one whose scenario or transport has a name that is none.
"""

from __future__ import annotations

import argparse

from cli.command_table import entry

REAL_LINKS = ("controller", "exec", "launch", "shell")
"""Commands that know no lab in virtual time."""


def in_virtual_time(namespace: argparse.Namespace) -> bool:
    """Whether a command line runs scenarios in virtual time."""
    return getattr(namespace, "world", None) == "simulated"


def without_root(namespace: argparse.Namespace) -> bool:
    """Whether a command that usually needs root does not this time: it is for a lab in virtual time, or only reads."""
    if in_virtual_time(namespace) or (namespace.command == "fault" and namespace.verb == "list"):
        return True
    if namespace.command not in ("down", "fault", "undo"):
        return False
    if getattr(namespace, "all", False):
        return True  # ends labs in virtual time, and then asks for root where there are others
    from running.view import find

    return find() is not None


def refuse_virtual_time(namespace: argparse.Namespace) -> None:
    """NoLabError where a command for real links finds only a lab in virtual time. Without a lab the command says so."""
    elsewhere = (getattr(namespace, name, None) for name in ("sdk", "addresses"))
    if namespace.command not in REAL_LINKS or any(elsewhere):
        return
    if getattr(namespace, "planned", False) and namespace.plan:
        return
    from running.view import find
    from topo.emulation import NoLabError, labname, state

    name = labname.chosen()
    if state.read_record(name.root) is None and find() is not None:
        at = name.option()
        raise NoLabError(
            f"{namespace.command} needs real links, and {name.words()} is in virtual time: ./lab down{at}, then"
            f" ./lab up PLAN{at}"
        )


def needs(namespace: argparse.Namespace) -> tuple[str, ...]:
    """Of `compiler`, `headers`, `extensions`, `network` and `tcpdump` those that this command line needs; or `shell`
    alone, which is p4runtime-shell."""
    if getattr(namespace, "controller_command", None) == "shell":
        return ("shell",)
    known = entry(namespace.command)
    named = known.needs if known else ()
    if namespace.command in ("run", "sweep"):  # a wrong name is told before minutes of installing
        from running.transport_choice import transport
        from scenarios import library

        for name in namespace.scenarios if namespace.command == "sweep" else [namespace.scenario]:
            library.check(name)
        for name in namespace.transport.split(","):
            transport(name)
    return tuple(need for need in named if need != "network" or not in_virtual_time(namespace))
