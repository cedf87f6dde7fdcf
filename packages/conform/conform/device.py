"""The lab's own NIC as a device under test: the endpoint without I/O, behind a socket or interfaces, in real time.

    python -m conform.device --device FILE (--socket PATH | --interface IF …)

Requests come on standard input, answers go to standard output (docs/conformance.md).
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from common.seeds import Purpose, derive
from conform.nic.device_file import DeviceFile, load
from conform.packet_socket import PACKET_OUTGOING, packet_socket
from endpoint import QPInfo, profile
from endpoint.mrc import Endpoint

MEMORY_BYTES = 1 << 17
BASE_RTT_NS, JITTER_NS = 2_000_000, 4_000_000
BATCH = 64


def profile_of(about: DeviceFile, evs: Sequence[int]) -> profile.NicProfile:
    """The profile of the device that a file describes, with the tester as its only peer."""
    ports = [
        {
            "port": n + 1, "plane": n, "interface": f"port{n + 1}", "mac": about.device.macs[n],
            "gateway_mac": about.tester.macs[n], "address": about.device.port_addresses[n],
            "usid_address": about.device.usid_address, "rate_bps": 1_000_000_000, "delay_ns": 1000,
        }
        for n in range(about.ports)
    ]  # fmt: skip
    plain = about.encapsulation == "none"
    da = about.tester.address if plain else about.tester.usid_address
    paths = [{"ev": ev, "port": about.evs[ev], "plane": about.evs[ev] - 1, "via": f"s{ev}", "da": da} for ev in evs]
    return profile.parse(
        {
            "version": 1, "host": "device", "index": 1, "address": about.device.address, "usid_block": "fcbb:bbbb::/32",
            "mtu": about.pmtu + 1024, "pmtu": about.pmtu, "udp_port": about.udp_port, "base_rtt_ns": BASE_RTT_NS,
            "jitter_ns": JITTER_NS, "dscp": {**about.dscp, "roce": 26}, "encapsulation": about.encapsulation,
            "ports": ports, "self_probes": [], "trimming": about.trimming,
            "destinations": {"tester": {"index": 0, "address": about.tester.address, "paths": paths}},
        }
    )  # fmt: skip


class Device:
    """The NIC, its memory and its one queue pair. `settings` are the endpoint's."""

    def __init__(self, about: DeviceFile, **settings: Any) -> None:
        self.about = about
        timers = about.timers
        exponent = timers.timeout + max(0, (timers.unit_ns // 1024).bit_length() - 1)
        self.settings = {
            "sack_threshold_bytes": 1 << 20, "timeout": exponent, "retry_linear": timers.linear,
            "retry_exponential": timers.exponential, "mpr": about.mpr, "timestamps": False, **settings,
        }  # fmt: skip
        self.reset()

    def reset(self) -> None:
        self.nic = Endpoint(
            profile_of(self.about, list(self.about.evs)),
            rng=Random(derive(time.monotonic_ns(), Purpose.DEVICE)),
            now_ns=time.monotonic_ns(),
            **self.settings,
        )
        self.memory, self.source = bytearray(MEMORY_BYTES), bytearray(MEMORY_BYTES)
        self.region = self.nic.register_memory(self.memory)
        self.outgoing = self.nic.register_memory(self.source)
        self.cq = self.nic.create_cq(4096)
        self.qp: Any = None

    # --- requests -----------------------------------------------------------------------------------------------

    def answer(self, line: str) -> str:
        """The answer to a request."""
        word, _, rest = line.strip().partition(" ")
        given = dict(one.partition("=")[::2] for one in rest.split())
        handler = getattr(self, f"do_{word.replace('-', '_')}", None)
        if handler is None:
            return "unsupported"
        try:
            return f"ok {handler(given) or ''}".rstrip()
        except Exception as error:  # a tester's mistake must not end the device
            return f"no {error}".replace("\n", " ")

    def do_hello(self, given: dict[str, str]) -> str:
        return "name=mrclab version=1"

    def do_reset(self, given: dict[str, str]) -> None:
        self.reset()

    def do_open(self, given: dict[str, str]) -> str:
        self.qp = self.nic.create_qp(
            self.cq, psn=int(given["psn"]), mpr=int(given["mpr"]), max_write_imm=int(given["wimm"])
        )
        return f"qpn={self.qp.qpn} va={self.region.va} rkey={self.region.rkey} bytes={len(self.memory)}"

    def do_connect(self, given: dict[str, str]) -> None:
        evs = {int(ev) for ev in given["evs"].split(",")}
        now_ns = time.monotonic_ns()
        if denied := {("tester", ev) for ev in self.about.evs if ev not in evs}:
            self.nic.set_denied(denied, now_ns)
        peer = QPInfo("tester", int(given["qpn"]), int(given["psn"]), int(given["mpr"]), int(given["wimm"]))
        self.qp.connect(peer, now_ns)

    def do_receive(self, given: dict[str, str]) -> None:
        for number in range(int(given["count"])):
            self.qp.post_recv(number)

    def do_fill(self, given: dict[str, str]) -> None:
        at, data = int(given["offset"]), bytes.fromhex(given["hex"])
        self.source[at : at + len(data)] = data

    def do_read(self, given: dict[str, str]) -> str:
        at = int(given["offset"])
        return f"hex={bytes(self.memory[at : at + int(given['bytes'])]).hex()}"

    def do_write(self, given: dict[str, str]) -> None:
        told = {key: int(value, 0) for key, value in given.items()}
        place = (told[key] for key in ("offset", "bytes", "va", "rkey"))
        self.qp.post_write(told["id"], self.outgoing, *place, told.get("imm"))

    def do_completions(self, given: dict[str, str]) -> str:
        done = []
        for one in self.cq.poll(1000):
            if one.immediate is not None:
                done.append(f"imm:{one.immediate}:{one.byte_len}")
            elif one.wr_id < 1 << 32:
                done.append(f"{one.wr_id}:{one.status.value}")
        return "done=" + ",".join(done)

    def do_state(self, given: dict[str, str]) -> str:
        return f"state={self.qp.state.value if self.qp is not None else 'none'}"

    def do_port(self, given: dict[str, str]) -> None:
        self.nic.port_changed(int(given["number"]), given["up"] == "1", time.monotonic_ns())


class SocketWire:
    """A Unix socket of packets: one byte with the port, and a frame."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(str(path))
        self.files = [self._socket]

    def receive(self, one: socket.socket) -> tuple[int, bytes]:
        data = one.recv(65536)
        if not data:
            raise EOFError
        return data[0], data[1:]

    def send(self, port: int, data: bytes) -> None:
        self._socket.send(bytes([port]) + data)


class InterfaceWire:
    """One packet socket per port."""

    def __init__(self, names: Sequence[str]) -> None:
        self.files = [packet_socket(name) for name in names]

    def receive(self, one: socket.socket) -> tuple[int, bytes] | None:
        data, address = one.recvfrom(65536)
        return None if address[2] == PACKET_OUTGOING else (self.files.index(one) + 1, data)

    def send(self, port: int, data: bytes) -> None:
        self.files[port - 1].send(data)


def serve(device: Device, wire: SocketWire | InterfaceWire) -> None:
    """Until standard input ends."""
    held = b""
    while True:
        due_ns = device.nic.next_timer_ns()
        wait_s = 1.0 if due_ns is None else min(1.0, max(0.0, (due_ns - time.monotonic_ns()) / 1e9))
        waiting: list[int | socket.socket] = [0, *wire.files]
        ready = select.select(waiting, [], [], wait_s)[0]
        for one in wire.files:
            if one in ready and (found := wire.receive(one)) is not None:
                device.nic.receive(found[0], [found[1]], time.monotonic_ns())
        send_all(device, wire)
        if 0 in ready:
            data = os.read(0, 1 << 16)
            if not data:
                return
            *lines, held = (held + data).split(b"\n")
            for line in lines:
                sys.stdout.write(device.answer(line.decode()) + "\n")
                sys.stdout.flush()
        now_ns = time.monotonic_ns()
        due_ns = device.nic.next_timer_ns()
        if due_ns is not None and due_ns <= now_ns:
            device.nic.handle_timer(now_ns)
        send_all(device, wire)


def send_all(device: Device, wire: SocketWire | InterfaceWire) -> None:
    """Send what the NIC has now."""
    while batch := device.nic.packets_to_send(time.monotonic_ns(), BATCH):
        for port, data in batch:
            wire.send(port, data)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The lab's NIC as a device under test.")
    parser.add_argument("--device", type=Path, required=True, metavar="FILE")
    parser.add_argument("--socket", type=Path, metavar="PATH")
    parser.add_argument("--interface", action="append", default=[], metavar="IF")
    given = parser.parse_args(words)
    wire: SocketWire | InterfaceWire = SocketWire(given.socket) if given.socket else InterfaceWire(given.interface)
    try:
        serve(Device(load(given.device)), wire)
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        return


if __name__ == "__main__":
    main()
