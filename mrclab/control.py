"""What a program may set and ask of the NIC beside its own queues: hints, EV events, EV probes, ports, profiles."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common import uverbs
from common.states import EvEvent as EvEvent
from mrclab.connection import Connection
from mrclab.cq import ArmedQueue

PROBES_TOGETHER = 128
ROWS_TOGETHER = 256


class EvState(enum.IntFlag):
    """The states of an EV that the API knows (`mrc_ctl_ev_state`)."""

    GOOD = 1
    ASSUMED_BAD = 2
    DENIED = 4


@dataclass(frozen=True, slots=True)
class EpResponse:
    """The answer to an EV probe: the port that it came by, and the round trip in ns. `adj_svc_time` is always 0: the
    responder's service time is not known."""

    req_id: int
    port: int
    rtt: int
    adj_svc_time: int


@dataclass(frozen=True, slots=True)
class EvProfile:
    """An EV profile as `query_ev_profile` finds it. `evs` are (EV, port, state)."""

    profile_state: str
    ev_mode: str
    ev_count: int
    ev_min_active: int
    ev_event_mask: int
    fields: tuple[tuple[int, ...], ...]
    evs: tuple[tuple[int, int, int], ...]


class QPHint:
    """How many queue pairs send at the same time (`mrc_qp_hint`); made by `Context.create_qp_hint`."""

    def __init__(self, connection: Connection, attributes: Mapping[str, int]) -> None:
        self.number: int = connection.call("create_qp_hint", attributes=dict(attributes))["hint"]
        self._connection = connection

    def modify(self, **attributes: int) -> None:
        """Change some of it, for QPs that reach RTS from now on. Raises `RefusedError`."""
        self._connection.call("modify_qp_hint", hint=self.number, attributes=attributes)

    def query(self) -> dict[str, int]:
        """`num_qps_per_peer`, `num_send_peers`, `num_remote_recv_peers`."""
        found: dict[str, int] = self._connection.call("query_qp_hint", hint=self.number)
        return found

    def close(self) -> None:
        """Raises `RefusedError` while a QP has it."""
        self._connection.call("destroy_qp_hint", hint=self.number)


class EvEventCQ(ArmedQueue):
    """A queue of EV events, of at most `cqe`; made by `Context.create_ev_event_cq`."""

    def __init__(self, connection: Connection, cqe: int, channel: int | None) -> None:
        super().__init__(connection, "create_ev_event_cq", cqe, channel)

    def poll(self, num_entries: int = 16) -> list[EvEvent]:
        """Take up to so many events (64 at a time), the oldest first."""
        found = self._connection.call("poll_ev_event", cq=self.number, num_entries=num_entries)
        return [EvEvent(**row) for row in found["events"]]

    def req_notify(self, solicited_only: bool = False) -> None:
        """The next event is to be one on the queue's channel; so is any that was not polled."""
        self._connection.arm(uverbs.Arm(self.number, 0, solicited_only))


class Control:
    """The NIC's part of `Context`. Changes for all programs need root, or the user that runs the agent."""

    _connection: Connection

    def create_qp_hint(self, **attributes: int) -> QPHint:
        """`num_qps_per_peer`, `num_send_peers`, `num_remote_recv_peers`; give its `number` to QPs as `qp_hint`."""
        return QPHint(self._connection, attributes)

    def query_port(self, port_num: int) -> bool:
        """Whether the port is enabled by its administrator; `query_device` says whether it is up."""
        return bool(self._connection.call("query_port", port_num=port_num)["port_admin_state"])

    def modify_port(self, port_num: int, *, enabled: bool) -> None:
        """Switch a port off or on, for all programs; peers are told. Raises `RefusedError`."""
        self._connection.call("modify_port", port_num=port_num, port_admin_state=int(enabled))

    def query_ev_profile(self, profile_id: int = 0) -> EvProfile:
        """Raises `RefusedError`."""
        evs: list[tuple[int, int, int]] = []
        while True:
            found = self._connection.call("query_ev_profile", profile=profile_id, first=len(evs))
            evs += [(row[0], row[1], row[2]) for row in found["evs"]]
            if not found["evs"] or len(evs) >= found["evs_present"]:
                break
        return EvProfile(
            found["profile_state"],
            found["ev_mode"],
            found["ev_count"],
            found["ev_min_active"],
            found["ev_event_mask"],
            tuple(tuple(row) for row in found["fields"]),
            tuple(evs),
        )

    def modify_ev_profile(self, profile_id: int, **attributes: Any) -> None:
        """Set attributes of an EV profile and take a step of its states, for all programs: `profile_state` (init,
        offline, online), `ev_mode` (auto, explicit, generated), `ev_count`, `ev_min_active`, `ev_event_mask`, `fields`,
        `replace_ev`, `modify_ev_state`. docs/uverbs.md has examples. Raises `RefusedError`."""
        self._connection.call("modify_ev_profile", profile=profile_id, attributes=attributes)

    def make_explicit_ev_profile(self, profile_id: int, evs: Sequence[tuple[int, int]], **attributes: Any) -> None:
        """From INIT to ONLINE with these (EV, port), any number of them. Raises `RefusedError`."""
        self.modify_ev_profile(profile_id, profile_state="offline", ev_mode="explicit", ev_count=len(evs), **attributes)
        for first in range(0, len(evs), ROWS_TOGETHER):
            rows = [[0, 0, ev, port] for ev, port in evs[first : first + ROWS_TOGETHER]]
            self.modify_ev_profile(profile_id, replace_ev=rows)
        self.modify_ev_profile(profile_id, profile_state="online")

    def query_cc_profile(self, profile_id: int = 0) -> dict[str, Any]:
        """`algorithm` and `config`, where None follows from the NIC. Raises `RefusedError`."""
        found: dict[str, Any] = self._connection.call("query_cc_profile", profile=profile_id)
        return found

    def modify_cc_profile(self, profile_id: int, algorithm: str | None, **config: float) -> None:
        """Make or replace a congestion-control profile, for all programs: "uet-1.0-nscc" with NSCC's parameters by the
        API's names, or None for no congestion control. Raises `RefusedError`."""
        self._connection.call("modify_cc_profile", profile=profile_id, algorithm=algorithm, config=config)

    def ep_batch_send_wait(
        self, requests: Iterable[tuple[str, int, int]], timeout_s: float = 1.0, *, op_type: str = "ev_probe"
    ) -> list[EpResponse]:
        """Probe (host, EV, port) there and back, and wait for the answers: those that came, in order of arrival.
        `req_id` is the place of the request. Raises `RefusedError`."""
        rows = [[number, host, ev, port] for number, (host, ev, port) in enumerate(requests)]
        found: list[EpResponse] = []
        timeout_ns = min(max(int(timeout_s * 1e9), 1000), 0xFFFFFFFF)
        for first in range(0, len(rows), PROBES_TOGETHER):
            together = rows[first : first + PROBES_TOGETHER]
            answer = self._connection.call_and_wait(
                "ep_batch_send_wait", op_type=op_type, requests=together, rsp_timeout=timeout_ns
            )
            found += [EpResponse(**row) for row in answer["responses"]]
        return found
