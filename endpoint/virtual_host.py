"""A host in virtual time: it takes the frames of a turn, each at its own time, and sends what is then due.

Frames are tuples of their time in ns, the host's number, the port and the bytes, as `switch.fabric.HostFrame` has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from common.linux import bpf
from endpoint import prober
from endpoint.host import HostNic
from endpoint.nic.config import NEVER

TimedFrame = tuple[int, int, int, bytes]

BATCH_FRAMES: Final = 64
TURNS_MAX: Final = 10_000  # turns of one host at one instant: more mean that its timers do not advance
_PROBE_PORT: Final = prober.UDP_PORT


def is_probe(frame: bytes) -> bool:
    """Whether a frame is the path prober's. A look where the filter does, in and outside a tunnel, dismisses most."""
    size = len(frame)
    if size < 58:
        return False
    if frame[56] << 8 | frame[57] != _PROBE_PORT and (size < 98 or frame[96] << 8 | frame[97] != _PROBE_PORT):
        return False
    return bool(bpf.run(prober.FRAMES, frame))


def _arrival(frames: list[TimedFrame], place: int, horizon_ns: int) -> tuple[int, int, bytes]:
    """The time, port and bytes of a frame, taken out of its tuple once; `horizon_ns` behind the last frame."""
    if place >= len(frames):
        return horizon_ns, 0, b""
    t_ns, _host, port, frame = frames[place]  # a name that is only `_` has no type, and what it is given is an object
    return t_ns, port, frame


class VirtualHost:
    """The turns of one host; `number` is the host's in the frames that it sends.

    `now_ns` is the instant that the host has come to, `due_ns` when it acts next if no frame reaches it.
    """

    def __init__(self, nic: HostNic, number: int) -> None:
        self._nic = nic
        self._number = number
        self.now_ns = 0
        self._due_ns = nic.due_ns()
        """NEVER for never: a number that may be None would be an object in each turn."""
        self._idle = False
        """Nothing is due now, and no frame of now asks for anything."""
        self._one = [b""]
        """The frame at hand: a list that is used again costs less than another."""

    @property
    def due_ns(self) -> int | None:
        return None if self._due_ns >= NEVER else self._due_ns

    @due_ns.setter
    def due_ns(self, due_ns: int | None) -> None:
        self._due_ns = NEVER if due_ns is None else due_ns

    def live(self, arrivals: Sequence[TimedFrame], horizon_ns: int) -> list[TimedFrame]:
        """Act up to `horizon_ns`; returns the frames that the host has handed to its ports."""
        sent: list[TimedFrame] = []
        frames: list[TimedFrame] = arrivals if isinstance(arrivals, list) else list(arrivals)
        place = 0
        arrival_ns, port, frame = _arrival(frames, place, horizon_ns)
        while True:
            now_ns = arrival_ns
            due_ns = self._due_ns
            if due_ns < now_ns:
                now_ns = due_ns
            if now_ns >= horizon_ns:
                return sent
            self.now_ns = now_ns
            self._idle = now_ns < due_ns
            while arrival_ns == now_ns:
                at_port, at_frame = port, frame
                arrival_ns, port, frame = _arrival(frames, place + 1, horizon_ns)
                if arrival_ns != now_ns:  # as nearly always
                    place += 1
                    self._receive_one(at_port, at_frame, now_ns)
                else:
                    place = self._receive(frames, place)
                    arrival_ns, port, frame = _arrival(frames, place, horizon_ns)
            if not self._idle:
                self._turn(now_ns, due_ns, sent)

    def act(self, now_ns: int) -> list[TimedFrame]:
        """Act at once on a change that was made to the host between turns."""
        sent: list[TimedFrame] = []
        self._turn(now_ns, self._nic.due_ns(), sent)
        return sent

    def _receive_one(self, port: int, frame: bytes, now_ns: int) -> None:
        """Hand over the only frame of an instant."""
        batch = self._one
        batch[0] = frame
        if is_probe(frame):
            self._nic.receive_probes(port, batch, now_ns)
            self._idle = False
        elif not self._nic.receive(port, batch, now_ns):
            self._idle = False

    def _receive(self, arrivals: list[TimedFrame], first: int) -> int:
        """Hand over the frames that reach one port at one instant; returns the place of the first frame after them."""
        now_ns, _host, port, _frame = arrivals[first]
        end = first + 1
        self._idle = False
        while end < len(arrivals) and arrivals[end][2] == port and arrivals[end][0] == now_ns:
            end += 1
        probes: list[bytes] = []
        frames: list[bytes] = []
        for arrival in arrivals[first:end]:
            (probes if is_probe(arrival[3]) else frames).append(arrival[3])
        if probes:
            self._nic.receive_probes(port, probes, now_ns)
        if frames:
            self._nic.receive(port, frames, now_ns)
        return end

    def _turn(self, now_ns: int, due_ns: int, sent: list[TimedFrame]) -> None:
        """Timers that are due, then frames that may leave, until neither is left: as the driver's loop does."""
        nic, number = self._nic, self._number
        for _turn in range(TURNS_MAX):
            if due_ns <= now_ns:
                nic.handle_timer(now_ns)
            frames = nic.packets_to_send(now_ns, BATCH_FRAMES)
            if frames:
                for port, frame in frames:
                    sent.append((now_ns, number, port, frame))
            due_ns = nic.due_ns()
            if len(frames) < BATCH_FRAMES and due_ns > now_ns:
                self._due_ns = due_ns
                return
        raise RuntimeError(f"{nic.profile.host} is never done at {now_ns} ns of virtual time")
