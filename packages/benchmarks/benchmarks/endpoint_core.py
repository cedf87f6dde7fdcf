"""The MRC core alone: one QP between two endpoints in memory, without sockets or clocks, in processor time a packet.

    python -m benchmarks.endpoint_core [--messages 4000] [--size 65536]

Each row is one call into the core. Needs no root.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from random import Random
from time import process_time_ns
from typing import Any

from benchmarks.rig.profiles import profile as profile_data
from endpoint import profile as profiles
from endpoint.mrc import Endpoint

STEP_NS = 100_000
BATCH = 32
SLOTS = 16


def endpoint(number: int) -> Endpoint:
    data = profile_data(number, rate_bps=0, base_rtt_ns=1_000_000, jitter_ns=0)
    return Endpoint(profiles.parse(data), rng=Random(number))


class Stopwatch:
    """Processor time by stage."""

    def __init__(self) -> None:
        self.spent_ns: dict[str, int] = {}

    def run(self, stage: str, call: Callable[..., Any], *arguments: Any) -> Any:
        start_ns = process_time_ns()
        result = call(*arguments)
        self.spent_ns[stage] = self.spent_ns.get(stage, 0) + process_time_ns() - start_ns
        return result


def deliver(target: Endpoint, frames: list[tuple[int, bytes]], now_ns: int) -> None:
    """As a driver does: the frames of a port in one call, as views; then the timers that are due."""
    by_port: dict[int, list[memoryview]] = {}
    for port, frame in frames:
        by_port.setdefault(port, []).append(memoryview(frame))
    for port, views in by_port.items():
        target.receive(port, views, now_ns)
    due_ns = target.next_timer_ns()
    if due_ns is not None and due_ns <= now_ns:
        target.handle_timer(now_ns)


def transfer(messages: int, size: int) -> tuple[dict[str, float], int]:
    """Microseconds of processor time per data packet by stage, and the number of data packets."""
    a, b = endpoint(0), endpoint(1)
    source, sink = bytearray(Random(1).randbytes(SLOTS * size)), bytearray(SLOTS * size)
    region, target = a.register_memory(source), b.register_memory(sink)
    cq = a.create_cq(messages + 1)
    qp, peer = a.create_qp(cq), b.create_qp(b.create_cq(1))
    qp.connect(peer.info(), 0)
    peer.connect(qp.info(), 0)
    watch, now_ns, posted, done = Stopwatch(), 0, 0, 0
    while done < messages:
        while posted < messages and posted - done < SLOTS:
            at = posted % SLOTS * size
            qp.post_write(posted, region, at, size, target.va + at, target.rkey)
            posted += 1
        now_ns += STEP_NS
        out = watch.run("requester: packets_to_send", a.packets_to_send, now_ns, BATCH)
        watch.run("responder: receive writes, make SACKs", deliver, b, out, now_ns)
        back = watch.run("responder: packets_to_send", b.packets_to_send, now_ns, BATCH)
        watch.run("requester: receive SACKs", deliver, a, back, now_ns)
        done += len(cq.poll(SLOTS))
    assert sink == source
    packets = qp.requester.data_packets
    return {stage: spent / packets / 1000 for stage, spent in watch.spent_ns.items()}, packets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=4000)
    parser.add_argument("--size", type=int, default=65536)
    options = parser.parse_args()
    stages, packets = transfer(options.messages, options.size)
    print(f"{packets:,} data packets of 4 KiB; µs of processor time a data packet")
    for side in ("requester", "responder"):
        rows = {name: spent for name, spent in stages.items() if name.startswith(side)}
        for name, spent in rows.items():
            print(f"  {name:<40}{spent:6.2f}")
        print(f"  {side + ', in all':<40}{sum(rows.values()):6.2f}")


if __name__ == "__main__":
    main()
