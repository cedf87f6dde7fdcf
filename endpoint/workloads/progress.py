"""Which operations of a rank's part of a schedule may start, and when: no messages, no clock, no memory."""

from __future__ import annotations

import heapq
from array import array
from collections import deque
from collections.abc import Callable

from endpoint.nic.config import NEVER
from schedules import RankOperations, operation


class ScheduleProgress:
    """Starts operations as their predecessors complete; computing occupies a processor of the rank.

    `send` is called with the number of a send that may start. The caller tells what has arrived and been acknowledged.
    Sends and calculations take the processor that they name, in the order in which they become ready; a send takes it
    for no time at all. Receives need no processor.
    """

    def __init__(self, part: RankOperations, send: Callable[[int], None], time_scale: float) -> None:
        self._part = part
        self._send = send
        self._scale = time_scale
        self._need = array("q", part.need)
        self._turned: dict[int, int] = {}
        self._arrived = bytearray(len(part.kind))
        self._posted = bytearray(len(part.kind))
        self._ready: deque[int] = deque()
        self._busy: dict[int, deque[int]] = {}  # per processor that computes, the waiting operations
        self._timers: list[tuple[int, int]] = []
        self._began_ns = 0
        self._running = False
        self.left = len(part.kind)

    def begin(self, now_ns: int) -> None:
        """The schedule starts."""
        self._began_ns = now_ns
        self._ready.extend(number for number, need in enumerate(self._need) if not need)
        self._run(now_ns)

    def completed(self, number: int, now_ns: int) -> None:
        """A send is acknowledged."""
        self._complete(number)
        self._run(now_ns)

    def arrived(self, number: int, now_ns: int) -> None:
        """The message of a receive is there, perhaps before the receive has started."""
        self._arrived[number] = 1
        if self._posted[number]:
            self.completed(number, now_ns)

    def timer(self, now_ns: int) -> None:
        """Time has passed: end what is due."""
        while self._timers and self._timers[0][0] <= now_ns:
            _, number = heapq.heappop(self._timers)
            if self._part.kind[number] == operation.CALC:
                waiting = self._busy.pop(self._part.processor[number])
                self._ready.extendleft(reversed(waiting))
            self._complete(number)
        self._run(now_ns)

    def next_ns(self) -> int:
        """When `timer` is due; NEVER if nothing waits for time."""
        return self._timers[0][0] if self._timers else NEVER

    def _run(self, now_ns: int) -> None:
        if self._running:  # called back by a send that completed at once
            return
        self._running = True
        while self._ready:
            self._start(self._ready.popleft(), now_ns)
        self._running = False

    def _start(self, number: int, now_ns: int) -> None:
        part = self._part
        kind, amount = part.kind[number], part.amount[number]
        if kind in (operation.SEND, operation.CALC):
            waiting = self._busy.get(part.processor[number])
            if waiting is not None:
                waiting.append(number)
                return
        for after in part.start[part.start_at[number] : part.start_at[number + 1]]:
            self._release(after)
        if kind == operation.SEND:
            self._send(number)
        elif kind == operation.RECV:
            self._posted[number] = 1
            if self._arrived[number]:
                self._complete(number)
        else:
            lasts_ns = round(amount * self._scale)
            end_ns = now_ns + lasts_ns if kind == operation.CALC else self._began_ns + lasts_ns
            if end_ns <= now_ns:
                self._complete(number)
                return
            if kind == operation.CALC:
                self._busy[part.processor[number]] = deque()
            heapq.heappush(self._timers, (end_ns, number))

    def _complete(self, number: int) -> None:
        part = self._part
        self.left -= 1
        for after in part.next[part.next_at[number] : part.next_at[number + 1]]:
            if part.kind[after] != operation.TURN:
                self._release(after)
                continue
            self._need[after] -= 1
            if not self._need[after]:
                self.left -= 1
            turn = self._turned.get(after, 0)
            self._turned[after] = turn + 1
            if part.next_at[after] + turn < part.next_at[after + 1]:
                self._release(part.next[part.next_at[after] + turn])

    def _release(self, number: int) -> None:
        self._need[number] -= 1
        if not self._need[number]:
            self._ready.append(number)
