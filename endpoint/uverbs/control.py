"""Requests of a program to the NIC beside those to its own queues: hints, profiles, EV events, EV probes, ports.

A program's hints and event queues are its own. Programs share profiles and ports, so changing one of them takes an
administrator, as the API asks CAP_NET_ADMIN of a controller: root, or the user that runs the agent.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from common import uverbs
from common.fields import Fields
from endpoint.transport import Transport
from endpoint.uverbs.queues import Armed
from endpoint.uverbs.refusal import RefusedError, has_room

PROBES_MAX = 128
"""EV probes of one program under way; it waits for all of them before the next."""
EVENTS_MAX = 64
"""EV events in one answer."""
ARRAY_MAX = 256
"""EVs of a profile in one answer."""
TIMEOUT_MIN_NS = 1_000


class EventQueue:
    """A program's queue of EV events."""

    def __init__(self, number: int, queue: Any, armed: Armed) -> None:
        self.number = number
        self.queue = queue
        self.armed = armed
        self._told = 0

    def drain(self) -> None:
        """Note the events that have come since the last time."""
        for _ in range(len(self.queue) - self._told):
            self.armed.produce(True)
        self._told = len(self.queue)

    def poll(self, limit: int) -> list[dict[str, Any]]:
        self.drain()
        events = [asdict(event) for event in self.queue.poll(limit)]
        self._told = len(self.queue)
        self.armed.forget(len(events))
        return events

    def arm(self, solicited_only: bool) -> None:
        self.drain()
        self.armed.arm(0, solicited_only)


class Probes:
    """One batch of EV probes: answered as a whole, when the last answer is there or the time is over."""

    def __init__(self, ident: int, deadline_ns: int) -> None:
        self.ident = ident
        self.deadline_ns = deadline_ns
        self.waiting: dict[int, int] = {}
        """The program's request id by the transport's."""
        self.answers: list[dict[str, int]] = []


