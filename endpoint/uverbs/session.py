"""One program's side of a NIC, without I/O: messages in, messages out, everything of the program's in one place.

Nothing that a program sends is taken for granted. A wrong request is answered with a message; a message that the
library never sends (`mrclab`) is a `Violation`, and ends the session. Closing gives back all that the program had.
"""

import json
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from common import uverbs
from common.fields import Fields
from endpoint.nic.attributes import BusyError
from endpoint.nic.memory import FOREIGN
from endpoint.nic.wire import Syndrome
from endpoint.transport import MemoryRegion, QPState, QueueFull, Transport
from endpoint.uverbs.channel import (
    CQ_ERR,
    EVENT_SHIFT,
    PORT_ACTIVE,
    PORT_ERR,
    QP_ACCESS_ERR,
    QP_FATAL,
    QP_REQ_ERR,
    SQ_DRAINED,
    Channel,
    Channels,
    MakeChannel,
)
from endpoint.uverbs.control import EVENTS_MAX, ControlVerbs, EventQueue
from endpoint.uverbs.peers import named_peer
from endpoint.uverbs.queues import Armed, Completions, GuestQp
from endpoint.uverbs.refusal import RefusedError, Violation, has_room, of_kernel
from endpoint.uverbs.regions import MakeMemory, ProgramMemory, Regions

QUEUE_DEFAULT = 128
"""Writes and receives that a queue pair may have posted, where the program does not say."""
_REFUSALS = {int(Syndrome.NAK_INVALID_REQUEST): QP_REQ_ERR, int(Syndrome.NAK_REMOTE_ACCESS_ERROR): QP_ACCESS_ERR}
"""The event of a queue pair that has refused a request of its peer, by the refusal's syndrome; else `QP_FATAL`."""
_QUEUES = ("max_send_wr", "max_recv_wr")


class ProgramMessage(NamedTuple):
    """For the program. The descriptor, if there is one, goes with it and is then to be closed."""

    data: bytes
    descriptor: int | None = None


