"""What carries frames to a switch and back: packet sockets, or the recording of a run.

No test waits for a time: behind the packets of a test goes one marker to each port, and all that the packets caused has
been seen when the markers have.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from conform.capture import TEXT, Event
from conform.packet_socket import PACKET_OUTGOING, packet_socket
from conform.switch.findings import Arrival

ROUND_S = 0.25
"""Without a frame of the switch before other markers are sent: the first may have met a full queue. While frames come,
more markers would only lengthen the queue that is being tested."""
SENT, END, SILENT, ASKED = "sent by port", "end", "silent", "asked"
"""The lines of text of a recording."""
_SO_RCVBUFFORCE = 33


class SilentError(Exception):
    """The switch forwards nothing to a port, or too late; the message says which."""


class Sockets:
    """A packet socket at each port, in the network namespace of the calling thread. `marker` makes the frame of a
    marker from port to port, by its number; `recording` grows with all that is said."""

    def __init__(
        self,
        names: Mapping[int, str],
        patience_s: float,
        marker: Callable[[int, int, int], bytes],
        recording: list[Event],
    ) -> None:
        self._patience_s, self._marker, self._recording = patience_s, marker, recording
        self._names = names
        self._count = 0
        self._sockets: dict[int, socket.socket] = {}
        with contextlib.ExitStack() as opened:
            for port, name in names.items():
                one = self._sockets[port] = opened.enter_context(packet_socket(name))
                one.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 25)
                one.setblocking(False)
            self.close = opened.pop_all().close

    def exchange(self, port: int, frames: Sequence[bytes], linger: bool = False) -> list[Arrival]:
        """What leaves the switch when these frames have arrived by a port, markers left out. SilentError.

        With `linger`, wait for a while if nothing has left: an answer may come later than the markers.
        """
        self._note(f"{SENT} {port}", inward=True)
        for frame in frames:
            self._recording.append(Event(time.monotonic_ns(), self._names[port], frame, inward=True))
            self._send(port, frame)
        found: list[Arrival] = []
        try:
            self._settle(port, found)
        except SilentError as error:
            self._note(f"{SILENT} {error}")
            raise
        until = time.monotonic() + ROUND_S
        while linger and not found and (left := until - time.monotonic()) > 0:
            found += self._arrived(left)
        self._note(END)
        return found

    def ask(self, question: str, function: Callable[[], object]) -> str:
        """What a command of the device says."""
        answer = str(function())
        self._note(f"{ASKED} {question}: {answer}")
        return answer

    def _note(self, text: str, *, inward: bool = False) -> None:
        self._recording.append(Event(time.monotonic_ns(), TEXT, text.encode(), inward))

    def _send(self, port: int, frame: bytes) -> None:
        """A frame to a port; the tester's own queue may be full for a moment."""
        until = time.monotonic() + self._patience_s
        while True:
            try:
                self._sockets[port].send(frame)
                return
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.ENOBUFS) or time.monotonic() > until:
                    raise SilentError(f"a frame cannot be sent to port {port}: {error.strerror}") from None
                select.select([], [self._sockets[port]], [], ROUND_S)

    def _arrived(self, wait_s: float) -> list[Arrival]:
        """What arrives, waiting at most so long for the first."""
        select.select(list(self._sockets.values()), [], [], wait_s)
        found = []
        for port, one in self._sockets.items():
            with contextlib.suppress(BlockingIOError):
                while True:
                    frame, address = one.recvfrom(1 << 16)
                    if address[2] != PACKET_OUTGOING:
                        found.append(Arrival(port, frame))
                        self._recording.append(Event(time.monotonic_ns(), self._names[port], frame, inward=False))
        return found

    def _settle(self, port: int, found: list[Arrival]) -> None:
        """Markers by one port to all, again and again until each port has sent one."""
        waiting, markers = set(self._sockets), dict[tuple[int, bytes], int]()
        until = time.monotonic() + self._patience_s
        while waiting:
            if time.monotonic() > until:
                names = ", ".join(map(str, sorted(waiting)))
                raise SilentError(f"no packet to a neighbour's uSID left by port {names} within {self._patience_s:g} s")
            for out in sorted(waiting):
                self._count += 1
                marker = self._marker(port, out, self._count)
                markers[out, marker[MARKED]] = out
                self._send(port, marker)
            again = min(until, time.monotonic() + ROUND_S)
            while waiting and (left := again - time.monotonic()) > 0:
                arrived = self._arrived(left)
                if arrived:
                    again = min(until, time.monotonic() + ROUND_S)
                for arrival in arrived:
                    if (arrival.port, arrival.frame[MARKED]) in markers:
                        waiting.discard(arrival.port)
                    else:
                        found.append(arrival)


MARKED = slice(22, 38)
"""Where a marker has its number: in the source address."""


class Recording:
    """The wire of an earlier run: hands out what left the switch then, in the same order."""

    def __init__(self, names: Mapping[int, str], events: Sequence[Event]) -> None:
        self._ports = {name: port for port, name in names.items()}
        self._events = iter(events)

    def close(self) -> None:
        """Nothing is open."""

    def exchange(self, port: int, frames: Sequence[bytes], linger: bool = False) -> list[Arrival]:
        found: list[Arrival] = []
        for event in self._events:
            text = event.data.decode() if event.place == TEXT else ""
            if text == END:
                return found
            if text.startswith(SILENT):
                raise SilentError(text.removeprefix(f"{SILENT} "))
            if not text and not event.inward:
                found.append(Arrival(self._ports[event.place], event.data))
        raise SilentError("the recording ends here")

    def ask(self, question: str, function: Callable[[], object]) -> str:
        return next(self._events).data.decode().partition(": ")[2]
