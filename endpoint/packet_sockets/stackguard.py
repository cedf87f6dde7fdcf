"""Keep MRC packets from the host's own stack, which would answer them with ICMPv6 errors; leave it everything else.

A classic BPF program at the clsact ingress hook drops them. Packet sockets bound to all protocols are served before
that hook, so the driver still gets everything, and ping, TCP and neighbour discovery never match.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from common import bpf
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
        try:
            for interface in self._interfaces:
                self._install(interface)
        except StackGuardError:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Undo what was installed; an interface that has gone meanwhile took its filters along."""
        for interface in self._filters:
            _tc("filter", "del", "dev", interface, "ingress", "pref", _PREFERENCE)
        for interface in self._qdiscs:
            _tc("qdisc", "del", "dev", interface, "clsact")
        self._filters.clear()
        self._qdiscs.clear()

    def _install(self, interface: str) -> None:
        if _tc("qdisc", "add", "dev", interface, "clsact") is None:
            self._qdiscs.append(interface)
        # If we added no qdisc, there is another program's clsact, or no such interface: the next command tells.
        _tc("filter", "del", "dev", interface, "ingress", "pref", _PREFERENCE)  # left by an agent that was killed
        command = ("filter", "add", "dev", interface, "ingress", "pref", _PREFERENCE, "protocol", "ipv6")
        complaint = _tc(*command, "bpf", "da", "bytecode", self._bytecode)
        if complaint is not None:
            raise StackGuardError(f"cannot keep MRC packets on {interface} from the host's stack: {complaint}")
        self._filters.append(interface)


def _tc(*words: str) -> str | None:
    """Run tc; None, or what it complained about."""
    try:
        done = subprocess.run(["tc", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "there is no `tc` command; it comes with the package iproute2"
    return None if done.returncode == 0 else f"tc {' '.join(words[:4])}: {done.stderr.strip()}"
