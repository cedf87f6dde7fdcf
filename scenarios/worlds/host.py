"""A host of the simulated world: its NIC on the event queue."""

from __future__ import annotations

import json
from typing import Any

from common import bpf
from common.client import ControlError, ControlTimeoutError
from endpoint import prober
from endpoint.denylist import FAULTS
from endpoint.host import Host as HostNic
from scenarios.worlds.cables import Cables
from scenarios.worlds.events import Alarm, Events
from scenarios.worlds.world import call
from topo.fault import DenialChange, PortState
from topo.graph import PortRef
from topo.node import Host

BATCH_FRAMES = 64
TURNS_MAX = 10_000  # of one host at one instant: more means that its timers do not move
ANSWER_S = 30.0  # of virtual time, for a control operation


class SimulatedHost:
    """A host's NIC; also the client of its control operations (`endpoint.group.Client`)."""

    def __init__(self, node: Host, nic: HostNic, events: Events, cables: Cables) -> None:
        self.node = node
        self.nic = nic
        self._events = events
        self._cables = cables
        self._alarm = Alarm(events, self.turn)
        self._ports = {ref.port: ref for ref in cables.ports(node)}
        self._answers: dict[int, dict[str, Any]] = {}
        self._sent = 0

    # endpoint.group.Client

    def send(self, op: str, **arguments: Any) -> int:
        self._sent += 1
        ident = self._sent
        # What crosses the control socket elsewhere is JSON: here too, so that both worlds see the same values.
        request = json.loads(json.dumps({"id": ident, "op": op, **arguments}))
        self.nic.control(request, self._events.now_ns, lambda answer: self._answers.update({ident: answer}))
        self.turn()
        return ident

    def result(self, ident: int, timeout_s: float | None = None) -> Any:
        """Lets virtual time pass until the answer is there."""
        limit_ns = self._events.now_ns + round((ANSWER_S if timeout_s is None else timeout_s) * 1e9)
        while ident not in self._answers:
            next_ns = self._events.next_ns
            if next_ns is None or next_ns > limit_ns:
                raise ControlTimeoutError(f"{self.node} did not answer within its virtual time")
            self._events.step()
        answer = self._answers.pop(ident)
        if not answer["ok"]:
            raise ControlError(answer["error"])
        return answer["result"]

    # changes

    def set_port(self, ref: PortRef, state: PortState) -> None:
        """The NIC sees a carrier that comes or goes."""
        if self._cables.set_state(ref, state):
            self.nic.port_changed(ref.port, state.up, self._events.now_ns)
            self.turn()

    def set_denied(self, change: DenialChange) -> None:
        """Adds to and takes from what faults make the NIC deny; the NIC keeps it apart from its own reasons."""
        rows = call(self, "denylist.get", owner=FAULTS)["denied"]
        denied = {(row["host"], row["ev"]) for row in rows}
        wanted = sorted((denied - change.remove) | change.add)
        call(self, "denylist.set", owner=FAULTS, denied=[{"host": name, "ev": ev} for name, ev in wanted])

    # events

    def receive(self, port: int, frame: bytes) -> None:
        """A frame has reached this port."""
        if not self._cables.state(self._ports[port]).up:
            return
        if bpf.run(prober.FRAMES, frame):
            self.nic.receive_probes(port, [frame], self._events.now_ns)
        else:
            self.nic.receive(port, [frame], self._events.now_ns)
        self.turn()

    def turn(self) -> None:
        """Timers that are due, then frames that may leave, until neither is left; then sleep until the next."""
        now_ns = self._events.now_ns
        for _ in range(TURNS_MAX):
            deadline_ns = self.nic.next_timer_ns()
            due = deadline_ns is not None and deadline_ns <= now_ns
            if due:
                self.nic.handle_timer(now_ns)
            sent = self.nic.packets_to_send(now_ns, BATCH_FRAMES)
            for port, frame in sent:
                self._cables.transmit(self._ports[port], frame)
            if not sent and not due:
                break
        else:
            raise RuntimeError(f"{self.node} is never done at {now_ns} ns of virtual time")
        self._alarm.set(deadline_ns)
