"""A host of the simulated world: its NIC in virtual time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from common import bpf
from common.client import ControlError, ControlTimeoutError
from endpoint import prober
from endpoint.denylist import FAULTS
from endpoint.door.stepped import SteppedDoor
from endpoint.host import Host as HostNic
from scenarios.worlds.virtual_time import VirtualTime
from scenarios.worlds.world import call
from switch.fabric import Fabric, HostFrame
from topo.fault import DenialChange, PortState
from topo.node import Host

BATCH_FRAMES = 64
TURNS_MAX = 10_000  # turns of one host at one instant: more mean that its timers do not advance
ANSWER_S = 30.0  # of lab time, for a control operation
_PROBE_PORT = prober.UDP_PORT.to_bytes(2, "big")
_HEADERS_BYTES = 128  # a probe's UDP port is among the first of these


def is_probe(frame: bytes) -> bool:
    """Whether a frame is the path prober's. A search for the prober's port dismisses most other frames fast."""
    return frame.find(_PROBE_PORT, 0, _HEADERS_BYTES) >= 0 and bool(bpf.run(prober.FRAMES, frame))


class SimulatedHost:
    """A host's NIC; also the client of its control operations (`endpoint.group.Client`)."""

    def __init__(self, node: Host, number: int, time: VirtualTime, fabric: Fabric, pace: float) -> None:
        """`number` is the fabric's, `pace` the plan's. A NIC with this host's `clock` is attached before all else."""
        self.node = node
        self.nic: HostNic
        self.door: SteppedDoor
        self.due_ns: int | None = None
        self._number = number
        self._answer_s = ANSWER_S * pace
        self._time = time
        self._fabric = fabric
        self._now_ns = 0
        self._up: dict[int, bool] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._sent = 0

    def clock(self) -> int:
        """The host's own time: ahead of the world's while the host lives through a turn."""
        return max(self._now_ns, self._time.now_ns)

    def attach(self, nic: HostNic, entrance: SteppedDoor) -> None:
        self.nic = nic
        self.door = entrance
        self.due_ns = nic.next_timer_ns()

    # endpoint.group.Client

    def send(self, op: str, **arguments: Any) -> int:
        self._sent += 1
        ident = self._sent
        # Requests become JSON and back, as on a control socket, so that both worlds see the same values.
        request = json.loads(json.dumps({"id": ident, "op": op, **arguments}))
        self.nic.control(request, self._time.now_ns, lambda answer: self._answers.update({ident: answer}))
        self._act()
        return ident

    def result(self, ident: int, timeout_s: float | None = None) -> Any:
        """Lets virtual time pass until the answer is there."""
        limit_s = self._answer_s if timeout_s is None else timeout_s
        limit_ns = self._time.now_ns + round(limit_s * 1e9)
        if not self._time.pass_until(lambda: ident in self._answers, limit_ns):
            raise ControlTimeoutError(f"{self.node} did not answer within its virtual time", limit_s)
        answer = self._answers.pop(ident)
        if not answer["ok"]:
            raise ControlError(answer["error"])
        return answer["result"]

    # programs

    def settle(self) -> None:
        """Serve the programs of this host that run until they wait, and send what they have posted."""
        if self.door.settle(self._time.now_ns):
            self._act()

    # changes

    def set_port(self, port: int, state: PortState) -> None:
        """The NIC sees a carrier that comes or goes."""
        if state.up != self._up.get(port, True):
            self._up[port] = state.up
            self.nic.port_changed(port, state.up, self._time.now_ns)
            self._act()

    def set_denied(self, change: DenialChange) -> None:
        """Change which paths the NIC denies because of faults; the NIC's own reasons to deny stay apart."""
        rows = call(self, "denylist.get", owner=FAULTS)["denied"]
        denied = {(row["host"], row["ev"]) for row in rows}
        wanted = sorted((denied - change.remove) | change.add)
        call(self, "denylist.set", owner=FAULTS, denied=[{"host": name, "ev": ev} for name, ev in wanted])

    def _act(self) -> None:
        """Have the NIC act at once on a change that was made to it between turns."""
        frames: list[HostFrame] = []
        self._turn(self._time.now_ns, self.nic.next_timer_ns(), frames)
        self._time.wake(self._number)
        self._fabric.send(frames)

    # scenarios.worlds.virtual_time.Resident

    def live(self, arrivals: Sequence[HostFrame], horizon_ns: int) -> list[HostFrame]:
        frames: list[HostFrame] = []
        place, count = 0, len(arrivals)
        while True:
            now_ns = arrivals[place].t_ns if place < count else horizon_ns
            due_ns = self.due_ns
            if due_ns is not None and due_ns < now_ns:
                now_ns = due_ns
            if now_ns >= horizon_ns:
                return frames
            self._now_ns = now_ns
            while place < count and arrivals[place].t_ns == now_ns:
                place = self._receive(arrivals, place)
            self._turn(now_ns, due_ns, frames)

    def _receive(self, arrivals: Sequence[HostFrame], first: int) -> int:
        """Hand over the frames that reach one port at one instant; returns the place of the first frame after them."""
        now_ns, _, port, frame = arrivals[first]
        end = first + 1
        if end == len(arrivals) or arrivals[end].t_ns != now_ns:  # as nearly always
            if is_probe(frame):
                self.nic.receive_probes(port, [frame], now_ns)
            else:
                self.nic.receive(port, [frame], now_ns)
            return end
        while end < len(arrivals) and arrivals[end].port == port and arrivals[end].t_ns == now_ns:
            end += 1
        probes: list[bytes] = []
        frames: list[bytes] = []
        for arrival in arrivals[first:end]:
            (probes if is_probe(arrival.frame) else frames).append(arrival.frame)
        if probes:
            self.nic.receive_probes(port, probes, now_ns)
        if frames:
            self.nic.receive(port, frames, now_ns)
        return end

    def _turn(self, now_ns: int, due_ns: int | None, frames: list[HostFrame]) -> None:
        """Timers that are due, then frames that may leave, until neither is left: as the driver's loop does."""
        nic, number = self.nic, self._number
        for _ in range(TURNS_MAX):
            if due_ns is not None and due_ns <= now_ns:
                nic.handle_timer(now_ns)
            sent = nic.packets_to_send(now_ns, BATCH_FRAMES)
            for port, frame in sent:
                frames.append(HostFrame(now_ns, number, port, frame))
            due_ns = nic.next_timer_ns()
            if len(sent) < BATCH_FRAMES and (due_ns is None or due_ns > now_ns):
                self.due_ns = due_ns
                return
        raise RuntimeError(f"{self.node} is never done at {now_ns} ns of virtual time")
