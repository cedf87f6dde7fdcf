"""Keep MRC packets from the host's own stack, which would answer them with ICMPv6 errors; leave it everything else.

A classic BPF program at the clsact ingress hook drops them. Packet sockets bound to all protocols are served before
that hook, so the driver still gets everything, and ping, TCP and neighbour discovery never match.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from common.linux import bpf
from endpoint.frame_filter import SEGMENTS_MAX, udp_over_ipv6

_TC_ACT_OK, _TC_ACT_SHOT = 0, 2
_PREFERENCE = "4791"  # our filter's own place on the hook, so that replacing and removing touch no other


class StackGuardError(Exception):
    """`tc` refused; the message says which command and why."""


class StackGuard:
    """A context: the drop filters are on `interfaces` inside it and gone after it. Earlier filters stay."""

    def __init__(self, interfaces: Sequence[str], udp_ports: Sequence[int]) -> None:
        self._interfaces = tuple(interfaces)
        self._bytecode = bpf.tc_bytecode(udp_over_ipv6(udp_ports, _TC_ACT_SHOT, _TC_ACT_OK, segments=SEGMENTS_MAX))
        self._qdiscs: list[str] = []
        self._filters: list[str] = []

    def __enter__(self) -> StackGuard:
        adding = [f"qdisc add dev {interface} clsact" for interface in self._interfaces]
        # A filter may be left by an agent that was killed.
        clearing = [f"filter del dev {interface} ingress pref {_PREFERENCE}" for interface in self._interfaces]
        filtering = [
            f'filter add dev {interface} ingress pref {_PREFERENCE} protocol ipv6 bpf da bytecode "{self._bytecode}"'
            for interface in self._interfaces
        ]
        failed = _tc([*adding, *clearing, *filtering])
        # If we added no qdisc, there is another program's clsact, or no such interface: its filter's command tells.
        self._qdiscs = [
            interface for interface, command in zip(self._interfaces, adding, strict=True) if command not in failed
        ]
        self._filters = [
            interface for interface, command in zip(self._interfaces, filtering, strict=True) if command not in failed
        ]
        for interface, command in zip(self._interfaces, filtering, strict=True):
            if command in failed:
                self.remove()
                raise StackGuardError(
                    f"cannot keep MRC packets on {interface} from the host's stack: {failed[command]}"
                )
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Undo what was installed; an interface that has gone meanwhile took its filters along."""
        removed = [f"filter del dev {interface} ingress pref {_PREFERENCE}" for interface in self._filters]
        _tc([*removed, *(f"qdisc del dev {interface} clsact" for interface in self._qdiscs)])
        self._filters.clear()
        self._qdiscs.clear()


def _tc(commands: Sequence[str]) -> dict[str, str]:
    """Run these commands of tc in one process; those that failed, with its complaint."""
    if not commands:
        return {}
    words = ["tc", "-force", "-batch", "-"]
    try:
        done = subprocess.run(words, input="\n".join(commands) + "\n", capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return dict.fromkeys(commands, "there is no `tc` command; it comes with the package iproute2")
    failed: dict[str, str] = {}
    said: list[str] = []
    for line in done.stderr.splitlines():
        number = line.removeprefix("Command failed -:")
        if number != line and number.isdecimal():
            command = commands[int(number) - 1]
            failed[command] = f"tc {' '.join(command.split()[:4])}: {' '.join(said)}"
            said = []
        else:
            said.append(line.strip())
    return failed
