"""EV events (OCP MRC API, `mrc_ctl_ev_event`): changes of the states of EVs, in bounded queues.

A queue that is not emptied loses events, and costs the transport neither time nor memory: lost events are counted, and
the next event that does fit says how many were lost before it.
"""

from collections import deque

from common.states import EvEvent
from endpoint.mrc.paths.ev_profile import EVENT_ASSUMED_BAD, EVENT_GOOD
from endpoint.mrc.paths.ev_state import SENDABLE, EvState

_LOST_MAX = (1 << 32) - 1


def event_state(old: EvState, new: EvState) -> int:
    """The state that an event tells of: 0 for a change that is none to the API, whose states do not know SKIP."""
    if new is EvState.ASSUMED_BAD:
        return EVENT_ASSUMED_BAD
    return EVENT_GOOD if new in SENDABLE and old not in SENDABLE else 0


class EvEventQueue:
    """At most `capacity` events, oldest first. Raises `ValueError` for a capacity below 1."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"an EV event queue's capacity is {capacity}; it must be at least 1")
        self.capacity = capacity
        self._events: deque[EvEvent] = deque()
        self._lost = 0

    def __len__(self) -> int:
        return len(self._events)

    def push(self, profile_id: int, ev: int, port: int, state: int, qp_num: int, host: str) -> None:
        """Keep an event, or count it as lost."""
        if len(self._events) >= self.capacity:
            self._lost = min(self._lost + 1, _LOST_MAX)
            return
        self._events.append(EvEvent(profile_id, ev, port, self._lost, state, qp_num, host))
        self._lost = 0

    def poll(self, limit: int = 16) -> list[EvEvent]:
        """Take up to `limit` events, oldest first."""
        return [self._events.popleft() for _ in range(min(limit, len(self._events)))]
