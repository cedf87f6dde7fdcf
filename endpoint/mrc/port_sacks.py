"""Port states in SACKs, as CX8 has them (paper §3): the other way besides endpoint operations to tell peers.

The word of ports stands behind the CC_STATE of every SACK. A change is also told at once, by a SACK that nothing asked
for on every live plane of one QP to each peer. Nothing answers such a SACK, so while a port is down it is repeated,
and the news that all are up is repeated a few times; later SACKs say the same.
"""

from __future__ import annotations

from collections.abc import Callable

from endpoint.nic import wire
from endpoint.nic.config import NEVER
from endpoint.nic.dialect import Dialect
from endpoint.nic.port import PortSet

REPEATS = 8
"""How often it is said that every port is up again."""


class PortSacks:
    """`tell(now_ns)` sends one SACK a plane to every peer; `interval_ns` is the time between repetitions."""

    def __init__(self, dialect: Dialect, ports: PortSet, interval_ns: int, tell: Callable[[int], None]) -> None:
        self._dialect = dialect
        self._ports = ports
        self._interval_ns = interval_ns
        self._tell = tell
        self._left = 0
        self._due_ns = NEVER

    def word(self) -> bytes:
        """What stands behind the CC_STATE of a SACK: our ports that are up."""
        return wire.PORT_STATES.pack(self._dialect.mask_to_wire(self._ports.up))

    def announce(self, now_ns: int) -> None:
        """Our ports have changed, or a new peer has to hear of them."""
        self._left = REPEATS
        self._repeat(now_ns)

    def handle_timer(self, now_ns: int) -> None:
        """Repeat what is due."""
        if self._due_ns <= now_ns:
            self._repeat(now_ns)

    def next_timer_ns(self) -> int:
        """When `handle_timer` next has something to do; NEVER if nothing is to be repeated."""
        return self._due_ns

    def _repeat(self, now_ns: int) -> None:
        self._tell(now_ns)
        if self._ports.up == self._ports.all:
            self._left -= 1
        self._due_ns = now_ns + self._interval_ns if self._left > 0 else NEVER
