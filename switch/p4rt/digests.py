"""Digests on their way to a controller: lists, acknowledgements, timeouts (specification, "DigestEntry").

Time is an argument. Digests wait in a list until it is full or old enough. Those of a sent list are not sent again
before the list is acknowledged, or `ack_timeout_ns` is over. What is kept is bounded: beyond it digests are dropped.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any

from p4c.model import Program
from switch.engine import EngineControl
from switch.p4rt import wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import exists, invalid, not_found, unimplemented
from switch.p4rt.p4data import DigestInfo
from switch.p4rt.p4info import P4Info, find

LIST_SIZE_MAX = 1024  # of the digests in a list, also where the controller sets no limit
LIST_BYTES_MAX = 16 << 10  # of their data: about a frame, as a packet-in has
KEPT_BYTES_MAX = 4 << 20  # of one digest, those that wait and those not acknowledged, 128 bytes each beside the data

_RESPONSE_DIGEST = wire.tag(p4rt.StreamMessageResponse, "digest")
_DIGEST_ID, _LIST_ID, _DATA, _TIMESTAMP = wire.tags(p4rt.DigestList, "digest_id", "list_id", "data", "timestamp")


class _Enabled:
    """One digest that a controller has enabled."""

    def __init__(self, info: DigestInfo, widths: tuple[int, ...]) -> None:
        self.info = info
        self.config = p4rt.DigestEntry.Config()
        self.ready: list[tuple[int, tuple[bytes, ...]]] = []  # list ids and data, to be sent
        self.waiting: dict[bytes, int] = {}  # in their order, with when they came
        self._widths = widths
        self._bytes = (sum(widths) + 7) // 8
        self.sent: dict[int, tuple[int, tuple[bytes, ...]]] = {}  # when and what, by list id, the oldest first
        self.unacknowledged: set[bytes] = set()  # what is in `sent`

    @property
    def due_ns(self) -> int:
        most = min(self.config.max_list_size or LIST_SIZE_MAX, LIST_SIZE_MAX, max(LIST_BYTES_MAX // self._bytes, 1))
        return next(iter(self.waiting.values())) + (self.config.max_timeout_ns if len(self.waiting) < most else 0)

    def add(self, data: bytes, now_ns: int, list_ids: Iterator[int]) -> None:
        while self.sent and now_ns - next(iter(self.sent.values()))[0] >= self.config.ack_timeout_ns:
            self.acknowledge(next(iter(self.sent)))
        kept = len(self.waiting) + len(self.unacknowledged)
        known = data in self.waiting or data in self.unacknowledged
        if not known and (kept + 1) * (128 + self._bytes) <= KEPT_BYTES_MAX:
            self.waiting[data] = now_ns
            self.close(now_ns, list_ids)

    def close(self, now_ns: int, list_ids: Iterator[int]) -> None:
        """End the list that waits, if it is due."""
        if not self.waiting or self.due_ns > now_ns:
            return
        list_id, data = next(list_ids), tuple(self.waiting)
        self.ready.append((list_id, data))
        self.waiting.clear()
        if self.config.ack_timeout_ns:
            self.sent[list_id] = now_ns, data
            self.unacknowledged.update(data)

    def acknowledge(self, list_id: int) -> None:
        """A list that is not known has been forgotten."""
        self.unacknowledged.difference_update(self.sent.pop(list_id, (0, ()))[1])

    def responses(self, epoch_ns: int) -> Iterator[bytes]:
        """The lists that are ready, as serialised StreamMessageResponses."""
        for list_id, data in self.ready:
            head = wire.number(_DIGEST_ID, self.info.id) + wire.number(_LIST_ID, list_id)
            parts = [wire.block(_DATA, self.info.p4data(message, self._widths)) for message in data]
            yield wire.block(_RESPONSE_DIGEST, head + b"".join(parts) + wire.number(_TIMESTAMP, epoch_ns))
        self.ready.clear()


class Digests:
    """Those of one device, as long as it has its pipeline."""

    def __init__(self, p4info: P4Info, program: Program, engine: EngineControl) -> None:
        self._infos = p4info.digests
        self._engine = engine
        self._names = ["", *(learned.name for learned in program.learn_lists)]  # by the learn list's number
        self._widths = {learned.name: learned.widths for learned in program.learn_lists}
        self._enabled: dict[str, _Enabled] = {}
        self._list_ids = count(1)

    def write(self, kind: int, message: Any) -> None:
        """One update of a DigestEntry. Raises P4RuntimeError and changes nothing when it is refused."""
        info = find(self._infos, message.digest_id, "digest")
        owner, config = f"digest {info.name}", message.config
        if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            raise invalid(f"{owner}: timeouts and sizes must not be negative")
        if kind == p4rt.Update.INSERT:
            if info.name in self._enabled:
                raise exists(f"{owner}: is enabled already; modify it")
            if info.refused:
                raise unimplemented(f"{owner}: {info.refused}")
            self._engine.enable_digest(info.name, True)
            self._enabled[info.name] = _Enabled(info, self._widths[info.name])
        elif info.name not in self._enabled:
            raise not_found(f"{owner}: is not enabled; insert it first")
        if kind == p4rt.Update.DELETE:
            self._engine.enable_digest(info.name, False)
            del self._enabled[info.name]
        else:
            self._enabled[info.name].config.CopyFrom(config)

    def read(self, message: Any) -> Iterator[bytes]:
        """Serialised entities of those that are enabled; id 0 asks for all."""
        wanted = [find(self._infos, message.digest_id, "digest")] if message.digest_id else self._infos.values()
        for info in wanted:
            if info.name in self._enabled:
                entry = p4rt.DigestEntry(digest_id=info.id, config=self._enabled[info.name].config)
                yield p4rt.Entity(digest_entry=entry).SerializeToString()

    def acknowledge(self, digest_id: int, list_id: int) -> None:
        """Raises P4RuntimeError for a digest that P4Info has not."""
        name = find(self._infos, digest_id, "digest").name
        if name in self._enabled:
            self._enabled[name].acknowledge(list_id)

    def forget(self) -> None:
        """The controller is another: what was sent may be sent again."""
        for enabled in self._enabled.values():
            enabled.sent.clear()
            enabled.unacknowledged.clear()

    def arrived(self, number: int, data: bytes, now_ns: int) -> None:
        """A packet gave a digest of learn list `number`."""
        enabled = self._enabled.get(self._names[number]) if number < len(self._names) else None
        if enabled is not None:
            enabled.add(data, now_ns, self._list_ids)

    def due(self, now_ns: int, epoch_ns: int) -> Iterator[bytes]:
        """The lists to be sent now, as serialised StreamMessageResponses generated at that time."""
        for enabled in self._enabled.values():
            enabled.close(now_ns, self._list_ids)
            yield from enabled.responses(epoch_ns)

    @property
    def next_ns(self) -> int | None:
        """When the next list is due; None when nothing waits."""
        return min((enabled.due_ns for enabled in self._enabled.values() if enabled.waiting), default=None)
