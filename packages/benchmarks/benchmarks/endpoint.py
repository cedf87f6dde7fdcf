"""One queue pair between two namespaces over four veth ports, beside a bare sender and receiver on the same rings.

    python -m benchmarks.endpoint [--seconds 5] [--transport mrc] [--stages]

Needs root. Goodput counts payload that the receiver has verified; packets are data packets of 4 KiB. Processor time a
packet is what each process used, so other load on the machine hardly shows in it, while it does in the rates. With
`--stages` a second run tells where in the two processes that time goes.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import select
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.rig.agents import AgentProcess, agents
from benchmarks.rig.namespaces import back_to_back
from benchmarks.rig.processor import cpu_ns
from common.linux.bpf import RETURN, Instruction, Program
from endpoint import ACCEPT_WHOLE, WorkloadGroup
from endpoint.packet_sockets import RING_BYTES, FrameRing, PacketSocket
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
                for one in sockets:
                    one.ring.send(frame)
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
        for one in sockets:
            frames = one.ring.receive(64)
            count += len(frames)
            frames.clear()
            one.ring.release()
        last_ns = time.monotonic_ns()
    spent_ns = time.process_time_ns() - began_ns
    rate = count / max(last_ns - first_ns, 1) * 1e9
    return {"packets_per_s": rate, "gbps": rate * PAYLOAD_BYTES * 8 / 1e9, "receiver_us": spent_ns / count / 1e3}


def endpoint(transport: str, seconds: float, program: tuple[str, ...] = ("-m", "endpoint")) -> dict[str, float]:
    """`write_bw` on one QP between two agents."""
    with (
        tempfile.TemporaryDirectory() as directory,
        agents(Path(directory), "--transport", transport, program=program, **PROFILE) as (pair, _names),
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
            "drop_socket": sum(port["drop_socket"] for one in counters for port in one["ports"]),
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


# --- where the time goes ---------------------------------------------------------------------------------------


class Stages:
    """Wraps methods so that each notes the processor time spent in it, less that in wrapped methods it calls.

    Reading the clock costs about 0.2 µs, mostly seen in "socket send", which is timed once a frame.
    """

    def __init__(self) -> None:
        self.spent_ns: dict[str, int] = {}
        self._inner_ns = 0

    def wrap(self, owner: Any, name: str, stage: str) -> None:
        method, spent, clock = getattr(owner, name), self.spent_ns, time.thread_time_ns
        spent.setdefault(stage, 0)

        def timed(*arguments: Any, **keywords: Any) -> Any:
            outer_ns, self._inner_ns = self._inner_ns, 0
            start_ns = clock()
            try:
                return method(*arguments, **keywords)
            finally:
                elapsed_ns = clock() - start_ns
                spent[stage] += elapsed_ns - self._inner_ns
                self._inner_ns = outer_ns + elapsed_ns

        setattr(owner, name, timed)


def staged_agent(arguments: list[str]) -> int:
    """Be an agent whose stages are timed; the figures are written beside its journal when it ends."""
    from endpoint import HostNic, main
    from endpoint.mrc import Endpoint
    from endpoint.packet_sockets import Loop
    from endpoint.workloads import StreamWorkload

    stages = Stages()
    for name in ("receive", "release"):
        stages.wrap(FrameRing, name, "ring")
    stages.wrap(FrameRing, "send", "socket send")
    stages.wrap(Endpoint, "receive", "transport: receive")
    stages.wrap(Endpoint, "packets_to_send", "transport: packets to send")
    stages.wrap(Endpoint, "handle_timer", "transport: timers")
    stages.wrap(Endpoint, "next_timer_ns", "transport: timers")
    stages.wrap(StreamWorkload, "received", "workload: verify")
    stages.wrap(HostNic, "_step", "workload: the rest")
    stages.wrap(HostNic, "counters", "samples")
    stages.wrap(Loop, "_wait", "waiting")
    stages.wrap(Loop, "run", "driver loop")
    journal = Path(arguments[arguments.index("--journal") + 1])
    atexit.register(lambda: journal.with_suffix(".stages").write_text(json.dumps(stages.spent_ns)))
    return main(arguments)


def stages(transport: str, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shares: list[dict[str, int]] = []
        with agents(Path(directory), "--transport", transport, program=(str(Path(__file__)), "staged"), **PROFILE) as (
            pair,
            _names,
        ):
            packets = write_bw(pair, seconds)[0]["bytes_verified"] / PAYLOAD_BYTES
            for agent in pair:
                agent.close()
                shares.append(json.loads(agent.journal.with_suffix(".stages").read_text()))
    print(f"\n{'stage, µs a data packet':28} {'sender':>8} {'receiver':>8}")
    for stage in shares[0]:
        figures = [share[stage] / packets / 1e3 for share in shares]
        print(f"{stage:28} {figures[0]:8.2f} {figures[1]:8.2f}")


def primitives() -> None:
    """The least time of any implementation in Python: the library calls on one packet's bytes."""
    from zlib import crc32

    data, memory, view = os.urandom(FRAME_BYTES), bytearray(1 << 20), memoryview(bytearray(FRAME_BYTES))
    payload = view[-PAYLOAD_BYTES:]

    def place() -> None:
        memory[:PAYLOAD_BYTES] = payload

    for name, call in {
        "invariant CRC (zlib.crc32)": lambda: crc32(data),
        "copy into memory": place,
        "make the frame (join)": lambda: b"".join((data[:138], payload)),
        "verify (memcmp in place)": lambda: memory.startswith(payload),
    }.items():
        print(f"{name:28} {_time_us(call):8.2f}")


def _time_us(call: Callable[[], Any], count: int = 20_000) -> float:
    start_ns = time.process_time_ns()
    for _ in range(count):
        call()
    return (time.process_time_ns() - start_ns) / count / 1e3


def main() -> int:
    if sys.argv[1:2] == ["staged"]:
        return staged_agent(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--transport", default="mrc", choices=("mrc", "roce"))
    parser.add_argument("--stages", action="store_true", help="also say where the time goes")
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
    if options.stages:
        stages(options.transport, options.seconds)
        primitives()
    return 0


if __name__ == "__main__":
    sys.exit(main())
