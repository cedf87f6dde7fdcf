"""One program's side of a NIC, without I/O: messages in, messages out, everything of the program's in one place.

Nothing that a program sends is taken for granted. What it asks for wrongly is answered in words; a message that the
library never sends (`mrclab`) is a `Violation`, and ends the session. Closing gives back all that the program had.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NamedTuple

from common import door
from common.fields import Fields
from endpoint.door.queues import Completions, GuestQp
from endpoint.door.violation import Violation
from endpoint.transport import MemoryRegion, QPInfo, QPState, QueueFull, Transport

QUEUE_DEFAULT = 128
"""Writes and receives that a queue pair may have posted, where the program does not say."""
MakeMemory = Callable[[int], tuple[int, memoryview]]
"""Memory of so many bytes and a descriptor of it for the program. Raises OSError."""


class RefusedError(ValueError):
    """A request that cannot be carried out; nothing was changed."""


class Message(NamedTuple):
    """For the program. The descriptor, if there is one, goes with it and is then to be closed."""

    data: bytes
    descriptor: int | None = None


class Session:
    """`about` is what `open` tells a program of the NIC; `hosts` are the peers that there can be."""

    def __init__(
        self,
        transport: Transport,
        *,
        hosts: Sequence[str],
        about: Callable[[], Mapping[str, Any]],
        make_memory: MakeMemory,
        limits: door.Limits | None = None,
    ) -> None:
        self.program = ""
        """What it calls itself, once it has opened the door."""
        self.qps: dict[int, GuestQp] = {}
        self._transport = transport
        self._hosts = hosts
        self._about = about
        self._make_memory = make_memory
        self._limits = limits or door.Limits()
        self._opened = False
        self._regions: dict[int, MemoryRegion] = {}
        self._cqs: dict[int, Completions] = {}
        self._next_cq = 0
        self._answers: deque[Message] = deque()
        self._descriptor: int | None = None  # goes with the answer that is being made
        self._operations: dict[str, Callable[[Fields, int], Any]] = {
            "open": self._open,
            "query_device": lambda request, now_ns: self._about(),
            "reg_mr": self._reg_mr,
            "dereg_mr": self._dereg_mr,
            "create_cq": self._create_cq,
            "destroy_cq": self._destroy_cq,
            "create_qp": self._create_qp,
            "modify_qp": self._modify_qp,
            "query_qp": self._query_qp,
            "destroy_qp": self._destroy_qp,
        }

    @property
    def answering(self) -> bool:
        """Whether answers wait to be taken."""
        return bool(self._answers)

    # --- messages ----------------------------------------------------------------------------------------------

    def receive(self, message: bytes, now_ns: int) -> None:
        """Carry out one message. Raises `Violation`."""
        if message[0] == door.POST and self._opened:
            try:
                ident, requests = door.unpack_requests(message)
            except door.FormatError as error:
                raise Violation(str(error)) from error
            for request in requests:
                self._post(request)
            if ident:
                self._answer({"id": ident, "ok": True, "result": {}})
        elif message[0] == door.JSON:
            self._control(message, now_ns)
        else:
            raise Violation("the first message of a program is open" if not self._opened else "an unknown message")

    def outgoing(self) -> Message | None:
        """The next message for the program; None when there is nothing to tell."""
        if self._answers:
            return self._answers.popleft()
        for completions in self._cqs.values():
            completions.drain(self.qps)
            if rows := completions.take(door.ROWS_MAX):
                return Message(door.pack_completions(rows))
        return None

    def close(self, now_ns: int) -> None:
        """Give back everything that the program had."""
        for guest in self.qps.values():
            self._transport.destroy_qp(guest.qp, now_ns)
        for region in self._regions.values():
            self._transport.deregister_memory(region)
        for answer in self._answers:
            if answer.descriptor is not None:
                os.close(answer.descriptor)
        self._answers.clear()
        self.qps.clear()
        self._regions.clear()
        self._cqs.clear()

    # --- work requests -------------------------------------------------------------------------------------------

    def _post(self, request: door.Request) -> None:
        guest = self.qps.get(request.qpn)
        if guest is None:
            raise Violation(f"a work request for QP {request.qpn}, which is not this program's")
        cq = guest.completions
        if cq.outstanding >= cq.capacity:
            raise Violation(f"completion queue {cq.number} has no room for another work request")
        if request.opcode not in (door.WRITE, door.WRITE_WITH_IMM, door.RECV):
            raise Violation(f"opcode {request.opcode} of a work request")
        if guest.qp.state is QPState.ERROR:
            cq.flushed(guest, request)
            return
        try:
            if request.opcode == door.RECV:
                guest.qp.post_recv(request.wr_id)
            else:
                self._post_write(guest, request)
        except (ValueError, QueueFull) as error:
            raise Violation(str(error)) from error
        cq.outstanding += 1
        guest.outstanding += 1

    def _post_write(self, guest: GuestQp, request: door.Request) -> None:
        region = self._regions.get(request.lkey)
        if region is None:
            raise Violation(f"a write from memory with lkey {request.lkey:#x}, which is not this program's")
        guest.qp.post_write(
            request.wr_id,
            region,
            request.offset,
            request.length,
            request.remote_addr,
            request.rkey,
            request.imm_data if request.opcode == door.WRITE_WITH_IMM else None,
        )

    # --- verbs -----------------------------------------------------------------------------------------------------

    def _control(self, message: bytes, now_ns: int) -> None:
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
        except (OSError, ValueError, QueueFull) as error:
            self._answer({"id": ident, "ok": False, "error": str(error)})
        else:
            self._answer({"id": ident, "ok": True, "result": result})

    def _answer(self, answer: Mapping[str, Any]) -> None:
        text = json.dumps(answer, separators=(",", ":")).encode()
        if len(text) > door.MESSAGE_BYTES_MAX:
            error = f"the answer would have {len(text)} bytes; {door.MESSAGE_BYTES_MAX} are the most"
            text = json.dumps({"id": answer["id"], "ok": False, "error": error}).encode()
        self._answers.append(Message(text, self._descriptor))
        self._descriptor = None

    def _open(self, request: Fields, now_ns: int) -> Any:
        version = request.integer("version")
        if version != door.VERSION:
            raise RefusedError(f"the program speaks version {version} of the door's format, this agent {door.VERSION}")
        if self._opened:
            raise RefusedError("open was said before")
        self.program = request.string("program")[:64]
        self._opened = True
        return {**self._about(), "limits": asdict(self._limits)}

    def _reg_mr(self, request: Fields, now_ns: int) -> Any:
        held = sum(region.length for region in self._regions.values())
        length = request.integer("length", 1, 1 << 62)
        self._has_room("regions", len(self._regions))
        if held + length > self._limits.memory_bytes:
            raise RefusedError(
                f"reg_mr.length is {length}; {self._limits.memory_bytes - held} bytes are left of the"
                f" {self._limits.memory_bytes} that a program may register"
            )
        remote_write = request.boolean("remote_write", True)
        self._descriptor, buffer = self._make_memory(length)
        region = self._transport.register_memory(buffer, remote_write=remote_write)
        self._regions[region.lkey] = region
        return {"lkey": region.lkey, "rkey": region.rkey, "addr": region.va, "length": region.length}

    def _dereg_mr(self, request: Fields, now_ns: int) -> Any:
        lkey = request.integer("lkey")
        if lkey not in self._regions:
            raise RefusedError(f"dereg_mr.lkey is {lkey:#x}, which is not registered here")
        self._transport.deregister_memory(self._regions.pop(lkey))
        return {}

    def _create_cq(self, request: Fields, now_ns: int) -> Any:
        self._has_room("cqs", len(self._cqs))
        left = self._limits.cqe - sum(cq.capacity for cq in self._cqs.values())
        cqe = request.integer("cqe", 1, left)
        number = self._next_cq = self._next_cq + 1 & 0xFFFFFFFF
        self._cqs[number] = Completions(number, self._transport.create_cq(cqe), cqe)
        return {"cq": number}

    def _destroy_cq(self, request: Fields, now_ns: int) -> Any:
        cq = self._cq(request)
        if users := [qpn for qpn, guest in self.qps.items() if guest.completions is cq]:
            raise RefusedError(f"destroy_cq.cq is {cq.number}, which QPs {users[:5]} still use")
        del self._cqs[cq.number]
        return {}

    def _create_qp(self, request: Fields, now_ns: int) -> Any:
        self._has_room("qps", len(self.qps))
        cq = self._cq(request)
        given = request.fields("attributes", default={}).values
        for name, value in given.items():
            if type(value) not in (int, str):
                raise RefusedError(f"create_qp.attributes.{name} must be an integer or a string")
        attributes = {"max_send_wr": QUEUE_DEFAULT, "max_recv_wr": QUEUE_DEFAULT, **given}
        qp = self._transport.create_qp(cq.queue, **attributes)
        self.qps[qp.qpn] = GuestQp(qp, cq)
        queues = {name: attributes[name] for name in ("max_send_wr", "max_recv_wr")}
        return {"qpn": qp.qpn, "info": asdict(qp.info()), **queues}

    def _modify_qp(self, request: Fields, now_ns: int) -> Any:
        guest = self._qp(request)
        state = QPState(request.choice("state", door.STATES))
        peer = self._peer(request.fields("peer")) if request.has("peer") else None
        guest.qp.modify(state, now_ns, peer=peer)
        return {"state": guest.qp.state.value}

    def _query_qp(self, request: Fields, now_ns: int) -> Any:
        qp = self._qp(request).qp
        return {"state": qp.state.value, "cause": qp.cause, "info": asdict(qp.info()), "counters": dict(qp.counters())}

    def _destroy_qp(self, request: Fields, now_ns: int) -> Any:
        guest = self._qp(request)
        guest.completions.drain(self.qps)
        guest.completions.forget(guest)
        del self.qps[guest.qp.qpn]
        self._transport.destroy_qp(guest.qp, now_ns)
        return {}

    # --- what requests name ------------------------------------------------------------------------------------------

    def _has_room(self, name: str, held: int) -> None:
        limit: int = getattr(self._limits, name)
        if held >= limit:
            raise RefusedError(f"a program may have {limit} {name} at a time; destroy one first")

    def _cq(self, request: Fields) -> Completions:
        cq = self._cqs.get(request.integer("cq"))
        return cq if cq is not None else request.fail("cq", f"one of {sorted(self._cqs)}")

    def _qp(self, request: Fields) -> GuestQp:
        guest = self.qps.get(request.integer("qpn"))
        return guest if guest is not None else request.fail("qpn", f"one of this program's: {sorted(self.qps)[:16]}")

    def _peer(self, given: Fields) -> QPInfo:
        """The other end's `info`, which may have come from anywhere."""
        known = {field.name: field for field in fields(QPInfo)}
        values = Fields(given.name, given.values, RefusedError, list(known))
        for name, field in known.items():
            if name == "host":
                values.choice("host", self._hosts)
            elif "bool" in str(field.type):
                values.boolean(name, True)
            elif "str" in str(field.type):
                if values.has(name):
                    values.string(name)
            elif values.has(name) or (name in values.values and "None" not in str(field.type)):
                values.integer(name, 0, 1 << 63)
        try:
            return QPInfo(**values.values)
        except TypeError as error:
            raise RefusedError(
                f"{given.name} lacks attributes; it must be what the peer's info said: {error}"
            ) from error
