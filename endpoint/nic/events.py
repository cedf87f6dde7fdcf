"""The events of one NIC for the journal, and its dropped packets by reason."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from endpoint.transport import Event

if TYPE_CHECKING:
    from endpoint.nic.port import Port


class EventLog:
    """At most `kept` events, oldest first; when they are not taken, the oldest go."""

    def __init__(self, kept: int) -> None:
        self._events: deque[Event] = deque(maxlen=kept)
        self.drops: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._events)

    def take(self) -> Event | None:
        """The oldest event, which is then forgotten."""
        return self._events.popleft() if self._events else None

    def emit(self, t_ns: int, kind: str, **fields: Any) -> None:
        """Keep an event."""
        self._events.append(Event(t_ns, kind, fields))

    def plane_event(self, t_ns: int, port: Port, side: str, peer: str | None, up: bool, cause: str) -> None:
        """A `plane` line of the journal: `side` is local or peer."""
        self.emit(t_ns, "plane", plane=port.plane, side=side, peer=peer, state="up" if up else "down", cause=cause)

    def count(self, reason: str, packets: int = 1) -> None:
        """Packets were dropped, or fields of theirs ignored."""
        self.drops[reason] = self.drops.get(reason, 0) + packets
