"""The cables between NICs and leaves in virtual time: the NICs' transmit sides, and where frames arrive.

A switch has its transmit sides in its own traffic manager; what leaves it needs only to be told where the cable ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from scenarios.worlds.events import Events
from topo.fault import PortState, healthy
from topo.graph import PortRef, peer, ports
from topo.node import Host
from topo.plan import Plan

Deliver = Callable[[PortRef, bytes], None]


class Cables:
    """Every port of every host: how fast and how far, what it loses, what is at the other end."""

    def __init__(self, plan: Plan, events: Events, deliver: Deliver) -> None:
        self._plan = plan
        self._events = events
        self._deliver = deliver
        self._peers = {ref: peer(plan, ref) for host in plan.hosts() for ref in ports(plan, host)}
        self._states = {ref: healthy(plan, ref) for ref in self._peers}
        self._loss = {ref: Random(0) for ref in self._peers}
        self._free_ns = dict.fromkeys(self._peers, 0)  # when each NIC's line is free again

    def ports(self, host: Host) -> Iterator[PortRef]:
        """The host's ports in order of their numbers."""
        return ports(self._plan, host)

    def state(self, ref: PortRef) -> PortState:
        """A host's port as it is."""
        return self._states[ref]

    def set_state(self, ref: PortRef, state: PortState) -> bool:
        """A host's port as it is from now on; whether its carrier has changed."""
        before = self._states[ref]
        if state.loss != before.loss:
            self._loss[ref] = Random(state.loss_seed)
        self._states[ref] = state
        return state.up != before.up

    def transmit(self, ref: PortRef, frame: bytes) -> None:
        """A NIC sends. Frames released together leave one after another: the line is as fast as its rate, no faster."""
        state = self._states[ref]
        if not state.up or (state.loss and self._loss[ref].random() < state.loss):
            return
        start_ns = max(self._events.now_ns, self._free_ns[ref])
        free_ns = self._free_ns[ref] = start_ns + len(frame) * 8_000_000_000 // state.rate_bps
        self._events.at(free_ns + state.delay_ns, self._deliver, self._peers[ref], frame)
