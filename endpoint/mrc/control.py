"""Values of a NIC that a controller or a program sets beside queue pairs (OCP MRC API: hints, and all of mrc_ctl.h)."""

from collections.abc import Mapping
from typing import Any

from endpoint.mrc.congestion.cc_profile import CcProfile
from endpoint.mrc.context import Context
from endpoint.mrc.hint import QpHint
from endpoint.mrc.operations import Answered, EndpointOperations
from endpoint.mrc.paths.ev_events import EvEventQueue
from endpoint.mrc.paths.ev_profile import EVENT_ASSUMED_BAD, EVENT_GOOD, STATE_DENIED, EvProfile
from endpoint.mrc.paths.ev_state import EvState
from endpoint.mrc.peers import PeerTable
from endpoint.mrc.qp import QueuePair
from endpoint.nic.attributes import BusyError, VerbError


class Control:
    """One NIC's. `qps` are its queue pairs by number."""

    def __init__(
        self, context: Context, qps: Mapping[int, QueuePair], peers: PeerTable, operations: EndpointOperations
    ) -> None:
        self._context = context
        self._qps = qps
        self._peers = peers
        self._operations = operations

    def _users(self, attribute: str, value: int) -> list[int]:
        return [qp.qpn for qp in self._qps.values() if qp.values[attribute] == value]

    # --- QP hints ----------------------------------------------------------------------------------------------

    def create_qp_hint(self, /, **attributes: Any) -> int:
        """A hint for QPs to come (their attribute `qp_hint`), by its number. Raises `VerbError` or `QueueFull`."""
        return self._context.hints.create(attributes)

    def modify_qp_hint(self, number: int, /, **attributes: Any) -> None:
        """Change a hint, for QPs that reach RTS from now on. Raises `VerbError`."""
        self._context.hints.modify(number, attributes)

    def query_qp_hint(self, number: int) -> QpHint:
        """Raises `VerbError` for a hint that does not exist."""
        return self._context.hints.find(number)

    def destroy_qp_hint(self, number: int) -> None:
        """Raises `BusyError` while a QP has it, `VerbError` for a hint that does not exist."""
        if users := self._users("qp_hint", number):
            raise BusyError(f"QP hint {number} is in use by QPs {users[:5]}; destroy them first")
        self._context.hints.destroy(number)

    # --- EV profiles and events --------------------------------------------------------------------------------

    def modify_ev_profile(self, number: int, now_ns: int, /, **attributes: Any) -> EvProfile:
        """Configure an EV profile or take a step of its states (`endpoint.mrc.paths.ev_profile`). Raises `VerbError`,
        `BusyError` for a step while a QP has the profile.

        `fields` has rows of width, init_val, min_val, max_val and mask; `replace_ev` rows of EV, port, new EV and new
        port; `modify_ev_state` rows of EV and state, which hold at once.
        """
        context = self._context
        profile = context.ev_profiles.modify(number, attributes, self._users("ev_profile_id", number))
        context.scheduler.now_ns = now_ns
        if "modify_ev_state" in attributes:
            for qp in self._qps.values():
                if qp.joined and qp.values["ev_profile_id"] == number:
                    qp.deny(qp.peer.denied, now_ns)
                    qp.agenda.wake()
        return profile

    def query_ev_profile(self, number: int) -> EvProfile:
        """A profile that was never configured is in INIT."""
        return self._context.ev_profiles.query(number)

    def query_ev_array(self, number: int) -> list[tuple[int, int, int]]:
        """The EVs of a profile, port and state of each: GOOD unless a controller denies it or a QP takes it for bad."""
        profile = self._context.ev_profiles.query(number)
        bad = {
            path.ev
            for qp in self._qps.values()
            if qp.joined and qp.values["ev_profile_id"] == number
            for path in qp.evs.paths.values()
            if path.state is EvState.ASSUMED_BAD
        }
        rows = []
        for ev, port in sorted(self._context.ev_profiles.entries_of(profile)):
            state = STATE_DENIED if ev in profile.denied else EVENT_ASSUMED_BAD if ev in bad else EVENT_GOOD
            rows.append((ev, port, state))
        return rows

    def create_ev_event_queue(self, capacity: int) -> EvEventQueue:
        """A queue that is told of every change which the EVs' profiles ask to tell of. Raises `ValueError`."""
        queue = EvEventQueue(capacity)
        self._context.ev_watchers.append(queue)
        return queue

    def destroy_ev_event_queue(self, queue: EvEventQueue) -> None:
        """Tell it nothing any more. Raises `ValueError` for a queue that is not one of this NIC's."""
        self._context.ev_watchers.remove(queue)

    # --- endpoint operations -----------------------------------------------------------------------------------

    def send_ev_probe(self, host: str, ev: int, port: int, now_ns: int, tell: Answered) -> int:
        """Probe a path there and back; returns the request id for `forget_ev_probe`. Raises `VerbError` for a path that
        there is not or a port that is down, `QueueFull` if too many probes are under way."""
        peer = self._peers.named(host)
        route = peer.by_ev.get(ev)
        if route is None or route.port.number != port:
            some = ", ".join(f"{route.ev:#x} on port {route.port.number}" for route in peer.routes[:4])
            raise VerbError(f"no path to {host} has EV {ev:#x} on port {port}; valid: {some}, …")
        if not route.port.up:
            raise VerbError(f"port {port} is down")
        return self._operations.ask_ev(peer, route, now_ns, tell)

    def forget_ev_probe(self, request_id: int) -> None:
        """Nobody waits for this answer any more."""
        self._operations.forget_ev(request_id)

    # --- congestion control ------------------------------------------------------------------------------------

    def modify_cc_profile(self, number: int, algorithm: str | None, /, **config: Any) -> None:
        """Make or replace a congestion-control profile for QPs that reach RTS from now on. Raises `ConfigError`."""
        self._context.cc_profiles.modify(number, algorithm, config)

    def query_cc_profile(self, number: int) -> CcProfile:
        """Raises `VerbError` for a profile that does not exist."""
        return self._context.cc_profiles.find(number)