class Session:
    """`about` is what `open` tells a program of the NIC; `hosts` are the addresses of the peers that there can be, by
    name. Without `memory`, memory that the program already has cannot be registered."""

    def __init__(
        self,
        transport: Transport,
        *,
        hosts: Mapping[str, str],
        about: Callable[[], Mapping[str, Any]],
        make_memory: MakeMemory,
        make_channel: MakeChannel,
        limits: uverbs.ProgramLimits | None = None,
        memory: ProgramMemory | None = None,
        administrator: bool = True,
    ) -> None:
        self.program = ""
        """The program's own name, once it has opened its connection."""
        self.qps: dict[int, GuestQp] = {}
        self._transport = transport
        self._hosts = hosts
        self._about = about
        self._limits = limits or uverbs.ProgramLimits()
        self._regions = Regions(transport, self._limits, make_memory, memory)
        self._channels = Channels(self._limits, make_channel)
        self._async: Channel | None = None
        self._linked = transport.linked
        self._opened = False
        self._cqs: dict[int, Completions] = {}
        self._event_queues: dict[int, EventQueue] = {}
        self._next_cq = self._events_sent = 0
        self._control = ControlVerbs(transport, hosts, self._limits, self._answer_late, administrator=administrator)
        self._answers: deque[ProgramMessage] = deque()
        self._descriptor: int | None = None  # goes with the answer that is being made
        self._operations: dict[str, Callable[[Fields, int], Any]] = {
            "open": self._open,
            "query_device": lambda request, now_ns: self._about(),
            "reg_mr": self._reg_mr,
            "dereg_mr": lambda request, now_ns: self._regions.deregister(request),
            "create_comp_channel": self._create_channel,
            "destroy_comp_channel": lambda request, now_ns: self._channels.destroy(request),
            "create_cq": self._create_cq,
            "destroy_cq": self._destroy_cq,
            "create_qp": self._create_qp,
            "modify_qp": self._modify_qp,
            "query_qp": self._query_qp,
            "destroy_qp": self._destroy_qp,
            "overrun_cq": self._overrun_cq,
            "create_ev_event_cq": self._create_ev_event_cq,
            "poll_ev_event": self._poll_ev_event,
            **self._control.operations,
        }

    # --- messages ----------------------------------------------------------------------------------------------

    def receive(self, message: bytes, now_ns: int) -> None:
        """Carry out one message. Raises `Violation`."""
        if message[0] == uverbs.POST and self._opened:
            try:
                ident, requests = uverbs.unpack_requests(message)
            except uverbs.FormatError as error:
                raise Violation(str(error)) from error
            for request in requests:
                self._post(request)
            if ident:
                self._answer({"id": ident, "ok": True, "result": {}})
        elif message[0] == uverbs.INLINE and self._opened:
            try:
                self._post(*uverbs.unpack_inline(message))
            except uverbs.FormatError as error:
                raise Violation(str(error)) from error
        elif message[0] == uverbs.ARM and self._opened:
            self._arm(message)
        elif message[0] == uverbs.JSON:
            try:
                self._verb(message, now_ns)
            except RecursionError as error:  # JSON that could just be parsed is too deep to be shown in a complaint
                raise Violation("a request that is nested too deeply") from error
        else:
            raise Violation("the first message of a program is open" if not self._opened else "an unknown message")

    def outgoing(self) -> ProgramMessage | None:
        """The next message for the program; None when there is nothing to tell. Events go when all else has gone."""
        self._drain()
        if self._answers:
            return self._answers.popleft()
        for completions in self._cqs.values():
            if rows := completions.take(uverbs.ROWS_MAX):
                return ProgramMessage(uverbs.pack_completions(rows))
        self._flush()
        return None

    def step(self) -> None:
        """Make the events of armed queues for a program that does not read: it may sleep on a channel."""
        self._drain()
        self._flush()

    def _drain(self) -> None:
        """Note what has completed."""
        for completions in self._cqs.values():
            completions.drain(self.qps)
        for guest in self.qps.values():
            guest.completions.drain_own(guest, self.qps)
            if self._async is not None and (guest.qp.refusal or guest.tell_drained):
                self._note_events(self._async, guest)
        for events in self._event_queues.values():
            events.drain()
        if self._async is not None and self._linked != self._transport.linked:
            self._linked = not self._linked
            self._async.fire((PORT_ACTIVE if self._linked else PORT_ERR) << EVENT_SHIFT)

    @staticmethod
    def _note_events(channel: Channel, guest: GuestQp) -> None:
        """Fire the asynchronous events of a queue pair that no request of the program has caused."""
        if guest.qp.refusal and not guest.told_refusal:
            guest.told_refusal = True
            channel.fire(_REFUSALS.get(guest.qp.refusal, QP_FATAL) << EVENT_SHIFT | guest.qp.qpn)
        if guest.tell_drained and guest.qp.drained:
            guest.tell_drained = False
            channel.fire(SQ_DRAINED << EVENT_SHIFT | guest.qp.qpn)

    def _flush(self) -> None:
        for channel in self._channels:
            channel.flush()

    def take_news(self) -> bool:
        """Whether an event has gone to a channel since the last call: news that no message of `outgoing` brings."""
        before, self._events_sent = self._events_sent, sum(channel.sent for channel in self._channels)
        return self._events_sent > before

    def next_timer_ns(self) -> int | None:
        """When `handle_timer` next has something to do."""
        return self._control.next_timer_ns()

    def handle_timer(self, now_ns: int) -> None:
        self._control.handle_timer(now_ns)

    def close(self, now_ns: int) -> None:
        """Give back everything that the program had."""
        for guest in self.qps.values():
            self._transport.destroy_qp(guest.qp, now_ns)
        self._regions.close()
        for answer in self._answers:
            if answer.descriptor is not None:
                os.close(answer.descriptor)
        self._control.close()
        for events in self._event_queues.values():
            self._transport.control.destroy_ev_event_queue(events.queue)  # type: ignore[attr-defined]
        self._channels.close()
        self._answers.clear()
        self._event_queues.clear()
        self.qps.clear()
        self._cqs.clear()

    # --- work requests -------------------------------------------------------------------------------------------

    def _post(self, request: uverbs.Request, data: bytes = b"") -> None:
        guest = self.qps.get(request.qpn)
        if guest is None:
            raise Violation(f"a work request for QP {request.qpn}, which is not this program's")
        receive = request.opcode == uverbs.RECV
        cq = guest.receives if receive else guest.completions
        if guest.queue is None and cq.outstanding >= cq.capacity:
            raise Violation(f"completion queue {cq.number} has no room for another work request")
        if request.opcode not in (uverbs.WRITE, uverbs.WRITE_WITH_IMM, uverbs.RECV):
            raise Violation(f"opcode {request.opcode} of a work request")
        if guest.qp.state is QPState.ERROR:
            guest.completions.drain(self.qps)  # those of earlier requests come first
            guest.completions.drain_own(guest, self.qps)
            cq.flushed(guest, request)
            return
        try:
            if receive:
                guest.qp.post_recv(request.wr_id)
            else:
                self._post_write(guest, request, data)
        except (ValueError, QueueFull) as error:
            raise Violation(str(error)) from error
        cq.outstanding += 1
        if receive:
            guest.receiving += 1
        else:
            guest.outstanding += 1
            if request.flags & uverbs.UNSIGNALED:
                cq.unsignaled(guest)

    def _post_write(self, guest: GuestQp, request: uverbs.Request, data: bytes) -> None:
        region = MemoryRegion.of_bytes(data) if data else self._regions.get(request.lkey)
        if request.flags & uverbs.WRONG:
            region = FOREIGN
        if region is None and request.length:
            raise Violation(f"a write from memory with lkey {request.lkey:#x}, which is not this program's")
        guest.qp.post_write(
            request.wr_id,
            region,
            request.offset,
            request.length,
            request.remote_addr,
            request.rkey,
            request.imm_data if request.opcode == uverbs.WRITE_WITH_IMM else None,
            signaled=not request.flags & uverbs.UNSIGNALED,
            solicited=bool(request.flags & uverbs.SOLICITED),
        )

    # --- verbs -----------------------------------------------------------------------------------------------------

    def _arm(self, message: bytes) -> None:
        try:
            arm = uverbs.unpack_arm(message)
        except uverbs.FormatError as error:
            raise Violation(str(error)) from error
        if completions := self._cqs.get(arm.cq):
            completions.armed.arm(arm.seen, arm.solicited)
        elif events := self._event_queues.get(arm.cq):
            events.arm(arm.solicited)
        else:
            raise Violation(f"completion queue {arm.cq} is armed, which is not this program's")

    def _verb(self, message: bytes, now_ns: int) -> None:
        try:
            request = json.loads(message)
        except (ValueError, RecursionError) as error:
            raise Violation("a message that begins like JSON and is none") from error
        ident, name = request.get("id"), request.get("op")
        if type(ident) is not int:
            raise Violation("a request without an integer as its id")
        if not self._opened and name != "open":
            raise Violation("the first message of a program is open")
        try:
            operation = self._operations.get(name) if isinstance(name, str) else None
            if operation is None:
                raise RefusedError(f"there is no operation {name!r}; valid: {', '.join(self._operations)}")
            result = operation(Fields(name, request, RefusedError), now_ns)
        except BusyError as error:
            self._answer({"id": ident, "ok": False, "error": f"{error} (EBUSY)"})
        except OSError as error:
            self._answer({"id": ident, "ok": False, "error": of_kernel(error)})
        except ValueError as error:
            self._answer({"id": ident, "ok": False, "error": str(error)})
        except QueueFull as error:
            self._answer({"id": ident, "ok": False, "error": f"{error} (ENOMEM)"})
        else:
            if result is not None:
                self._answer({"id": ident, "ok": True, "result": result})

    def _answer_late(self, ident: int, result: Any) -> None:
        self._answer({"id": ident, "ok": True, "result": result})

    def _answer(self, answer: Mapping[str, Any]) -> None:
        text = json.dumps(answer, separators=(",", ":")).encode()
        if len(text) > uverbs.MESSAGE_BYTES_MAX:
            error = f"the answer would have {len(text)} bytes; {uverbs.MESSAGE_BYTES_MAX} are the most"
            text = json.dumps({"id": answer["id"], "ok": False, "error": error}).encode()
        self._answers.append(ProgramMessage(text, self._descriptor))
        self._descriptor = None

    def _open(self, request: Fields, now_ns: int) -> Any:
        version = request.integer("version")
        if version != uverbs.VERSION:
            raise RefusedError(f"the program speaks version {version} of uverbs, this agent {uverbs.VERSION}")
        if self._opened:
            raise RefusedError("open was said before")
        name = request.string("program").encode(errors="replace").decode()  # a script's may have lone surrogates
        self.program = name[:64]
        if request.boolean("events", False):
            self._descriptor, self._async = self._channels.create_async()
        self._opened = True
        return {**self._about(), "limits": asdict(self._limits), **self._regions.secret()}

    def _reg_mr(self, request: Fields, now_ns: int) -> Any:
        self._descriptor, region = self._regions.register(request)
        return {"lkey": region.lkey, "rkey": region.rkey, "addr": region.va, "length": region.length}

    def _create_channel(self, request: Fields, now_ns: int) -> Any:
        self._descriptor, number = self._channels.create()
        return {"channel": number}

    def _places_left(self) -> int:
        taken = sum(cq.capacity for cq in self._cqs.values()) + sum(guest.places for guest in self.qps.values())
        events: int = sum(events.queue.capacity for events in self._event_queues.values())
        return self._limits.cqe - taken - events

    def _check_places(self, what: str, places: int) -> None:
        if places > self._places_left():
            raise RefusedError(f"the {what} needs {places} places in queues; {self._places_left()} are left (ENOMEM)")

    def _new_queue(self, request: Fields) -> tuple[int, int, Channel | None]:
        """Number, capacity and channel of a new queue."""
        has_room(self._limits, "cqs", len(self._cqs) + len(self._event_queues))
        cqe, channel = request.integer("cqe", 1, self._limits.cqe), self._channels.named(request)
        self._check_places("completion queue", cqe)
        if channel is not None:
            channel.users += 1
        number = self._next_cq = self._next_cq + 1 & 0xFFFFFFFF
        return number, cqe, channel

    def _create_cq(self, request: Fields, now_ns: int) -> Any:
        number, cqe, channel = self._new_queue(request)
        self._cqs[number] = Completions(number, self._transport.create_cq(cqe), cqe, channel)
        return {"cq": number}

    def _create_ev_event_cq(self, request: Fields, now_ns: int) -> Any:
        control = self._control.mrc("EV events")
        number, cqe, channel = self._new_queue(request)
        self._event_queues[number] = EventQueue(number, control.create_ev_event_queue(cqe), Armed(number, channel))
        return {"cq": number}

    def _poll_ev_event(self, request: Fields, now_ns: int) -> Any:
        events = self._event_queues.get(request.integer("cq"))
        if events is None:
            request.fail("cq", f"one of {sorted(self._event_queues)}")
        return {"events": events.poll(request.integer("num_entries", 1, EVENTS_MAX))}

    def _destroy_cq(self, request: Fields, now_ns: int) -> Any:
        number = request.integer("cq")
        if events := self._event_queues.pop(number, None):
            self._transport.control.destroy_ev_event_queue(events.queue)  # type: ignore[attr-defined]
            self._let_go(events.armed)
            return {}
        cq = self._cq(request)
        if users := [qpn for qpn, guest in self.qps.items() if cq in (guest.completions, guest.receives)]:
            raise RefusedError(f"destroy_cq.cq is {cq.number}, which QPs {users[:5]} still use")
        del self._cqs[cq.number]
        self._let_go(cq.armed)
        return {}

    def _overrun_cq(self, request: Fields, now_ns: int) -> Any:
        """The program's NIC is a strict one, and found no place in a queue: the queue pairs that use it fail."""
        cq = self._cq(request)
        for guest in self.qps.values():
            if cq in (guest.completions, guest.receives):
                guest.qp.modify(QPState.ERROR, now_ns)
        if self._async is not None:
            self._async.fire(CQ_ERR << EVENT_SHIFT | cq.number)
        return {}

    def _let_go(self, armed: Armed) -> None:
        if armed.channel is not None:
            armed.channel.users -= 1

    @staticmethod
    def _attributes(request: Fields, *parameters: str) -> Mapping[str, Any]:
        """A request's attributes, which become arguments of a verb by name, and never name another parameter."""
        fields = request.fields("attributes", default={})
        for name in parameters:
            if name in fields.values:
                raise RefusedError(f"{fields.name} has no {name!r}")
        return fields.values

    def _create_qp(self, request: Fields, now_ns: int) -> Any:
        has_room(self._limits, "qps", len(self.qps))
        cq = self._cq(request)
        given = self._attributes(request, "self", "cq")
        for name, value in given.items():
            if type(value) not in (int, str, bool):
                raise RefusedError(f"create_qp.attributes.{name} must be an integer, a string, true or false")
        self._control.check_hint(given.get("qp_hint", 0))
        attributes = {"max_send_wr": QUEUE_DEFAULT, "max_recv_wr": QUEUE_DEFAULT, **given}
        receives, queue, places = cq, None, 0
        if request.has("recv_cq"):
            receives = self._cq(request, "recv_cq")
            places = sum(room for name in _QUEUES if type(room := attributes[name]) is int)
            self._check_places("queue pair", places)
            queue = self._transport.create_cq(max(1, places))
        qp = self._transport.create_qp(cq.queue if queue is None else queue, **attributes)
        self.qps[qp.qpn] = GuestQp(qp, cq, receives, queue, places)
        queues = {name: attributes[name] for name in _QUEUES}
        return {"qpn": qp.qpn, "info": asdict(qp.info()), **queues}

    def _modify_qp(self, request: Fields, now_ns: int) -> Any:
        guest = self._qp(request)
        state = QPState(request.choice("state", uverbs.STATES)) if request.has("state") else None
        peer = None
        if request.has("peer"):
            peer = named_peer(request.fields("peer"), self._hosts, guest.qp.info())
        cur_state = QPState(request.choice("cur_state", uverbs.STATES)) if request.has("cur_state") else None
        given = self._attributes(request, "self", "state", "now_ns", "peer", "cur_state")
        if "qp_hint" in given:
            self._control.check_hint(given["qp_hint"])
        drained = request.boolean("tell_drained", False)
        guest.qp.modify(state, now_ns, peer=peer, cur_state=cur_state, **given)
        if state is QPState.RESET:
            self._drain()
            guest.forget()
        if state is QPState.SQD:
            guest.tell_drained = drained
        return {"state": guest.qp.state.value, "info": asdict(guest.qp.info())}

    def _query_qp(self, request: Fields, now_ns: int) -> Any:
        qp = self._qp(request).qp
        return {
            "state": qp.state.value,
            "cause": qp.cause,
            "drained": qp.drained,
            "info": asdict(qp.info()),
            "attributes": dict(qp.values),
            "counters": dict(qp.counters()),
        }

    def _destroy_qp(self, request: Fields, now_ns: int) -> Any:
        guest = self._qp(request)
        self._drain()
        guest.forget()
        del self.qps[guest.qp.qpn]
        self._transport.destroy_qp(guest.qp, now_ns)
        return {"forgiven": guest.qp.forgiven}

    # --- what requests name ------------------------------------------------------------------------------------------

    def _cq(self, request: Fields, key: str = "cq") -> Completions:
        cq = self._cqs.get(request.integer(key))
        return cq if cq is not None else request.fail(key, f"one of {sorted(self._cqs)}")

    def _qp(self, request: Fields) -> GuestQp:
        guest = self.qps.get(request.integer("qpn"))
        return guest if guest is not None else request.fail("qpn", f"one of this program's: {sorted(self.qps)[:16]}")
