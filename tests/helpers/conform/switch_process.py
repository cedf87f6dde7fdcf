"""A switch of the lab's own as a process behind interfaces: an engine, its P4 program, the tables of the bench's node.

`python -m tests.helpers.conform.switch_process --engine reference IF IF IF IF` runs until its input ends. A line
`restart` there is a power cycle, after which the switch loads what it has stored; `forget` is one of a switch that
stores nothing; `unknown` prints how many packets with an unknown uSID were dropped. Each is answered by a line.
"""

from __future__ import annotations

import argparse
import contextlib
import select
import socket
import sys
import time
from pathlib import Path
from typing import Any

from conform.switch.bench import NODE, fabric
from controller import DirectControl, compiled_pipelines
from controller.tables import tables
from switch import PortConfig, QueueConfig
from switch.native import NativeEngine
from switch.reference import ReferenceEngine
from topo.graph import port_queues, ports

UNKNOWN = "SwitchIngress.route.unknown_usid_drops"
CELLS = 8
"""Of a counter for a port: one per traffic class."""
BATCH = 32
_ETH_P_ALL, _PACKET_OUTGOING, _SO_RCVBUFFORCE = 3, 4, 33


class Served:
    """One engine with a socket for each port."""

    def __init__(self, kind: str, programs: Path | None, rate_bps: int, interfaces: list[str]) -> None:
        self.plan = fabric(rate_bps)
        self.node = self.plan.switch_node(NODE)
        self.engine: Any = ReferenceEngine(seed=1) if kind == "reference" else NativeEngine(seed=1)
        self.pipeline = compiled_pipelines(programs)[self.node.program]
        queues = {queue.priority: QueueConfig(queue.depth_packets) for queue in port_queues(self.plan)}
        config = PortConfig(rate_bps=rate_bps, queues=tuple(queues.get(number, QueueConfig()) for number in range(8)))
        self.sockets: dict[socket.socket, int] = {}
        for ref, name in zip(ports(self.plan, self.node), interfaces, strict=True):
            self.engine.configure_port(ref.port, config, time.monotonic_ns())
            one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.htons(_ETH_P_ALL))
            one.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 25)
            one.bind((name, _ETH_P_ALL))
            one.setblocking(False)
            self.sockets[one] = ref.port
        self.start()

    def start(self) -> None:
        """Load the program and the tables, as after power comes back."""
        self.engine.reset()
        DirectControl(self.engine, self.pipeline).install(tables(self.plan, self.node))

    def unknown(self) -> int:
        cells = [port * CELLS + cell for port in self.sockets.values() for cell in range(CELLS)]
        return sum(self.engine.read_counter(UNKNOWN, cell).packets for cell in cells)

    def turn(self) -> bool:
        """Move what is due; whether the input still goes on."""
        due_ns = self.engine.next_event_ns()
        wait_s = None if due_ns is None else max(0.0, (due_ns - time.monotonic_ns()) / 1e9)
        ready = select.select([sys.stdin, *self.sockets], [], [], wait_s)[0]
        for one in self.sockets:
            if one in ready:
                self._read(one)
        self._send()
        return sys.stdin not in ready or self._obey(sys.stdin.readline().strip())

    def _read(self, one: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(BATCH):
                frame, address = one.recvfrom(1 << 14)
                if address[2] != _PACKET_OUTGOING:
                    self.engine.receive(self.sockets[one], frame, time.monotonic_ns())

    def _send(self) -> None:
        ports_of = {port: one for one, port in self.sockets.items()}
        for sent in self.engine.advance(time.monotonic_ns()):
            if sent.port in ports_of:
                ports_of[sent.port].send(sent.frame)

    def _obey(self, line: str) -> bool:
        if line == "restart":
            self.start()
        if line == "forget":
            self.engine.reset()
        print(self.unknown() if line == "unknown" else "done", flush=True)
        return bool(line)


def main() -> None:
    parser = argparse.ArgumentParser(description="A switch of the lab's own behind interfaces.")
    parser.add_argument("--engine", choices=("reference", "native"), default="native")
    parser.add_argument("--programs", type=Path, help="the folder of leaf.p4 and spine.p4 (by default p4/)")
    parser.add_argument("--rate", type=int, default=0, help="bit/s of each port; 0: as fast as it goes")
    parser.add_argument("interfaces", nargs="+", help="port 1 first")
    options = parser.parse_args()
    served = Served(options.engine, options.programs, options.rate, options.interfaces)
    print("ready", flush=True)
    while served.turn():
        pass


if __name__ == "__main__":
    main()
