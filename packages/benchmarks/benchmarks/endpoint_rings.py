"""The cost of a packet on a packet socket: receive ring against recv, over veth, without any protocol.

    python -m benchmarks.endpoint_rings [--frames 200000] [--bytes 4234]

Each line is one pair of processes pinned to nothing; figures are CPU time per frame, so that other load matters little.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import time
from collections.abc import Callable
from typing import TextIO

from benchmarks.rig.namespaces import back_to_back
from common.linux.bpf import RETURN, Instruction, Program
from endpoint import ACCEPT_WHOLE
from endpoint.packet_sockets import ETH_P_ALL, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE, SOL_PACKET, PacketSocket
from topo.emulation.namespace import enter, path_of

PASS_ALL: Program = (Instruction(RETURN, 0, 0, ACCEPT_WHOLE),)
PACKET_QDISC_BYPASS = 20
IDLE_SECONDS = 0.5


def receive_by_ring(report: TextIO) -> None:
    ring = PacketSocket("h1-p0", PASS_ALL, 9000, 64 << 20)
    print("ready", file=report, flush=True)

    def take() -> int:
        count = 0
        while frames := ring.ring.receive(64):
            count += len(frames)
            frames.clear()
            ring.ring.release()
        return count

    print(f"receive ring: {_measure(ring.fileno(), take)}, {ring.drops()} dropped", file=report, flush=True)


def receive_by_recv(report: TextIO) -> None:
    plain = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    plain.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    plain.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    plain.bind(("h1-p0", ETH_P_ALL))
    print("ready", file=report, flush=True)

    def take() -> int:
        count = 0
        try:
            while plain.recv(9200, socket.MSG_DONTWAIT):
                count += 1
        except BlockingIOError:
            pass
        return count

    print(f"recv: {_measure(plain.fileno(), take)}", file=report, flush=True)


def _measure(descriptor: int, take: Callable[[], int]) -> str:
    select.select([descriptor], [], [])
    started_ns, count, busy_ns = time.monotonic_ns(), 0, time.monotonic_ns()
    cpu_ns = time.process_time_ns()
    while select.select([descriptor], [], [], IDLE_SECONDS)[0]:
        count += take()
        busy_ns = time.monotonic_ns()
    cpu_ns = time.process_time_ns() - cpu_ns
    seconds = (busy_ns - started_ns) / 1e9
    return f"{count} frames, {cpu_ns / max(count, 1) / 1e3:.2f} µs CPU each, {count / seconds:,.0f}/s"


def transmit(frames: int, size: int, bypass: bool) -> str:
    plain = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    plain.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, int(bypass))
    plain.bind(("h0-p0", 0))
    frame = bytes.fromhex("0200000001000200000000008 6dd".replace(" ", "")) + bytes(size - 14)
    cpu_ns = time.process_time_ns()
    for _ in range(frames):
        plain.send(frame)
    return (
        f"send{' past the qdisc' if bypass else ''}: {(time.process_time_ns() - cpu_ns) / frames / 1e3:.2f} µs CPU each"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--bytes", type=int, default=4234)
    options = parser.parse_args()
    with back_to_back(planes=1, mtu=9000) as names:
        for receive in (receive_by_ring, receive_by_recv):
            for bypass in (False, True):
                read, write = os.pipe()
                child = os.fork()
                if child == 0:
                    enter(path_of(names[1]))
                    receive(os.fdopen(write, "w"))
                    os._exit(0)
                os.close(write)
                with os.fdopen(read) as lines:
                    assert lines.readline() == "ready\n"
                    sender = os.fork()
                    if sender == 0:
                        enter(path_of(names[0]))
                        print("   ", transmit(options.frames, options.bytes, bypass), flush=True)
                        os._exit(0)
                    os.waitpid(sender, 0)
                    print("   ", lines.read().strip(), flush=True)
                os.waitpid(child, 0)


if __name__ == "__main__":
    main()
