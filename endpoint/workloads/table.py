"""The workloads of one host, and the requests about them: prepared, connected, started, waited for, removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from sys import intern
from typing import Any

from common.fields import Fields
from endpoint.profile import NicProfile
from endpoint.transport import Transport
from endpoint.workloads import Setup, Workload, make
from endpoint.workloads.workload import MEMORY_BYTES_MAX, OVER

Reply = Callable[[dict[str, Any]], None]
Journal = Callable[[int, str, Mapping[str, Any]], None]
"""Time, kind and fields of one line."""


class RequestError(ValueError):
    """A request that cannot be carried out; nothing was changed."""


def fields_of(request: Mapping[str, Any]) -> Fields:
    """A request's fields, checked as they are read. Raises RequestError."""
    return Fields(str(request.get("op")), request, RequestError)


class WorkloadTable:
    """Workloads by name. Each request is a mapping with the operation's fields, and raises RequestError."""

    def __init__(self, profile: NicProfile, transport: Transport, journal: Journal, clock: Callable[[], int]) -> None:
        self.in_turn: list[Workload] = []
        """In the order in which they were prepared, which is that of their turns."""
        self.waiting: dict[str, list[tuple[Any, Reply]]] = {}
        """By name of a workload: the callers that wait for its end."""
        self._profile = profile
        self._transport = transport
        self._journal = journal
        self._clock = clock

    def named(self, request: Mapping[str, Any]) -> Workload:
        """The workload that a request names."""
        name = fields_of(request).string("name")
        for workload in self.in_turn:
            if workload.setup.name == name:
                return workload
        present = ", ".join(workload.setup.name for workload in self.in_turn) or "none"
        raise RequestError(f"there is no workload {name!r}; present: {present}")

    def prepare(self, request: Mapping[str, Any], report_ns: int) -> Workload:
        """Make a workload, which reports every `report_ns`. Raises WorkloadError for options of no use."""
        fields = fields_of(request)
        name, kind = fields.string("name"), fields.string("kind")
        ranks, options = fields.items("ranks"), fields.fields("options", default={}).values
        if any(workload.setup.name == name for workload in self.in_turn):
            raise RequestError(f"workload {name!r} exists; remove it first, or choose another name")
        known = {self._profile.host, *self._profile.destinations}
        if strangers := [rank for rank in ranks if not isinstance(rank, str) or rank not in known]:
            raise RequestError(f"ranks {strangers} are no hosts of this fabric; valid: {', '.join(sorted(known))}")
        setup = Setup(
            name=name,
            kind=kind,
            host=self._profile.host,
            ranks=tuple(map(intern, ranks)),  # hosts of one process share names: each request was read anew
            transport=self._transport,
            journal=lambda line, fields: self._journal(self._clock(), line, fields),
            clock=self._clock,
            memory_bytes_max=MEMORY_BYTES_MAX - sum(held.memory_held_bytes for held in self.in_turn),
            report_ns=report_ns,
        )
        try:
            workload = make(setup, options)
        except MemoryError as error:
            raise RequestError(f"there is not enough memory for workload {name!r} with {options}") from error
        self.in_turn.append(workload)
        return workload

    def connect(self, request: Mapping[str, Any], now_ns: int) -> Workload:
        """Connect a workload to its peers' offers."""
        workload = self.named(request)
        workload.connect(fields_of(request).fields("offers").values, now_ns)
        return workload

    def start(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Start a workload at an instant."""
        self.named(request).start(fields_of(request).integer("at_ns", default=0))
        return {}

    def stop(self, request: Mapping[str, Any], now_ns: int) -> dict[str, Any]:
        """Let a workload end its round."""
        self.named(request).stop(now_ns)
        return {}

    def wait(self, request: Mapping[str, Any], ident: Any, reply: Reply) -> None:
        """Answer once the workload is over, which may be now."""
        workload = self.named(request)
        self.waiting.setdefault(workload.setup.name, []).append((ident, reply))
        if workload.state in OVER:
            self.answer(workload)

    def answer(self, workload: Workload) -> None:
        """Tell the callers that wait for this workload how it ended."""
        for ident, reply in self.waiting.pop(workload.setup.name, ()):
            reply({"id": ident, "ok": True, "result": workload.status()})

    def forget(self, replies: Iterable[Reply]) -> None:
        """The callers to whom these replies belong have left: they wait no more."""
        gone = set(replies)
        for name, callers in list(self.waiting.items()):
            self.waiting[name] = [caller for caller in callers if caller[1] not in gone]
            if not self.waiting[name]:
                del self.waiting[name]

    def remove(self, workload: Workload, now_ns: int) -> None:
        """Close a workload and forget it: its QPs are destroyed."""
        workload.close(now_ns)
        self.in_turn.remove(workload)

    def clear(self) -> None:
        """Forget all workloads, which were closed."""
        self.in_turn.clear()
