"""The links of a rank, by the number of the other rank, and what has arrived on them."""

import json
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from mrclab.context import Context
from mrclab.cq import WC
from mrclab.errors import JobFailedError
from mrclab.mesh.link import PAYLOAD_BYTES, Call, LinkError, MeshLink, Tag

Sink = Callable[[int, memoryview], None]
"""Takes the offset of a chunk in its message, in bytes, and its bytes, which are valid only during the call."""
Fill = Callable[[int, memoryview], None]
"""Writes the bytes of a message from an offset on into a view."""
Step = Generator[None, None, None]
"""A coroutine that yields while it waits for what the network does next."""

GOODBYE = Tag(0xFFFFFFFF, 0)
FAILURE = Tag(0xFFFFFFFF, 1)
"""A message that says which call has failed at its sender, and why."""
LINGER_RTTS = 30
"""Round trips for which a rank that fails because of another one is still there."""
_WHY_MAX = 2_000  # characters
SILENT_RTTS = 400
"""Round trips in which the NIC of a rank that lives acknowledges a ping, under any fault that the lab can undo."""
STALL_NS = 50_000_000
"""On real links a round trip counts as at least so long: processes of a busy machine wait for their turn."""
_CQE = 32_768


def patient_rtt_ns(context: Context) -> int:
    """The round trip by which a rank's patience is measured."""
    return max(context.query_device().base_rtt_ns, 0 if context.stepped else STALL_NS)


class PeerError(RuntimeError):
    """Another rank cannot be reached, or breaks the rules of messages; the message names the rank."""


class CallError(RuntimeError):
    """One call has failed, here or at another rank, and no other; the message says why."""


class Arrival:
    """A message that is expected from a rank, `peer`. With a `failure` it will not be what was expected."""

    def __init__(self, peer: int, tag: Tag, total: int, sink: Sink) -> None:
        self.peer = peer
        self.tag = tag
        self.total = total
        self.taken = 0
        self.done = False
        self.failure = ""
        self._sink: Sink | None = sink

    def has(self, count: int) -> bool:
        """Whether the first `count` bytes are there."""
        return self.done or 0 < count <= self.taken

    def take(self, total: int, chunk: memoryview) -> None:
        """The next bytes of a message of `total` bytes."""
        if total != self.total and not self.failure:
            self.fail(
                f"rank {self.peer}: a message of {total} bytes arrived where one of {self.total} bytes was expected"
            )
        if len(chunk) and self._sink is not None:
            try:
                self._sink(self.taken, chunk)
            except Exception as error:  # of the program's tensor: its call fails, and not the thread that came by
                self.fail(f"{type(error).__name__}: {error}")
        self.taken += len(chunk)
        self.done = self.taken >= total

    def fail(self, why: str) -> None:
        self.failure = self.failure or why
        self.drop()

    def drop(self) -> None:
        """Drop packets that are still to come: the memory is the program's again."""
        self._sink = None


