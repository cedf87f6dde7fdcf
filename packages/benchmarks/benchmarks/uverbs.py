"""The cost of the uverbs socket beside rings in shared memory: `python -m benchmarks.uverbs`. Neither root nor a lab.

A program posts n work requests and waits for their n completions; an agent of nothing else answers. Rows are packed
and unpacked alike; between the two lies a SOCK_SEQPACKET socket, as for uverbs, or a ring in shared memory each way
with an eventfd as doorbell. Processor time of both processes together, and the time until the completions are there.
"""

from __future__ import annotations

import argparse
import mmap
import os
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from common import uverbs

BATCHES = (1, 16, 256)
_WORD = struct.Struct("=Q")
_RING_BYTES = 1 << 16


class Socket:
    """As uverbs does it."""

    def __init__(self) -> None:
        self.ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def send(self, end: int, message: bytes) -> None:
        self.ends[end].send(message)

    def receive(self, end: int) -> bytes:
        select.select([self.ends[end]], [], [])
        return self.ends[end].recv(uverbs.MESSAGE_BYTES_MAX)


class Rings:
    """A ring each way: the writer's count of bytes, the reader's, then messages behind their lengths."""

    def __init__(self) -> None:
        self.rings = [mmap.mmap(-1, _RING_BYTES + 16) for _ in range(2)]
        self.bells = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2)]

    def send(self, end: int, message: bytes) -> None:
        ring = self.rings[end]
        (written,) = _WORD.unpack_from(ring, 0)
        at = written % _RING_BYTES
        if at + 8 + len(message) > _RING_BYTES:  # the rest of the ring stays empty
            _WORD.pack_into(ring, 16 + at, 0)
            written += _RING_BYTES - at
            at = 0
        _WORD.pack_into(ring, 16 + at, len(message))
        ring[24 + at : 24 + at + len(message)] = message
        _WORD.pack_into(ring, 0, written + 8 + len(message))
        os.eventfd_write(self.bells[end], 1)

    def receive(self, end: int) -> bytes:
        ring, bell = self.rings[1 - end], self.bells[1 - end]
        select.select([bell], [], [])
        os.eventfd_read(bell)
        (read,) = _WORD.unpack_from(ring, 8)
        at = read % _RING_BYTES
        (size,) = _WORD.unpack_from(ring, 16 + at)
        if size == 0:
            read += _RING_BYTES - at
            at = 0
            (size,) = _WORD.unpack_from(ring, 16)
        message = ring[24 + at : 24 + at + size]
        _WORD.pack_into(ring, 8, read + 8 + size)
        return message


def answer(channel: Any) -> None:
    """Complete all that is posted, until a message that is no work request."""
    while (message := channel.receive(1))[0] == uverbs.POST:
        rows = [
            uverbs.CompletionRow(request.wr_id, request.qpn, 1, request.length, 0, 0, uverbs.WC_WRITE)
            for request in uverbs.unpack_requests(message)[1]
        ]
        channel.send(1, uverbs.pack_completions(rows))


def measure(make: Callable[[], Any], batch: int, rounds: int) -> tuple[float, float]:
    """Microseconds of processor time a work request, and of waiting a batch."""
    channel = make()
    child = os.fork()
    if child == 0:
        answer(channel)
        os._exit(0)
    requests = [uverbs.Request(number, 0, 0, 17, 4096, 1, 2, 0, uverbs.WRITE) for number in range(batch)]
    before_s, started_s = time.process_time(), time.perf_counter()
    for _ in range(rounds):
        channel.send(0, uverbs.pack_requests(requests))
        found = list(uverbs.unpack_completions(channel.receive(0)))
        assert len(found) == batch
    waited_s = time.perf_counter() - started_s
    spent_s = time.process_time() - before_s
    channel.send(0, b"\0")
    _, _, usage = os.wait4(child, 0)
    spent_s += usage.ru_utime + usage.ru_stime
    return spent_s / rounds / batch * 1e6, waited_s / rounds * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=40_000, help="work requests of each measurement")
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each kind; the best counts")
    options = parser.parse_args()
    print(f"{'requests a batch':>16}  {'':8}  {'CPU µs/request':>14}  {'µs until complete':>17}")
    for batch in BATCHES:
        rounds = max(1, options.requests // batch // (8 if batch == 1 else 1))
        for name, make in (("socket", Socket), ("rings", Rings)):
            runs = [measure(make, batch, rounds) for _ in range(options.repeat)]
            cpu_us, wait_us = min(run[0] for run in runs), min(run[1] for run in runs)
            print(f"{batch:>16}  {name:8}  {cpu_us:>14.2f}  {wait_us:>17.1f}")


if __name__ == "__main__":
    main()
