"""A host in virtual time: it takes the frames of a turn, each at its own time, and sends what is then due.

Frames are tuples of their time in ns, the host's number, the port and the bytes, as `switch.fabric.HostFrame` has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from common import bpf
from endpoint import prober
from endpoint.host import HostNic

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


class VirtualHost:
    """The turns of one host; `number` is the host's in the frames that it sends.

    `now_ns` is the instant that the host has come to, `due_ns` when it acts next if no frame reaches it.
    """

    def __init__(self, nic: HostNic, number: int) -> None:
        self._nic = nic
        self._number = number
        self.now_ns = 0
        self.due_ns: int | None = nic.next_timer_ns()
        self._idle = False
        """Nothing is due now, and no frame of now asks for anything."""

    def live(self, arrivals: Sequence[TimedFrame], horizon_ns: int) -> list[TimedFrame]:
        """Act up to `horizon_ns`; returns the frames that the host has handed to its ports."""
        sent: list[TimedFrame] = []
        frames: list[TimedFrame] = arrivals if isinstance(arrivals, list) else list(arrivals)
        place, count = 0, len(frames)
        arrival_ns = frames[0][0] if count else horizon_ns
        while True:
            now_ns = arrival_ns
            due_ns = self.due_ns
            if due_ns is not None and due_ns < now_ns:
                now_ns = due_ns
            if now_ns >= horizon_ns:
                return sent
            self.now_ns = now_ns
            self._idle = due_ns is None or now_ns < due_ns
            while arrival_ns == now_ns:
                place = self._receive(frames, place)
                arrival_ns = frames[place][0] if place < count else horizon_ns
            if not self._idle:
                self._turn(now_ns, due_ns, sent)

    def act(self, now_ns: int) -> list[TimedFrame]:
        """Act at once on a change that was made to the host between turns."""
        sent: list[TimedFrame] = []
        self._turn(now_ns, self._nic.next_timer_ns(), sent)
        return sent

    def _receive(self, arrivals: list[TimedFrame], first: int) -> int:
        """Hand over the frames that reach one port at one instant; returns the place of the first frame after them."""
        now_ns, _, port, frame = arrivals[first]
        end = first + 1
        if end == len(arrivals) or arrivals[end][0] != now_ns:  # as nearly always
            if is_probe(frame):
                self._nic.receive_probes(port, [frame], now_ns)
                self._idle = False
            elif not self._nic.receive(port, [frame], now_ns):
                self._idle = False
            return end
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

    def _turn(self, now_ns: int, due_ns: int | None, sent: list[TimedFrame]) -> None:
        """Timers that are due, then frames that may leave, until neither is left: as the driver's loop does."""
        nic, number = self._nic, self._number
        for _ in range(TURNS_MAX):
            if due_ns is not None and due_ns <= now_ns:
                nic.handle_timer(now_ns)
            frames = nic.packets_to_send(now_ns, BATCH_FRAMES)
            if frames:
                for port, frame in frames:
                    sent.append((now_ns, number, port, frame))
            due_ns = nic.next_timer_ns()
            if len(frames) < BATCH_FRAMES and (due_ns is None or due_ns > now_ns):
                self.due_ns = due_ns
                return
        raise RuntimeError(f"{nic.profile.host} is never done at {now_ns} ns of virtual time")