class Mesh:
    """The links of one rank. Like its context it is for one thread at a time."""

    def __init__(self, context: Context, rank: int) -> None:
        self.rank = rank
        self.context = context
        self.rtt_ns = patient_rtt_ns(context)
        self.cq = context.create_cq(_CQE)
        self._links: dict[int, MeshLink] = {}
        self._open: dict[int, MeshLink] = {}  # those whose other end is known to be connected
        self._by_qp: dict[int, int] = {}
        self._expected: dict[tuple[int, Tag], Arrival] = {}
        self._early: dict[tuple[int, Tag], deque[tuple[int, bytearray]]] = {}
        self.failed: dict[Call, str] = {}
        """Why each failed call has failed; messages that arrive for such a call are dropped."""
        self.sent_bytes = 0
        """Payload of all messages so far."""
        self._gone: set[int] = set()  # ranks that have said goodbye
        self._lost: set[int] = set()  # those of them whose queue pairs have ended since

    def add(self, peer: int) -> dict[str, Any]:
        """A new link to a rank; the value is for that rank's `connect`."""
        link = MeshLink(self.context, self.cq, lambda tag, total, chunk: self._deliver(peer, tag, total, chunk))
        self._links[peer] = link
        for number in link.numbers:
            self._by_qp[number] = peer
        return link.info()

    def connect(self, peer: int, info: Mapping[str, Any]) -> None:
        self._links[peer].connect(info)

    def open(self, peers: Iterable[int]) -> None:
        """Both ends of the links to these ranks are connected: this rank may write to them from now on."""
        self._open.update((peer, self._links[peer]) for peer in peers)

    def remove(self, peers: Iterable[int]) -> None:
        """Give the links to these ranks back, where there are any; none may be open."""
        for peer in peers:
            if (link := self._links.pop(peer, None)) is not None:
                for number in link.numbers:
                    del self._by_qp[number]
                link.close()

    def __contains__(self, peer: int) -> bool:
        return peer in self._links

    @property
    def idle(self) -> bool:
        """Whether every write to a rank that can still be reached has been acknowledged."""
        return all(link.idle for peer, link in self._links.items() if peer not in self._lost)

    def take(self, completions: Iterable[WC]) -> bool:
        """Take in completions; whether there were any. Raises `PeerError`."""
        some = False
        for completion in completions:
            some = True
            peer = self._by_qp[completion.qp_num]
            try:
                self._links[peer].completed(completion)
            except LinkError as error:
                if peer not in self._gone:
                    raise PeerError(f"rank {peer} cannot be reached any more: {error}") from None
                self._lost.add(peer)  # it had all it needed, and has closed its end
        return some

    def ping(self, now_ns: int) -> None:
        """Ask every rank for a sign of life. Raises `PeerError` if one has given none for `SILENT_RTTS`.

        MRC retries for as long as its queue pair is told to, which may be for ever: only the time tells.
        """
        silent_ns = SILENT_RTTS * self.rtt_ns
        for peer, link in self._open.items():
            if link.pinged_ns is not None and now_ns - link.pinged_ns > silent_ns and peer not in self._gone:
                raise PeerError(f"rank {peer} has not answered for {silent_ns / 1e9:g} s")
            if peer not in self._gone:
                link.ping(now_ns)

    # --- messages ----------------------------------------------------------------------------------------------

    def send(self, peer: int, tag: Tag, total: int, fill: Fill, after: Arrival | None = None) -> Step:
        """Send a message of `total` bytes. When this ends, all of it is posted and its memory may change.

        A message that passes on what arrives with `after`, which has as many bytes, follows it chunk by chunk.
        """
        link = self._links[peer]
        offset = 0
        while True:
            length = min(PAYLOAD_BYTES, total - offset)
            while after is not None and not after.has(offset + length):
                self._check(after.peer, tag, after)
                yield
            self._check(peer, tag)
            while not link.room():
                yield
                self._check(peer, tag)
            if length:
                with link.payload()[:length] as place:
                    fill(offset, place)
            link.post(tag, total, length)
            self.sent_bytes += length
            offset += length
            if offset == total:
                return

    def expect(self, peer: int, tag: Tag, total: int, sink: Sink) -> Arrival:
        """Say where a message of `total` bytes goes; parts that came before are handed over at once. Raises `CallError`
        if its call has failed."""
        if tag.call in self.failed:
            raise CallError(self.failed[tag.call])
        arrival = Arrival(peer, tag, total, sink)
        for length, chunk in self._early.pop((peer, tag), ()):
            arrival.take(length, memoryview(chunk))
        if not arrival.done:
            self._expected[peer, tag] = arrival
        return arrival

    def awaited(self, call: Call) -> list[int]:
        """The ranks of which messages of a call are expected and not here."""
        return sorted({peer for peer, tag in self._expected if tag.call == call})

    def wait(self, arrival: Arrival) -> Step:
        """Until the message is there. Raises `CallError` if it does not come, or is another."""
        try:
            while not arrival.done:
                self._check(arrival.peer, arrival.tag, arrival)
                yield
            if arrival.failure:
                raise CallError(arrival.failure)
        finally:
            arrival.drop()

    def _check(self, peer: int, tag: Tag, arrival: Arrival | None = None) -> None:
        """Raises `CallError` if nothing comes of waiting for this rank."""
        why = self.failed.get(tag.call) if self.failed else ""
        why = why or (arrival.failure if arrival is not None else "")
        if not why and peer in self._gone:
            why = f"rank {peer} has left the job"
        if why:
            raise CallError(why)

    def abandon(self, call: Call, why: str) -> None:
        """The call has failed: its coroutine ends with the first reason, and what arrives for it is dropped."""
        self.failed.setdefault(call, why)
        for key in [key for key in self._expected if key[1].call == call]:
            self._expected.pop(key).drop()
        for key in [key for key in self._early if key[1].call == call]:
            del self._early[key]

    def tell_failure(self, peers: Iterable[int], call: Call, why: str, late: bool = False) -> Step:
        """Tell these ranks that a call has failed here, so that none waits for it in vain; `late`: by its timeout."""
        text = json.dumps([call, why[:_WHY_MAX], late]).encode()
        for peer in peers:
            link = self._open.get(peer)
            while link is not None and peer not in self._gone and not link.room():
                yield
            if link is not None and peer not in self._gone:
                with link.payload()[: len(text)] as place:
                    place[:] = text
                link.post(FAILURE, len(text), len(text))

    def _told(self, peer: int, text: bytes) -> None:
        (group, number), why, late = json.loads(text)
        ranks = self.awaited((group, number)) if late else []
        own = f"; this rank waits for rank {' and '.join(map(str, ranks))}" if ranks else ""
        self.abandon((group, number), f"rank {peer} says: {why}{own}")

    def _deliver(self, peer: int, tag: Tag, total: int, chunk: memoryview) -> None:
        if tag == GOODBYE:
            self._gone.add(peer)
            return
        if tag == FAILURE:
            self._told(peer, bytes(chunk))
            return
        arrival = self._expected.get((peer, tag))
        if arrival is not None:
            arrival.take(total, chunk)
            if arrival.done:
                del self._expected[peer, tag]
        elif tag.call not in self.failed:
            self._early.setdefault((peer, tag), deque()).append((total, bytearray(chunk)))

    def goodbye(self) -> Step:
        """Tell every rank that is still there that this one leaves, and wait until all have acknowledged it and left.

        `./lab launch` names the rank that ends first. So a rank that fails by itself does not wait for
        others to leave, and one that fails because of another rank ends later."""
        for peer, link in self._open.items():
            while peer not in self._lost and not link.room():
                yield
            if peer not in self._lost:
                link.post(GOODBYE, 0, 0)
        error, began_ns = getattr(sys, "last_value", None), self.context.now_ns()
        told = isinstance(error, JobFailedError)
        while not self.idle or ((told or error is None) and self._gone != set(self._open)):
            yield
        while told and self.context.now_ns() - began_ns < LINGER_RTTS * self.rtt_ns:
            yield
