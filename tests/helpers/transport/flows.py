"""Writes posted over a virtual wire and checked at the other end, byte for byte."""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from endpoint.transport import CompletionStatus, QPState, QueueFull
from tests.helpers.transport.virtual_wire import Wire


class Flow:
    """One QP from `src` to `dst`; messages of given sizes land one after the other in the destination's region.

    With `silent`, neither end states its dialect, as foreign NICs do not.
    """

    def __init__(
        self,
        wire: Wire,
        src: str = "h0",
        dst: str = "h1",
        size: int = 1 << 20,
        seed: int = 7,
        *,
        silent: bool = False,
        **attributes: Any,
    ) -> None:
        self.wire, self.src, self.dst = wire, src, dst
        sender, receiver = wire.transports[src], wire.transports[dst]
        self.source = bytearray(Random(seed).randbytes(size))
        self.sink = bytearray(size)
        self.guard = bytearray(64)
        self.region = sender.register_memory(self.source)
        self.target = receiver.register_memory(self.sink)
        self.guard_region = receiver.register_memory(self.guard)
        self.cq = sender.create_cq(100_000)
        self.remote_cq = receiver.create_cq(100_000)
        self.qp: Any = sender.create_qp(self.cq, **attributes)
        self.remote: Any = receiver.create_qp(self.remote_cq, **attributes)
        here, there = self.qp.info(), self.remote.info()
        if silent:
            here, there = replace(here, dialect=None), replace(there, dialect=None)
        self.qp.connect(there, wire.now_ns)
        self.remote.connect(here, wire.now_ns)
        self.posted: dict[int, tuple[int, int, int | None]] = {}
        self.statuses: dict[int, CompletionStatus] = {}
        self.immediates: list[int] = []
        self.done_bytes = 0
        self._cursor = 0
        self._next = 0

    def post(self, length: int, immediate: int | None = None, *, times: int = 1) -> int:
        """Post one write, or several of one length; the region is used as a ring. Returns the id of the last."""
        for _ in range(times - 1):
            self.post(length, immediate)
        if self._cursor + length > len(self.source):
            self._cursor = 0
        wr_id, self._next = self._next, self._next + 1
        if immediate is not None:
            self.remote.post_recv(wr_id)
        self.qp.post_write(
            wr_id, self.region, self._cursor, length, self.target.va + self._cursor, self.target.rkey, immediate
        )
        self.posted[wr_id] = (self._cursor, length, immediate)
        self._cursor += length
        return wr_id

    def poll(self) -> None:
        while batch := self.cq.poll(64):
            for completion in batch:
                assert completion.wr_id not in self.statuses, "a message completed twice"
                self.statuses[completion.wr_id] = completion.status
                if completion.status is CompletionStatus.SUCCESS:
                    self.done_bytes += completion.byte_len
        while batch := self.remote_cq.poll(64):
            for completion in batch:
                if completion.status is CompletionStatus.SUCCESS:
                    assert completion.immediate is not None
                    self.immediates.append(completion.immediate)

    @property
    def finished(self) -> bool:
        self.poll()
        return len(self.statuses) == len(self.posted)

    def keep_posted(self, length: int, depth: int, until_ns: int) -> None:
        """Keep `depth` writes outstanding until a time."""

        def top_up() -> None:
            self.poll()
            if self.wire.now_ns >= until_ns or self.qp.state is not QPState.RTS:
                return
            try:
                while len(self.posted) - len(self.statuses) < depth:
                    self.post(length)
            except QueueFull:
                pass
            self.wire.kick(self.src)
            self.wire.at(self.wire.now_ns + self.wire.base_rtt_ns // 4, top_up)

        top_up()

    def goodput_bps(self, until_ns: int) -> float:
        """The payload that arrives from now until then, in bits per second."""
        before, began_ns = self.remote.responder.received_bytes, self.wire.now_ns
        self.wire.run(until_ns)
        return float((self.remote.responder.received_bytes - before) * 8e9 / (until_ns - began_ns))

    def finish(self, round_trips: int = 20_000) -> None:
        """Run until everything has completed, for so many base round trips at most, and check it."""
        run(self.wire, self, round_trips=round_trips)
        self.check()

    def check(self) -> None:
        """Everything completed well and the memory is what was written."""
        self.poll()
        assert Counter(self.statuses.values()) == {CompletionStatus.SUCCESS: len(self.posted)} or not self.posted
        written = bytearray(len(self.sink))
        for start, length, _ in self.posted.values():
            written[start : start + length] = self.source[start : start + length]
        assert self.sink == written
        assert self.guard == bytearray(64)
        assert self.immediates == [imm for _, _, imm in self.posted.values() if imm is not None]


def run(wire: Wire, *flows: Flow, round_trips: int = 20_000) -> None:
    """Until all writes of these flows have completed, for so many base round trips at most."""
    wire.run(wire.now_ns + round_trips * wire.base_rtt_ns, stop=lambda: all(flow.finished for flow in flows))
