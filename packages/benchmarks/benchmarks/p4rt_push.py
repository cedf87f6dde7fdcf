"""How fast P4Runtime takes entries: `python -m benchmarks.p4rt_push [--plan lab] [--entries 10000] [--format json]`.

Two measurements, each through real gRPC between two processes:

- one device: plain routes written in batches into one leaf, on the embedded switch and, where it is installed, on
  simple_switch_grpc in the same run;
- all devices of a plan: `controller push` of pipelines and entries with everything read back and compared, then a
  second push (which writes nothing) and a verify.

CPU times are of the switch process and of the controller; wall time on a busy machine says little.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.rig.processor import cpu_ns
from controller import (
    INSERT,
    Address,
    GrpcChannels,
    P4RuntimeClient,
    PipelineConfig,
    TableEntry,
    compiled_pipelines,
    encode,
    verify,
)
from controller.push import push
from p4c.entries import Lpm
from switch.p4rt import p4runtime_pb2 as p4rt
from topo import Plan, load_plan
from topo.graph import device_id, ports

ROUTES_PREFIX = 0xFD00 << 112


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def wait_for(port: int, timeout_s: float = 20.0) -> None:
    """Until something accepts connections there."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout_s).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.05)


@contextmanager
def embedded(plan: Plan, directory: Path) -> Iterator[tuple[int, dict[str, Address]]]:
    devices = [
        {"device_id": device_id(plan, s), "name": s.name, "ports": [{"port": r.port} for r in ports(plan, s)]}
        for s in plan.switches()
    ]
    config = directory / "switch.json"
    config.write_text(json.dumps({"grpc": "127.0.0.1:0", "control": "127.0.0.1:0", "devices": devices}))
    command = [sys.executable, "-m", "switch", "serve", "--config", str(config), "--exit-with-parent"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        words = dict(word.split("=", 1) for word in process.stdout.readline().split()[1:])
        try:
            yield process.pid, {s.name: Address(words["grpc"], device_id(plan, s)) for s in plan.switches()}
        finally:
            process.terminate()


@contextmanager
def bmv2(directory: Path) -> Iterator[tuple[int, Address]]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        grpc_port, thrift_port = one.getsockname()[1], two.getsockname()[1]
    command = ["simple_switch_grpc", "--no-p4", "--device-id", "1", "--thrift-port", str(thrift_port)]
    command += ["--notifications-addr", f"ipc://{directory}/notifications.ipc", "--log-level", "off"]
    command += ["--", "--grpc-server-addr", f"127.0.0.1:{grpc_port}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(grpc_port)
            yield process.pid, Address(f"127.0.0.1:{grpc_port}", 1)
        finally:
            process.kill()


def one_device(name: str, pid: int, address: Address, pipeline: PipelineConfig, count: int) -> dict[str, Any]:
    with GrpcChannels() as channels:
        client = P4RuntimeClient(channels, name, address)
        with client.as_primary():
            client.set_pipeline(pipeline.config_bytes)
            start = (time.monotonic(), time.process_time(), cpu_ns(pid) / 1e9)
            entities = (
                TableEntry(
                    "ipv6_route", (("dst_addr", Lpm(ROUTES_PREFIX | i << 80, 48)),), "set_next_hop", (1 + i % 8,)
                )
                for i in range(count)
            )
            items = [encode(pipeline.p4info, entity) for entity in entities]
            client.write([(INSERT, item.body) for item in items], lambda index: str(index))
            end = (time.monotonic(), time.process_time(), cpu_ns(pid) / 1e9)
            read_start = (time.monotonic(), cpu_ns(pid) / 1e9)
            everything = p4rt.Entity(table_entry=p4rt.TableEntry()).SerializeToString()
            bodies = set(client.read([everything]))
            read_end = (time.monotonic(), cpu_ns(pid) / 1e9)
            assert bodies == {item.body for item in items}, "what was read is not what was written"
    return {
        "switch": name,
        "entries": count,
        "write_entries_per_s": round(count / (end[0] - start[0])),
        "switch_cpu_us_per_entry": round((end[2] - start[2]) / count * 1e6, 1),
        "controller_cpu_us_per_entry": round((end[1] - start[1]) / count * 1e6, 1),
        "read_entries_per_s": round(count / (read_end[0] - read_start[0])),
    }


def all_devices(plan: Plan, pid: int, addresses: dict[str, Address]) -> dict[str, Any]:
    result: dict[str, Any] = {"plan": plan.name, "switches": plan.switch_count}
    pipelines = compiled_pipelines()
    for name, function in (("push", push), ("push again", push), ("verify", verify)):
        cpu = (time.process_time(), cpu_ns(pid) / 1e9)
        report = function(plan, addresses, pipelines=pipelines)
        assert report.ok, report.differences[:3]
        result[name] = {
            "wall_s": round(report.elapsed_ns / 1e9, 2),
            "switch_cpu_s": round(cpu_ns(pid) / 1e9 - cpu[1], 2),
            "controller_cpu_s": round(time.process_time() - cpu[0], 2),
            "written": report.written,
        }
        result["entries"] = report.entries
    result["entries_per_s"] = round(result["push"]["written"] / result["push"]["wall_s"])
    result["resident_mb"] = round(resident_mb(pid))
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", default="lab")
    parser.add_argument("--entries", type=int, default=10_000, help="into one device")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args()
    leaf = compiled_pipelines()["leaf"]
    results: dict[str, Any] = {"one device": []}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        plan = load_plan(options.plan)
        with embedded(plan, directory) as (pid, addresses):
            results["all devices"] = all_devices(plan, pid, addresses)
            first = next(iter(addresses.values()))
            results["one device"].append(one_device("embedded", pid, first, leaf, options.entries))
        if shutil.which("simple_switch_grpc"):
            with bmv2(directory) as (pid, address):
                results["one device"].append(one_device("bmv2", pid, address, leaf, options.entries))
    if options.format == "json":
        print(json.dumps(results, indent=1))
        return 0
    for row in results["one device"]:
        print("one device:", ", ".join(f"{key} {value}" for key, value in row.items()))
    print("all devices:", ", ".join(f"{key} {value}" for key, value in results["all devices"].items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
