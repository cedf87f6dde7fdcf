"""One queue pair between two namespaces over four veth ports, beside a bare sender and receiver on the same rings.

    python -m benchmarks.endpoint [--seconds 5] [--transport mrc]

Needs root. Goodput counts payload that the receiver has verified; packets are data packets of 4 KiB. Processor time a
packet is what each process used, so other load on the machine hardly shows in it, while it does in the rates.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.rig.agents import AgentProcess, agents
from benchmarks.rig.namespaces import back_to_back
from benchmarks.rig.processor import cpu_ns
from common.linux.bpf import RETURN, Instruction, Program
from endpoint import ACCEPT_WHOLE, WorkloadGroup
from endpoint.packet_sockets import RING_BYTES, PacketSocket
from topo.emulation.namespace import enter, path_of

PORTS = 4
PAYLOAD_BYTES = 4096
FRAME_BYTES = PAYLOAD_BYTES + 138
MTU = 4338
# A profile fit for two processes on two cores: the window covers a few milliseconds of being descheduled.
PROFILE = {"rate_bps": 1_000_000_000, "base_rtt_ns": 2_000_000, "evs_per_plane": 32}
MESSAGE_BYTES, DEPTH = 1 << 20, 16
PASS_ALL: Program = (Instruction(RETURN, 0, 0, ACCEPT_WHOLE),)


def bare(seconds: float) -> dict[str, float]:
    """Frames of the same size in turn over the ports, as fast as `send` goes; nothing is looked at."""
    with back_to_back(PORTS, MTU) as names:
        ready, go = os.pipe()
        result_read, result_write = os.pipe()
        receiver = os.fork()
        if receiver == 0:
            enter(path_of(names[1]))
            os.write(result_write, json.dumps(_bare_receive(go)).encode())
            os._exit(0)
        os.read(ready, 1)
        sender = os.fork()
        if sender == 0:
            enter(path_of(names[0]))
            sockets = [PacketSocket(f"h0-p{plane}", PASS_ALL, MTU, 1) for plane in range(PORTS)]
            frame = bytes(12) + b"\x86\xdd" + bytes(FRAME_BYTES - 14)
            count, began_ns, end_ns = 0, time.process_time_ns(), time.monotonic_ns() + int(seconds * 1e9)
            while time.monotonic_ns() < end_ns:
                for packet_socket in sockets:
                    packet_socket.ring.send(frame)
                count += PORTS
            os.write(result_write, b"%d " % ((time.process_time_ns() - began_ns) // count))
            os._exit(0)
        os.waitpid(sender, 0)
        os.waitpid(receiver, 0)
        sender_ns, text = os.read(result_read, 4096).decode().split(" ", 1)
        return {**json.loads(text), "sender_us": int(sender_ns) / 1e3}


def _bare_receive(go: int) -> dict[str, float]:
    sockets = [PacketSocket(f"h1-p{plane}", PASS_ALL, MTU, RING_BYTES) for plane in range(PORTS)]
    os.write(go, b"x")
    select.select(sockets, [], [])
    count, first_ns, began_ns = 0, time.monotonic_ns(), time.process_time_ns()
    last_ns = first_ns
    while select.select(sockets, [], [], 0.3)[0]:
        for packet_socket in sockets:
            frames = packet_socket.ring.receive(64)
            count += len(frames)
            frames.clear()
            packet_socket.ring.release()
        last_ns = time.monotonic_ns()
    spent_ns = time.process_time_ns() - began_ns
    rate = count / max(last_ns - first_ns, 1) * 1e9
    return {"packets_per_s": rate, "gbps": rate * PAYLOAD_BYTES * 8 / 1e9, "receiver_us": spent_ns / count / 1e3}


def endpoint(transport: str, seconds: float) -> dict[str, float]:
    """`write_bw` on one QP between two agents."""
    with (
        tempfile.TemporaryDirectory() as directory,
        agents(Path(directory), "--transport", transport, **PROFILE) as (pair, _names),
    ):
        result, spent_ns = write_bw(pair, seconds)
        counters = [agent.client.call("counters") for agent in pair]
        if result["bytes_wrong"] or not result["bytes_verified"]:
            raise SystemExit(f"{result['bytes_wrong']} wrong bytes, {result['bytes_verified']} right ones")
        packets = result["bytes_verified"] / PAYLOAD_BYTES
        return {
            "packets_per_s": packets / result["duration_ns"] * 1e9,
            "gbps": result["bytes_verified"] * 8 / result["duration_ns"],
            "sender_us": spent_ns[0] / packets / 1e3,
            "receiver_us": spent_ns[1] / packets / 1e3,
            "packets": packets,
            "retransmits": counters[0]["qps"][0].get("retransmits", 0),
            "drop_socket": sum(port["drop_socket"] for agent in counters for port in agent["ports"]),
        }


def write_bw(pair: Sequence[AgentProcess], seconds: float) -> tuple[dict[str, Any], list[int]]:
    """The receiver's result, and the processor time of both agents."""
    clients = {f"h{host}": agent.client for host, agent in enumerate(pair)}
    options = {"size": MESSAGE_BYTES, "depth": DEPTH, "duration_ns": int(seconds * 1e9)}
    run = WorkloadGroup(clients, name="bw", kind="write_bw", ranks=["h0", "h1"], options=options)
    before = [cpu_ns(agent.process.pid) for agent in pair]
    run.start()
    result: dict[str, Any] = run.wait(seconds + 30)["h1"]["result"]
    return result, [cpu_ns(agent.process.pid) - start_ns for agent, start_ns in zip(pair, before, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--transport", default="mrc", choices=("mrc", "roce"))
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("benchmarks/endpoint.py needs root: it makes network namespaces", file=sys.stderr)
        return 2
    rows = {"bare": bare(options.seconds), options.transport: endpoint(options.transport, options.seconds)}
    print(f"{'':8} {'Gb/s':>8} {'packets/s':>10} {'CPU sender':>12} {'CPU receiver':>13}")
    for name, row in rows.items():
        rates = f"{row['gbps']:8.3f} {row['packets_per_s']:10,.0f}"
        print(f"{name:8} {rates} {row['sender_us']:9.2f} µs {row['receiver_us']:10.2f} µs")
    row = rows[options.transport]
    print(f"of bare: {row['gbps'] / rows['bare']['gbps']:.0%}")
    print(f"{row['packets']:,.0f} packets verified, {row['retransmits']} sent again, {row['drop_socket']} ring drops")
    return 0


if __name__ == "__main__":
    sys.exit(main())
