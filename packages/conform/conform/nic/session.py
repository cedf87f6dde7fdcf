"""Frames and answers between the tester and a device, in order: live, or again from a capture.

A test sees frames, answers and waits that ended, and nothing else of the device. So the same events make the same test
end in the same way: that is how a bundle is judged again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from conform.capture import TEXT, Event
from conform.nic.control import Channel, ControlError
from conform.nic.link import Link

SILENCE = b"nothing came"
NO_ANSWER = b"! "
EVENTS_MAX = 6_000
LATE_NS = 1_000_000_000
"""How long after the end of a wait frames are still taken that had come before; a device that floods never stops."""


class ReplayError(RuntimeError):
    """The capture does not go on as the test does: it is of other rules, or was changed."""


class FloodError(RuntimeError):
    """The device sends more frames than any test asks for."""


class Session:
    """A live session."""

    def __init__(self, link: Link, control: Channel) -> None:
        self._link, self._control = link, control
        self._begun_ns = time.monotonic_ns()
        self.events: list[Event] = []

    def clock_ns(self) -> int:
        """Nanoseconds since the session began; no test may decide by it, but how long to wait."""
        return time.monotonic_ns() - self._begun_ns

    def _note(self, place: str, data: bytes, inward: bool, note: str = "") -> None:
        if len(self.events) >= EVENTS_MAX:
            raise FloodError(f"more than {EVENTS_MAX} frames in one test")
        self.events.append(Event(self.clock_ns(), place, data, inward, note))

    def send(self, port: int, data: bytes, note: str = "") -> None:
        self._note(f"port{port}", data, True, note)
        self._link.send(port, data)

    def receive(self, until_ns: int) -> Event | None:
        """The device's next frame; None once it is later than `until_ns` by the clock."""
        wait_ns = until_ns - self.clock_ns()
        found = self._link.receive(max(wait_ns, 0) / 1e9) if wait_ns > -LATE_NS else None
        while found is None and self.clock_ns() < until_ns:
            found = self._link.receive((until_ns - self.clock_ns()) / 1e9)
        if found is None:
            self._note(TEXT, SILENCE, True)
            return None
        self._note(f"port{found[0]}", found[1], False)
        return self.events[-1]

    def ask(self, line: str) -> str:
        self._note(TEXT, line.encode(), True)
        try:
            answer = self._control.ask(line, self._link)
        except ControlError as error:
            self._note(TEXT, NO_ANSWER + str(error).encode(), False)
            raise
        self._note(TEXT, answer.encode(), False)
        return answer


class Replay:
    """The same from the events of a capture."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = list(events)
        self._at = 0

    def clock_ns(self) -> int:
        return self._events[min(self._at, len(self._events) - 1)].t_ns if self._events else 0

    def _next(self, what: str) -> Event:
        if self._at >= EVENTS_MAX:
            raise FloodError(f"more than {EVENTS_MAX} frames in one test")
        if self._at >= len(self._events):
            raise ReplayError(f"the capture ends where {what}")
        self._at += 1
        return self._events[self._at - 1]

    def send(self, port: int, data: bytes, note: str = "") -> None:
        found = self._next(f"the tester sends {note or 'a frame'}")
        if (found.place, found.data, found.inward) != (f"port{port}", data, True):
            raise ReplayError(f"event {self._at} of the capture is not {note or 'the frame that the tester sends'}")

    def receive(self, until_ns: int) -> Event | None:
        found = self._next("the tester waits")
        if found.place == TEXT and found.data == SILENCE:
            return None
        if found.place == TEXT or found.inward:
            raise ReplayError(f"event {self._at} of the capture is no frame of the device")
        return found

    def ask(self, line: str) -> str:
        asked = self._next(f"the tester asks {line.partition(' ')[0]}")
        if (asked.place, asked.data, asked.inward) != (TEXT, line.encode(), True):
            raise ReplayError(f"event {self._at} of the capture is not the request {line!r}")
        answer = self._next("the device answers").data
        if answer.startswith(NO_ANSWER):
            raise ControlError(answer.removeprefix(NO_ANSWER).decode())
        return answer.decode()
