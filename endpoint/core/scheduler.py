"""Whose turn it is on the NIC's ports: control frames first, then data of the queue pairs, one after the other.

A queue pair takes part through its `Agenda`, which says whether the QP may have something to send and by when it
wants to be called. The scheduler knows no more of a QP than that and its `Sender`.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from endpoint.core.config import NEVER
from endpoint.core.port import PortSet
from endpoint.core.work import WorkQueue

QUANTUM = 8
"""Packets that one QP may send before the next one's turn."""


class Sender(Protocol):
    """The sending half of a queue pair."""

    def transmit(self, now_ns: int, out: list[tuple[int, bytes]], budget: int) -> bool:
        """Append up to `budget` frames. True: there is more, but the budget, the ports or the QP's rate is used up."""


class Agenda:
    """One QP's place in the turns, and its deadline. `sender` is there from RTS on."""

    __slots__ = ("_closed", "_scheduler", "_work", "active", "deadline_ns", "sender")

    sender: Sender

    def __init__(self, scheduler: Scheduler, work: WorkQueue) -> None:
        self._scheduler = scheduler
        self._work = work
        self._closed = False
        self.active = False
        """Among the QPs that may have something to send."""
        self.deadline_ns = NEVER

    def wake(self) -> None:
        """There may be something to send."""
        if not self.active and self._work.pending:
            self.active = True
            self._scheduler.ready.append(self)
            if self.deadline_ns == NEVER:
                self.deadline_ns = self._scheduler.now_ns  # no port may ever take the packet: the retry rule counts

    def arm(self, at_ns: int) -> None:
        """The QP wants to be called by then. A deadline may turn out to be too early; it is never too late."""
        if at_ns < self.deadline_ns and not self._closed:
            self.deadline_ns = at_ns

    def close(self) -> None:
        """The QP has gone to ERROR or away: it has no deadline any more, although it may be in the midst of sending."""
        self._closed = True
        self.deadline_ns = NEVER


class Scheduler:
    """`burst_ns` is how far ahead of its line rate a port may be handed frames."""

    def __init__(self, ports: PortSet, burst_ns: int, now_ns: int) -> None:
        self._ports = ports
        self._burst_ns = burst_ns
        self.now_ns = now_ns
        self.ready: deque[Agenda] = deque()
        """QPs that may have something to send, in the order of their turns."""
        self.usable = 0
        """Ports that may send data now; kept by `packets_to_send` and the senders."""
        self.horizon_ns = 0
        self.rate_due_ns = NEVER
        """When the first QP that is held back by its own rate may go on; senders lower it."""
        self.pacing_ns = NEVER
        """When `packets_to_send` next has something to do."""

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        """Control frames first, then data, one QP after the other in turns of a few packets."""
        self.now_ns = now_ns
        out: list[tuple[int, bytes]] = []
        usable = 0
        horizon_ns = self.horizon_ns = now_ns + self._burst_ns
        for port in self._ports:
            if port.up:
                control = port.control
                while control and len(out) < limit:
                    frame = control.popleft()
                    port.charge(len(frame), now_ns)
                    out.append((port.number, frame))
                if port.free_ns <= horizon_ns:
                    usable |= port.bit
        self.usable = usable
        self.rate_due_ns = NEVER
        ready = self.ready
        blocked = 0  # QPs in a row that could send nothing for want of a port or of their own rate
        while ready and len(out) < limit and blocked < len(ready) and self.usable:
            agenda = ready[0]
            before = len(out)
            if agenda.sender.transmit(now_ns, out, min(QUANTUM, limit - before)):
                blocked = blocked + 1 if len(out) == before else 0
                ready.rotate(-1)
            else:
                ready.popleft()
                agenda.active = False
        self.pacing_ns = NEVER
        if len(out) >= limit:
            self.pacing_ns = now_ns
        elif ready:
            busy = [port.free_ns for port in self._ports if port.up and not port.bit & self.usable]
            self.pacing_ns = min(self.rate_due_ns, min(busy, default=NEVER) - self._burst_ns)
        return out