class ControlVerbs:
    """`answer(ident, result)` sends the answer of a verb that had to wait; `hosts` are the addresses of possible
    peers by name; EV probes take either."""

    def __init__(
        self,
        transport: Transport,
        hosts: Mapping[str, str],
        limits: uverbs.ProgramLimits,
        answer: Callable[[int, Any], None],
        *,
        administrator: bool,
    ) -> None:
        self._transport = transport
        self._control: Any = getattr(transport, "control", None)
        self._hosts = hosts
        self._limits = limits
        self._answer = answer
        self._administrator = administrator
        self._probes: Probes | None = None
        self.hints: set[int] = set()
        self.operations: dict[str, Callable[[Fields, int], Any]] = {
            "create_qp_hint": self._create_qp_hint,
            "modify_qp_hint": self._modify_qp_hint,
            "query_qp_hint": self._query_qp_hint,
            "destroy_qp_hint": self._destroy_qp_hint,
            "query_port": self._query_port,
            "modify_port": self._modify_port,
            "query_ev_profile": self._query_ev_profile,
            "modify_ev_profile": self._modify_ev_profile,
            "query_cc_profile": self._query_cc_profile,
            "modify_cc_profile": self._modify_cc_profile,
            "ep_batch_send_wait": self._send_probes,
        }

    def close(self) -> None:
        """Give back what the program had."""
        for number in self.hints:
            self._control.destroy_qp_hint(number)
        self.hints.clear()
        self._forget_probes()

    # --- hints -------------------------------------------------------------------------------------------------

    def _create_qp_hint(self, request: Fields, now_ns: int) -> Any:
        control = self.mrc("QP hints")
        has_room(self._limits, "hints", len(self.hints))
        number: int = control.create_qp_hint(**request.fields("attributes", default={}).values)
        self.hints.add(number)
        return {"hint": number}

    def _modify_qp_hint(self, request: Fields, now_ns: int) -> Any:
        self.mrc("QP hints").modify_qp_hint(self._hint(request), **request.fields("attributes").values)
        return {}

    def _query_qp_hint(self, request: Fields, now_ns: int) -> Any:
        return asdict(self.mrc("QP hints").query_qp_hint(self._hint(request)))

    def _destroy_qp_hint(self, request: Fields, now_ns: int) -> Any:
        number = self._hint(request)
        self.mrc("QP hints").destroy_qp_hint(number)
        self.hints.discard(number)
        return {}

    def check_hint(self, number: object) -> None:
        """Raises `RefusedError` for a hint that is another program's."""
        if number not in (0, *self.hints):
            own = sorted(self.hints)[:16]
            raise RefusedError(f"qp_hint is {number!r}; it must be 0 or one of this program's: {own}")

    def _hint(self, request: Fields) -> int:
        number = request.integer("hint")
        return number if number in self.hints else request.fail("hint", f"one of {sorted(self.hints)[:16]}")

    # --- ports and profiles ------------------------------------------------------------------------------------

    def _query_port(self, request: Fields, now_ns: int) -> Any:
        number = request.integer("port_num")
        return {"port_admin_state": int(self._transport.port_enabled(number))}

    def _modify_port(self, request: Fields, now_ns: int) -> Any:
        self._administrate("modify_port")
        number, enabled = request.integer("port_num"), request.integer("port_admin_state", 0, 1)
        self._transport.enable_port(number, bool(enabled), now_ns)
        return {}

    def _query_ev_profile(self, request: Fields, now_ns: int) -> Any:
        control = self.mrc("EV profiles")
        number, first = request.integer("profile", 0, (1 << 64) - 1), request.integer("first", 0, 1 << 32, 0)
        profile, array = control.query_ev_profile(number), control.query_ev_array(number)
        return {
            "profile_state": profile.state.value,
            "ev_mode": profile.mode.value,
            "ev_fmt_profile_id": 0,
            "ev_count": len(profile.entries) or len(array),
            "ev_min_active": profile.min_active or 0,
            "ev_event_mask": profile.event_mask,
            "fields": [list(asdict(field).values()) for field in profile.fields],
            "first": first,
            "evs": array[first : first + ARRAY_MAX],
            "evs_present": len(array),
        }

    def _modify_ev_profile(self, request: Fields, now_ns: int) -> Any:
        control = self.mrc("EV profiles")
        self._administrate("modify_ev_profile")
        number = request.integer("profile", 0, (1 << 64) - 1)
        control.modify_ev_profile(number, now_ns, **_attributes(request))
        return {}

    def _query_cc_profile(self, request: Fields, now_ns: int) -> Any:
        profile = self.mrc("congestion-control profiles").query_cc_profile(request.integer("profile"))
        return {"algorithm": profile.algorithm, "config": asdict(profile.config)}

    def _modify_cc_profile(self, request: Fields, now_ns: int) -> Any:
        control = self.mrc("congestion-control profiles")
        self._administrate("modify_cc_profile")
        algorithm = request.get("algorithm", None)
        if algorithm is not None and not isinstance(algorithm, str):
            request.fail("algorithm", "a string, or null for no congestion control")
        config = request.fields("config", default={}).values
        control.modify_cc_profile(request.integer("profile", 0, (1 << 64) - 1), algorithm, **config)
        return {}

    # --- endpoint operations -----------------------------------------------------------------------------------

    def _send_probes(self, request: Fields, now_ns: int) -> Any:
        """EV probes of this program: the answer comes when all are answered, or after the time. None: later."""
        control = self.mrc("EV probes")
        self._administrate("ep_batch_send_wait")
        op_type = request.choice("op_type", ("ev_probe", "port_status_update"))
        if op_type != "ev_probe":
            raise RefusedError("port status updates are the NIC's own: it announces what modify_port does")
        if self._probes is not None:
            raise RefusedError("EV probes of this program are under way; wait for their answer")
        rows = request.items("requests")
        if not 1 <= len(rows) <= PROBES_MAX:
            raise RefusedError(f"{len(rows)} requests; from 1 to {PROBES_MAX} go together")
        timeout_ns = request.integer("rsp_timeout", TIMEOUT_MIN_NS, (1 << 32) - 1)
        batch = Probes(request.integer("id"), now_ns + timeout_ns)
        try:
            for row in rows:
                self._send_probe(control, batch, row, now_ns)
        except ValueError:
            for number in batch.waiting:
                control.forget_ev_probe(number)
            raise
        self._probes = batch
        return None

    def _send_probe(self, control: Any, batch: Probes, row: Any, now_ns: int) -> None:
        wanted = "request id, host, EV and port"
        if not isinstance(row, list) or [type(item) for item in row] != [int, str, int, int]:
            raise RefusedError(f"a request is {row!r}; it must be a list of {wanted}")
        req_id, host, ev, port = row
        if not 0 <= req_id < 1 << 16 or req_id in batch.waiting.values():
            raise RefusedError(f"request id {req_id}: ids are of 16 bits, and unique among the requests under way")
        host = next((name for name, address in self._hosts.items() if host in (name, address)), host)
        if host not in self._hosts:
            raise RefusedError(f"host {host!r}; valid: {', '.join(self._hosts)}")

        def tell(route: Any, arrival: Any, rtt_ns: int) -> None:
            del batch.waiting[number]
            batch.answers.append({"req_id": req_id, "port": arrival.number, "rtt": rtt_ns, "adj_svc_time": 0})
            if not batch.waiting and self._probes is batch:
                self._end_probes()

        number: int = control.send_ev_probe(host, ev, port, now_ns, tell)
        batch.waiting[number] = req_id

    def next_timer_ns(self) -> int | None:
        return None if self._probes is None else self._probes.deadline_ns

    def handle_timer(self, now_ns: int) -> None:
        """Answer what has waited for long enough."""
        if self._probes is not None and now_ns >= self._probes.deadline_ns:
            self._end_probes()

    def _end_probes(self) -> None:
        batch = self._probes
        assert batch is not None
        self._forget_probes()
        self._answer(batch.ident, {"responses": batch.answers})

    def _forget_probes(self) -> None:
        if self._probes is not None:
            for number in self._probes.waiting:
                self._control.forget_ev_probe(number)
        self._probes = None

    # --- rules -------------------------------------------------------------------------------------------------

    def mrc(self, what: str) -> Any:
        """The NIC's control verbs. Raises `RefusedError` where its transport has none."""
        if self._control is None:
            raise RefusedError(f"{what} are MRC's; this NIC runs another transport")
        return self._control

    def _administrate(self, verb: str) -> None:
        if not self._administrator:
            raise RefusedError(f"{verb} concerns all programs of the NIC: only root and the agent's user may (EPERM)")


def _attributes(request: Fields) -> Mapping[str, Any]:
    given = request.fields("attributes").values
    if given.get("ev_fmt_profile_id", 0) != 0:
        raise RefusedError("ev_fmt_profile_id must be 0: the format of EVs is fixed, 32 bits with a path each")
    return {name: value for name, value in given.items() if name != "ev_fmt_profile_id"}
