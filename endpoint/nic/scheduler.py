"""Whose turn it is on the NIC's ports: control frames against data by weight, queue pairs against each other by bytes.

On each port ten control frames go before a data frame, and no more while data waits for the port: the reference's
10:1, by frames. Queue pairs take turns of as many bytes (deficit round robin), with packets of any size.

A queue pair takes part through its `Agenda`, which says whether the QP may have something to send and by when it
wants to be called. The scheduler knows no more of a QP than that and its `Sender`.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from endpoint.nic.config import NEVER
from endpoint.nic.port import Port, PortSet
from endpoint.nic.work import WorkQueue

QUANTUM_BYTES: Final = 4300
"""Bytes of frames that one QP may send before the next one's turn: a full packet."""
QUANTUM_AHEAD_BYTES = 8 * QUANTUM_BYTES
"""The same where ports may run ahead of their lines: a turn costs processor time."""
ALONE_BYTES: Final = 1 << 20
"""The same for a QP with no other waiting behind it, or one that uses what the others cannot."""
DEBT_TURNS_MAX: Final = 8
"""Turns that a QP waits at most for what it has sent in advance."""


class Sender:
    """The sending half of a queue pair. A base class and no protocol, so that compiled code calls it directly."""

    def transmit(self, now_ns: int, out: list[tuple[int, bytes]], budget: int) -> bool:
        """Append up to `budget` frames while the agenda has credit, which they use up.

        True: there is more, but the budget, the credit, the ports or the QP's rate is used up.
        """
        raise NotImplementedError


class Agenda:
    """One QP's place in the turns, and its deadline. `sender` is there from RTS on."""

    sender: Sender

    def __init__(self, scheduler: Scheduler, work: WorkQueue) -> None:
        self._scheduler = scheduler
        self._work = work
        self._closed = False
        self.active = False
        """Among the QPs that may have something to send."""
        self.credit = 0
        """Bytes that are left of this turn; below 0 by the part of the last frame that exceeded it."""
        self.deadline_ns = NEVER

    def wake(self) -> None:
        """There may be something to send."""
        if not self.active and self._work.pending:
            self.active = True
            self._scheduler.ready.append(self)
            self._scheduler.resting = False
            if self.deadline_ns == NEVER:
                self.settle(self._scheduler.now_ns)  # no port may ever take the packet: the retry rule counts

    def arm(self, at_ns: int) -> None:
        """The QP wants to be called by then. A deadline may turn out to be too early; it is never too late."""
        if at_ns < self.deadline_ns and not self._closed:
            self.deadline_ns = at_ns
            if at_ns < self._scheduler.deadline_ns:
                self._scheduler.deadline_ns = at_ns

    def settle(self, at_ns: int) -> None:
        """Due work is done: the QP wants to be called by `at_ns`, sooner or later than before."""
        scheduler = self._scheduler
        if at_ns < scheduler.deadline_ns:
            scheduler.deadline_ns = at_ns
        elif self.deadline_ns == scheduler.deadline_ns:
            scheduler.deadline_settled = False
        self.deadline_ns = at_ns

    def close(self) -> None:
        """A QP in ERROR, or destroyed, has no deadline, even if the QP failed in the midst of sending."""
        self._closed = True
        self.settle(NEVER)


class Scheduler:
    """`burst_ns` is how far ahead of its line rate a port may be handed frames."""

    def __init__(self, ports: PortSet, burst_ns: int, now_ns: int) -> None:
        self._ports = ports
        self._burst_ns = burst_ns
        self._quantum_bytes = QUANTUM_AHEAD_BYTES if burst_ns else QUANTUM_BYTES
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
        self.deadline_ns = NEVER
        """The earliest deadline of all QPs; once it was put off, not later than that, until the next look."""
        self.deadline_settled = True
        """Whether it is that of a QP now. A NIC with a thousand QPs must not look at all of them per packet."""
        self.resting = False
        """Whether a call of `packets_to_send` before then would change nothing, if nothing else happens."""

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        """Up to `limit` frames that the ports' pacing lets go."""
        self.now_ns = now_ns
        out: list[tuple[int, bytes]] = []
        usable = 0
        horizon_ns = self.horizon_ns = now_ns + self._burst_ns
        ready = self.ready
        ports = self._ports.list
        for port in ports:
            if port.up:
                if port.control_waits:
                    port.send_control(now_ns, out, limit, bool(ready) and port.paused_ns <= now_ns)
                if port.free_ns <= horizon_ns and port.paused_ns <= now_ns:
                    usable |= port.bit
        self.usable = usable
        self.rate_due_ns = NEVER
        if ready:
            self._take_turns(now_ns, out, limit)
        self.pacing_ns = NEVER
        if len(out) >= limit:
            self.pacing_ns = now_ns
        elif ready:
            pacing_ns = self.rate_due_ns
            for port in ports:
                if port.up and not port.bit & self.usable:
                    pacing_ns = min(pacing_ns, max(port.free_ns - self._burst_ns, port.paused_ns))
            self.pacing_ns = pacing_ns
        self.resting = not (ready and self.usable)  # with a port to use, queue pairs would be asked again
        for port in ports:
            if port.control_waits:
                if port.up and len(out) < limit:
                    self._send_held(port, now_ns, out, limit)
                self.resting = self.resting and not port.control_waits
        return out

    def _take_turns(self, now_ns: int, out: list[tuple[int, bytes]], limit: int) -> None:
        """Data of one QP after the other, until the frames or the ports are used up.

        The first QP goes to the end when its credit is used up. While it cannot use the ports that are free, or is held
        back by its rate, the others have them, in advance of their turns: such a debt is paid before the next one.
        """
        ready, quantum = self.ready, self._quantum_bytes
        at = 0
        while at < len(ready) and len(out) < limit and self.usable:
            agenda = ready[at]
            if at:
                agenda.credit = max(agenda.credit, DEBT_TURNS_MAX * -quantum) + ALONE_BYTES
            elif len(ready) == 1:
                agenda.credit = ALONE_BYTES
            elif agenda.credit <= 0:
                agenda.credit += quantum
                if agenda.credit <= 0:
                    ready.rotate(-1)
                    continue
            elif agenda.credit > quantum:
                agenda.credit = quantum
            more = agenda.sender.transmit(now_ns, out, limit - len(out))
            if at:
                agenda.credit -= ALONE_BYTES
            if not more:
                del ready[at]
                agenda.active = False
                agenda.credit = 0
            elif not at and agenda.credit <= 0:
                ready.rotate(-1)
            else:
                at += 1

    def _send_held(self, port: Port, now_ns: int, out: list[tuple[int, bytes]], limit: int) -> None:
        """Control frames that waited for data: they go if no data can take the port now, else when the port is free."""
        if not self.ready or port.bit & self.usable:
            port.send_control(now_ns, out, limit, False)
        if port.control_waits:
            self.pacing_ns = min(self.pacing_ns, max(now_ns, port.free_ns - self._burst_ns))
