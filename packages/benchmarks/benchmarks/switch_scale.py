"""Three hundred switches with eight ports each in one process: time until loaded and their tables written, and memory.

    python -m benchmarks.switch_scale [--switches 300] [--ports 8] [--routes 100]

Every port is one end of a veth pair in a network namespace of this benchmark's. Each switch runs leaf.p4 with its own
uSID, a route and next hop for each port and `--routes` more routes. Needs root and a C compiler.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.rig.namespaces import namespaces
from benchmarks.switch_leaf import DST_MAC, SRC_MAC, address, compile_leaf
from p4c.entries import ActionCall, Entry, Exact, Lpm
from p4c.model import load
from switch import DeviceConfig, EngineControl, PortConfig, PortSpec
from switch.native import NativeDataPlane

SECONDS_MAX, MEGABYTES_MAX = 20.0, 400


def batch(namespace: str, lines: list[str]) -> None:
    subprocess.run(["ip", "-n", namespace, "-batch", "-"], input="\n".join(lines), text=True, check=True, timeout=300)


def write_tables(engine: EngineControl, number: int, ports: int, routes: int) -> int:
    """Returns how many entries."""
    route, next_hop = "SwitchIngress.route.ipv6_route", "SwitchIngress.route.next_hop"
    set_next_hop, adjacency = "SwitchIngress.route.set_next_hop", "SwitchIngress.route.set_adjacency"
    own = Entry((Lpm(address(0x1000 + number), 48),), ActionCall("SwitchIngress.segments.end_un"))
    engine.insert_entry("SwitchIngress.segments.my_sid", own)
    for port in range(1, ports + 1):
        engine.insert_entry(next_hop, Entry((Exact(port),), ActionCall(adjacency, (port, SRC_MAC, DST_MAC))))
        engine.insert_entry(route, Entry((Lpm(address(0x3000 + port), 48),), ActionCall(set_next_hop, (port,))))
    for index in range(routes):
        hop = index % ports + 1
        engine.insert_entry(route, Entry((Lpm(address(0x2000 + index), 48),), ActionCall(set_next_hop, (hop,))))
    return 1 + 2 * ports + routes


def resident_megabytes() -> float:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * resource.getpagesize() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switches", type=int, default=300)
    parser.add_argument("--ports", type=int, default=8)
    parser.add_argument("--routes", type=int, default=100, help="entries a switch besides those of its ports")
    options = parser.parse_args()
    if os.geteuid():
        raise SystemExit("switch_scale: needs root to make network namespaces")
    with namespaces(1) as (namespace,), tempfile.TemporaryDirectory() as scratch:
        quiet = ["ip", "netns", "exec", namespace, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"]
        subprocess.run(quiet, check=True)
        program = compile_leaf(Path(scratch))
        names = [[f"s{i}p{j}" for j in range(1, options.ports + 1)] for i in range(options.switches)]
        flat = [name for row in names for name in row]
        batch(namespace, [f"link add {a} type veth peer name {b}" for a, b in zip(flat[::2], flat[1::2], strict=True)])
        batch(namespace, [f"link set {name} up" for name in flat])

        before, begun = resident_megabytes(), time.perf_counter()
        plane = NativeDataPlane()
        model = load(program)
        entries = 0
        for number, row in enumerate(names):
            netns = f"/run/netns/{namespace}"
            config = PortConfig(rate_bps=10_000_000, delay_ns=1_000)
            ports = tuple(PortSpec(port, name, netns, config) for port, name in enumerate(row, 1))
            engine = plane.create(DeviceConfig(number + 1, f"sw{number}", ports), lambda frame: None)
            engine.load(model)
            entries += write_tables(engine, number, options.ports, options.routes)
        seconds, memory = time.perf_counter() - begun, resident_megabytes()
        idle_ns = plane.cpu_ns()
        time.sleep(1.0)
        idle = (plane.cpu_ns() - idle_ns) / 1e7
        begun = time.perf_counter()
        plane.close()
        closed = time.perf_counter() - begun
    size = f"{options.switches} switches with {options.ports} ports, {entries} entries"
    print(f"{size}: {seconds:.2f} s (at most {SECONDS_MAX:.0f})")
    print(f"resident {memory:.0f} MB, of which {before:.0f} MB before the first switch (at most {MEGABYTES_MAX})")
    print(f"idle: {idle:.2f} % of a core; closed in {closed:.2f} s")
    if seconds > SECONDS_MAX or memory > MEGABYTES_MAX:
        sys.exit(1)


if __name__ == "__main__":
    main()
